package embedded

import (
	"context"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// Exec executes commands as one step. The error is *state.ConflictError, or that of the store.
func (s *Store) Exec(ctx context.Context, expect []state.Expect, ops []state.Command) ([]state.Reply, forerun.Version, error) {
	replies, v, err := s.exec(ctx, expect, ops, nil, false)
	if command.IsBeyond(err) {
		return s.exec(ctx, expect, ops, nil, true)
	}
	return replies, v, err
}

// exec is Exec with an observer, or none, over the records of the commands, or over the whole spaces of its scripts.
func (s *Store) exec(ctx context.Context, expect []state.Expect, ops []state.Command, o *observer, whole bool) ([]state.Reply, forerun.Version, error) {
	if err := s.begins(ctx); err != nil {
		return nil, 0, err
	}
	defer s.gate.leave()
	specs, replies, claims := s.findAll(expect, ops, whole)
	held := lock(claims)
	defer held.unlock()
	if len(ops) > 0 {
		work, err := s.keys.begin(ctx, ops[0].Space, slices.ContainsFunc(specs, writes))
		if err != nil {
			return nil, 0, err
		}
		defer work.end()
	}
	space := ""
	if len(ops) > 0 {
		space = ops[0].Space
	}
	overlay, stored := s.overlay(ctx, s.db, space)
	overlay = s.counting(overlay)
	if whole {
		overlay.Whole()
	}
	defer overlay.Leave()
	now := s.now()
	if err := check(overlay, expect, now); err != nil {
		return nil, 0, err
	}
	if err := o.beforehand(overlay, specs, ops, now); err != nil {
		return nil, 0, err
	}
	if err := sweepReplayed(overlay, specs, ops, now); err != nil {
		return nil, 0, err
	}
	for i, op := range ops {
		if specs[i] == nil {
			continue
		}
		at := now
		if !op.At.IsZero() {
			at = op.At
		}
		stored.fresh = op.Fresh
		var err error
		if replies[i], err = command.Execute(overlay, specs[i], op.Space, at, op.Args); err != nil {
			return nil, 0, err
		}
	}
	if overlay.Empty() {
		last, _ := held.rests()
		return replies, last, nil
	}
	if err := o.afterwards(overlay); err != nil {
		return nil, 0, err
	}
	overlay.Leave()
	v, _, err := s.commit(ctx, overlay, false, false)
	if err != nil {
		return nil, 0, err
	}
	held.wrote(v, false)
	return replies, v, nil
}

// findAll finds commands, and makes the claims of their step. Of one that is refused the spec is nil, and the reply says why.
func (s *Store) findAll(expect []state.Expect, ops []state.Command, whole bool) ([]*command.Spec, []state.Reply, []claim) {
	specs := make([]*command.Spec, len(ops))
	replies := make([]state.Reply, len(ops))
	claims := s.claimExpected(expect, len(ops))
	for i, op := range ops {
		if specs[i], replies[i] = command.Find(op.Args); specs[i] == nil {
			continue
		}
		claims = s.claimKeys(claims, specs[i], op)
		if whole && specs[i].IsScript() {
			claims = s.keys.claimAll(claims, op.Space, writes(specs[i]))
		}
	}
	return specs, replies, claims
}

// sweepReplayed removes what has expired of the records that commands are to write at an earlier time, at which it had not: only what
// they write themselves is as old as they are.
func sweepReplayed(overlay *command.Overlay, specs []*command.Spec, ops []state.Command, now time.Time) error {
	for i, op := range ops {
		if specs[i] == nil || op.At.IsZero() || specs[i].Flags&command.Write == 0 {
			continue
		}
		for at := range specs[i].KeyPositions(op.Args) {
			if err := command.Sweep(overlay, forerun.Key{Space: op.Space, Name: string(op.Args[at])}, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimExpected makes claims on the records of expectations, with room for more.
func (s *Store) claimExpected(expect []state.Expect, more int) []claim {
	claims := make([]claim, 0, len(expect)+more)
	for _, e := range expect {
		claims = append(claims, s.keys.claim(e.Key.Space, []byte(e.Key.Name), false))
	}
	return claims
}
