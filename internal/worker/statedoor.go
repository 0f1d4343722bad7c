package worker

import (
	"context"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// maxArgument is how long an argument of a function's Redis command may be.
const maxArgument = 64 << 20

// session is what one connection to a state door may do: operate on its tenant's state while its activation lasts.
type session struct {
	store  state.Store
	space  string
	tenure *tenure
}

// StateSpace is the space of the store that holds the state of a namespace's functions.
func StateSpace(namespace string) string { return "state/" + namespace }

func (w *Worker) serveState(c *doorConn) {
	w.resp.ServeConn(c.tenure.ctx, c, &session{store: w.config.Store, space: StateSpace(c.namespace), tenure: c.tenure})
}

// Do executes one command. Outside an activation it is answered with an error.
func (s *session) Do(ctx context.Context, args [][]byte) (state.Reply, forerun.Version, error) {
	s.tenure.working.RLock()
	defer s.tenure.working.RUnlock()
	switch {
	case s.tenure.over.Load():
		return refusal("the activation that made this connection is over"), 0, nil
	case s.tenure.activation == "":
		return refusal("no activation is running: state can be reached while the function runs, not while its code is loaded"), 0, nil
	}
	return s.store.Do(ctx, state.Command{Space: s.space, Args: args})
}

func refusal(text string) state.Reply {
	return state.Reply{Kind: state.Error, Text: []byte("ERR " + text)}
}

// Durable waits until what a reply rests on is on disk.
func (s *session) Durable(ctx context.Context, v forerun.Version) error {
	return s.store.Durable(ctx, v)
}
