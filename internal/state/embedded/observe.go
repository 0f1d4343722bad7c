package embedded

import (
	"cmp"
	"context"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// observer notes what a step reads and writes. nil notes nothing.
type observer struct {
	reads   []state.Expect
	known   command.KeySet // those of reads
	may     command.KeySet // be written
	whole   bool           // any record may
	inexact bool
	changed changed
}

// Observe executes commands as one step, and tells what it read and wrote. The error is *state.ConflictError, or that of
// the store.
func (s *Store) Observe(ctx context.Context, expect []state.Expect, ops []state.Command) (state.Observed, error) {
	if len(expect) == 0 && len(ops) == 1 {
		if spec, _ := command.Find(ops[0].Args); spec != nil && looks(spec, ops[0]) {
			reply, v, err := s.Do(ctx, ops[0])
			return state.Observed{Replies: []state.Reply{reply}, Version: v}, err
		}
	}
	o, replies, v, err := s.observe(ctx, expect, ops, false)
	if command.IsBeyond(err) {
		o, replies, v, err = s.observe(ctx, expect, ops, true)
	}
	if err != nil {
		return state.Observed{}, err
	}
	return state.Observed{Replies: replies, Version: v, Reads: o.reads, Wrote: o.wrote(), Exact: !o.inexact}, nil
}

// observe is exec with an observer of its own.
func (s *Store) observe(ctx context.Context, expect []state.Expect, ops []state.Command, whole bool) (*observer, []state.Reply, forerun.Version, error) {
	o := &observer{whole: whole, changed: changed{stored: command.NewOverlay(ctx, reader{db: s.db})}}
	for _, e := range expect {
		o.read(e)
	}
	replies, v, err := s.exec(ctx, expect, ops, o, whole)
	return o, replies, v, err
}

// wrote is what has changed, but for records that had expired and were only cleared away.
func (o *observer) wrote() []forerun.Key {
	keys := slices.DeleteFunc(o.changed.keys, func(k forerun.Key) bool { return !o.whole && !o.may.Has(k) })
	slices.SortFunc(keys, func(a, b forerun.Key) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(keys)
}

// beforehand notes the versions of the records that commands depend on; their keys are held.
func (o *observer) beforehand(r command.Reader, specs []*command.Spec, ops []state.Command, now time.Time) error {
	if o == nil {
		return nil
	}
	for i, op := range ops {
		if specs[i] == nil {
			continue
		}
		o.inexact = o.inexact || !specs[i].IsExact(op.Args)
		o.whole = o.whole || specs[i].Access(op.Args)&command.Whole != 0
		for at, role := range specs[i].Roles(op.Args) {
			key := forerun.Key{Space: op.Space, Name: string(op.Args[at])}
			if role&command.Write != 0 {
				o.may.Add(key)
			}
			if role&command.Read == 0 || o.known.Has(key) {
				continue
			}
			current, err := find(r, key, now)
			if err != nil {
				return err
			}
			o.read(state.Expect{Key: key, Version: current.Version})
		}
	}
	return nil
}

// afterwards notes the records that an overlay changes; they have not changed yet.
func (o *observer) afterwards(overlay *command.Overlay) error {
	if o == nil {
		return nil
	}
	return overlay.Flush(&o.changed)
}

func (o *observer) read(e state.Expect) {
	if at := o.known.Add(e.Key); at == len(o.reads) {
		o.reads = append(o.reads, e)
	}
}
