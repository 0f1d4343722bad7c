package worker

import (
	"bytes"
	"context"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/resp"
)

// maxArgument is how long an argument of a function's Redis command may be.
const maxArgument = 64 << 20

// session is what one connection to a state door may do: operate on its tenant's state while its activation lasts.
type session struct {
	store  state.Store
	space  string
	conn   *doorConn
	listen func(context.Context) (context.Context, func()) // conn's, made once

	latest *tenure         // in which something was asked
	within context.Context // ends with that, and with the connection
	forget func()          // that within was made
}

// StateSpace is the space of the store that holds the state of a namespace's functions.
func StateSpace(namespace string) string { return statePrefix + namespace }

const statePrefix = "state/"

// StateOwner is the inverse of StateSpace; ok is false for other spaces.
func StateOwner(space []byte) (namespace []byte, ok bool) {
	return bytes.CutPrefix(space, []byte(statePrefix))
}

func (w *Worker) serveState(c *doorConn) {
	s := &session{store: w.config.Store, space: StateSpace(c.namespace), conn: c, listen: c.listen}
	defer s.leave()
	w.resp.ServeConn(c.ctx, c, s)
}

// errClosed ends what is asked on a connection.
var errClosed = forerun.Errorf(forerun.Unavailable, "state", "The connection is closed.")

// in is the context of what is asked in a tenure.
func (s *session) in(t *tenure) context.Context {
	if s.latest == t {
		return s.within
	}
	s.leave()
	ctx, cancel := context.WithCancelCause(t.ctx)
	stop := context.AfterFunc(s.conn.ctx, func() { cancel(errClosed) })
	s.latest, s.within = t, ctx
	s.forget = func() {
		stop()
		cancel(nil)
	}
	return ctx
}

// leave ends the context of the latest tenure.
func (s *session) leave() {
	if s.forget != nil {
		s.forget()
	}
}

// asker is who asks in a tenure.
func (s *session) asker(t *tenure) state.Asker {
	return state.Asker{Activation: t.activation, Listen: s.listen}
}

// Do executes one command. Outside an activation it is answered with an error, or waits for the next one of its handler.
func (s *session) Do(ctx context.Context, args [][]byte) (state.Reply, forerun.Version, error) {
	t, refused := s.conn.enter(ctx)
	if refused != "" {
		return state.Reply{}, 0, resp.Refusal("ERR " + refused)
	}
	defer t.working.RUnlock()
	if isPhase(args) {
		reply, err := s.conn.turns.phase(s.in(t), t, args)
		return reply, 0, err
	}
	defer s.conn.turns.operates(t)()
	c := state.Command{Space: s.space, Args: args}
	if t.bridge != nil {
		return t.bridge.Do(s.in(t), s.asker(t), c)
	}
	if notes := t.notes(args); len(notes) > 0 {
		replies, version, err := s.noted(t, notes, nil, args)
		if err != nil {
			return state.Reply{}, 0, err
		}
		return replies[0], version, nil
	}
	return s.store.Do(s.in(t), c)
}

// noted executes commands as one step with those that keep notes. While the disk is full there is room for no note, but commands
// that only remove are executed.
func (s *session) noted(t *tenure, notes []state.Command, expect []state.Expect, commands ...[][]byte) ([]state.Reply, forerun.Version, error) {
	ops := state.InSpace(s.space, commands)
	replies, version, err := s.store.Exec(s.in(t), expect, append(ops, notes...))
	if forerun.KindOf(err) == forerun.Full {
		return s.store.Exec(s.in(t), expect, ops)
	}
	if err != nil {
		return nil, 0, err
	}
	t.wrote.Store(true)
	t.noter.Noted(t.activation)
	return replies[:len(commands)], version, nil
}

// Exec executes commands as one step. Outside an activation it is refused, or waits, as Do.
func (s *session) Exec(ctx context.Context, expect []state.Expect, commands [][][]byte) ([]state.Reply, forerun.Version, error) {
	t, refused := s.conn.enter(ctx)
	if refused != "" {
		return nil, 0, resp.Refusal("ERR " + refused)
	}
	defer t.working.RUnlock()
	defer s.conn.turns.operates(t)()
	if t.bridge != nil {
		return t.bridge.Exec(s.in(t), s.asker(t), s.space, expect, commands)
	}
	if notes := t.notes(commands...); len(notes) > 0 {
		return s.noted(t, notes, expect, commands...)
	}
	return s.store.Exec(s.in(t), expect, state.InSpace(s.space, commands))
}

// Versions reads what versions records have. Outside an activation it is refused, or waits, as Do.
func (s *session) Versions(ctx context.Context, keys []forerun.Key) ([]state.Expect, error) {
	t, refused := s.conn.enter(ctx)
	if refused != "" {
		return nil, resp.Refusal("ERR " + refused)
	}
	defer t.working.RUnlock()
	defer s.conn.turns.operates(t)()
	if t.bridge != nil {
		return t.bridge.Versions(s.in(t), s.asker(t), keys)
	}
	return s.store.Versions(s.in(t), keys...)
}

// Hold waits until a speculative activation is promoted. Outside of an activation it is refused, or waits, as Do.
func (s *session) Hold(ctx context.Context, why *forerun.Reason, begin func()) error {
	t, refused := s.conn.enter(ctx)
	if refused != "" {
		return resp.Refusal("ERR " + refused)
	}
	defer t.working.RUnlock()
	defer s.conn.turns.operates(t)()
	if t.bridge != nil {
		return t.bridge.Hold(s.in(t), s.asker(t), why, begin)
	}
	if begin != nil {
		begin()
	}
	return nil
}

// IsAhead tells whether the activation is.
func (s *session) IsAhead() bool {
	t := s.conn.tenure.Load()
	return t.ahead != nil && t.ahead()
}

// Listens notes whether messages come to whose connection it is.
func (s *session) Listens(now bool) { s.conn.listens.Store(now) }

// Space is the key space of the namespace.
func (s *session) Space() string { return s.space }

// Waits ends when the activation is over.
func (s *session) Waits() context.Context { return s.conn.tenure.Load().ctx }

// Sleeps notes that the client waits for records to change, and returns the end of that.
func (s *session) Sleeps() (end func()) { return s.conn.turns.operates(s.conn.tenure.Load()) }

// Durable waits until what a reply rests on is on disk.
func (s *session) Durable(ctx context.Context, v forerun.Version) error {
	defer s.conn.turns.operates(s.conn.tenure.Load())()
	return s.store.Durable(ctx, v)
}
