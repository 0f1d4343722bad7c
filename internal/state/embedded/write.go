package embedded

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// Do executes one command at once.
func (s *Store) Do(ctx context.Context, c state.Command) (state.Reply, forerun.Version, error) {
	if err := s.begins(ctx); err != nil {
		return state.Reply{}, 0, err
	}
	defer s.gate.leave()
	spec, refusal := command.Find(c.Args)
	if spec == nil {
		return refusal, 0, nil
	}
	if looks(spec, c) {
		return s.look(ctx, spec, c)
	}
	reply, v, err := s.do(ctx, spec, c, false)
	if command.IsBeyond(err) {
		return s.do(ctx, spec, c, true)
	}
	return reply, v, err
}

// do is Do over the records of a command, or over the whole space.
func (s *Store) do(ctx context.Context, spec *command.Spec, c state.Command, whole bool) (state.Reply, forerun.Version, error) {
	var room [4]claim
	claims := room[:0]
	if whole {
		claims = s.keys.claimAll(claims, c.Space, writes(spec))
	}
	held := lock(s.claimKeys(claims, spec, c))
	defer held.unlock()
	work, err := s.keys.begin(ctx, c.Space, writes(spec))
	if err != nil {
		return state.Reply{}, 0, err
	}
	defer work.end()
	overlay, _ := s.overlay(ctx, s.db, c.Space)
	overlay = s.counting(overlay)
	if whole {
		overlay.Whole()
	}
	reply, err := command.Execute(overlay, spec, c.Space, s.now(), c.Args)
	overlay.Leave()
	if err != nil {
		return state.Reply{}, 0, err
	}
	if reply.Kind == state.Error && !spec.IsScript() || overlay.Empty() {
		last, _ := held.rests()
		return reply, last, nil
	}
	v, _, err := s.commit(ctx, overlay, false, false)
	if err != nil {
		return state.Reply{}, 0, err
	}
	held.wrote(v, false)
	return reply, v, nil
}

// overlay makes one for commands of a space, whose work on it is that of a tenant. Its caller calls Leave before it waits for anything.
func (s *Store) overlay(ctx context.Context, db pebble.Reader, space string) (*command.Overlay, *lookup) {
	stored := &lookup{reader: reader{db: db}}
	overlay := command.NewOverlay(ctx, stored)
	overlay.Share(s.places, space)
	stored.of = overlay
	return overlay, stored
}

// writes says whether a command may change a record; one that is none, nil, does not.
func writes(spec *command.Spec) bool { return spec != nil && spec.Flags&command.Write != 0 }

// looks says whether a command only reads, but perhaps any record of its space.
func looks(spec *command.Spec, c state.Command) bool {
	return spec.Flags&command.Whole != 0 && spec.Access(c.Args)&(command.Whole|command.Write) == command.Whole
}

// look executes a command that only reads, but perhaps any record of its space, as of one moment. It keeps nobody waiting.
func (s *Store) look(ctx context.Context, spec *command.Spec, c state.Command) (state.Reply, forerun.Version, error) {
	work, err := s.keys.begin(ctx, c.Space, false)
	if err != nil {
		return state.Reply{}, 0, err
	}
	defer work.end()
	snapshot := s.db.NewSnapshot()
	last, _ := s.commits.newest() // not before the snapshot: what it shows was written up to here
	overlay, _ := s.overlay(ctx, snapshot, c.Space)
	reply, err := command.Execute(overlay, spec, c.Space, s.now(), c.Args)
	overlay.Leave()
	if closeErr := snapshot.Close(); err == nil && closeErr != nil {
		err = broken(closeErr)
	}
	return reply, last, err
}

// claimKeys adds claims on the keys of a command.
func (s *Store) claimKeys(claims []claim, spec *command.Spec, c state.Command) []claim {
	write := writes(spec)
	if spec.Flags&command.Whole != 0 && spec.Access(c.Args)&command.Whole != 0 {
		claims = s.keys.claimAll(claims, c.Space, write)
	}
	for i := range spec.KeyPositions(c.Args) {
		claims = append(claims, s.keys.claim(c.Space, c.Args[i], write))
	}
	return claims
}

// Apply runs a transaction. One that is owed waits behind what waits for room on the disk. The error is *state.ConflictError, forerun.Invalid
// with what a command answered, or that of the store.
func (s *Store) Apply(ctx context.Context, t state.Txn) (forerun.Version, error) {
	if err := s.begins(ctx); err != nil {
		return 0, err
	}
	defer s.gate.leave()
	for {
		v, err := s.apply(ctx, t)
		if !t.Owed || forerun.KindOf(err) != forerun.Full {
			return v, err
		}
		if err := s.room.queue(ctx); err != nil {
			return 0, err
		}
	}
}

func (s *Store) apply(ctx context.Context, t state.Txn) (forerun.Version, error) {
	specs, claims, err := s.prepare(t)
	if err != nil {
		return 0, err
	}
	v, written, err := s.applyLocked(ctx, claims, t, specs)
	if err != nil {
		return 0, err
	}
	if t.Lazy {
		return v, written()
	}
	return v, s.disk.wait(context.WithoutCancel(ctx), v) // it is applied: the caller must learn that
}

// prepare finds the commands of a transaction and the keys that it needs.
func (s *Store) prepare(t state.Txn) ([]*command.Spec, []claim, error) {
	specs := make([]*command.Spec, len(t.Ops))
	for i, op := range t.Ops {
		var refusal state.Reply
		if specs[i], refusal = command.Find(op.Args); specs[i] == nil {
			return nil, nil, refused(refusal)
		}
	}
	claims := s.claimExpected(t.Expect, len(t.Ops))
	for i, op := range t.Ops {
		claims = s.claimKeys(claims, specs[i], op)
	}
	return specs, claims, nil
}

func refused(reply state.Reply) error {
	return forerun.Errorf(forerun.Invalid, "state", "%s", reply.Text)
}

func (s *Store) applyLocked(ctx context.Context, claims []claim, t state.Txn, specs []*command.Spec) (forerun.Version, func() error, error) {
	held := lock(claims)
	defer held.unlock()
	stored := &lookup{reader: reader{db: s.db}}
	overlay := s.counting(command.NewOverlay(ctx, stored))
	now := s.now()
	if err := check(overlay, t.Expect, now); err != nil {
		return 0, nil, err
	}
	for i, op := range t.Ops {
		stored.fresh = op.Fresh
		reply, err := command.Execute(overlay, specs[i], op.Space, now, op.Args)
		if err != nil {
			return 0, nil, err
		}
		if reply.Kind == state.Error {
			return 0, nil, refused(reply)
		}
	}
	if overlay.Empty() {
		last, _ := held.rests()
		return last, func() error { return nil }, nil
	}
	v, written, err := s.commit(ctx, overlay, t.Lazy, t.Owed)
	if err == nil {
		held.wrote(v, t.Lazy)
	}
	return v, written, err
}

// check compares versions. The error is *state.ConflictError, or that of the store.
func check(r command.Reader, expect []state.Expect, now time.Time) error {
	var changed []forerun.Key
	for _, e := range expect {
		current, err := find(r, e.Key, now)
		if err != nil {
			return err
		}
		if current.Version != e.Version {
			changed = append(changed, e.Key)
		}
	}
	if changed != nil {
		return &state.ConflictError{Keys: changed}
	}
	return nil
}

// find finds a record as it is at a time.
func find(r command.Reader, key forerun.Key, now time.Time) (state.Record, error) {
	stored, found, err := r.Get(command.RecordKey(key))
	if err != nil || !found {
		return state.Record{}, err
	}
	return command.Decode(stored, now)
}
