package resp

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// block executes a command that waits until there is something for it.
func (c *conn) block(ctx context.Context, spec *command.Spec, args [][]byte) state.Reply {
	own := cloneArgs(args) // the parser goes on reading
	w := &waiter{wake: make(chan struct{}, 1)}
	for _, name := range spec.Sources(own) {
		w.keys.Add(forerun.Key{Space: c.session.Space(), Name: string(name)}) // once: it would wait behind itself
	}
	c.awaited = commandSize(own)
	for _, key := range w.keys.List {
		c.awaited += entrySize + len(key.Name)
	}
	defer func() { c.awaited = 0 }()
	if !c.hasRoom() && !c.awaitRoom(ctx) {
		c.leaving = true
		return failure(c.noRoom())
	}
	if err := c.session.Hold(ctx, command.Held(spec.Name), func() { c.space.await(w) }); err != nil {
		return c.failed(ctx, err)
	}
	defer c.space.leave(w)
	reply := c.do(ctx, spec, own)
	if !isNil(reply) || c.leaving {
		return reply
	}
	if c.flush(ctx) != nil {
		c.leaving = true
		return reply
	}
	return c.wait(ctx, w, spec, own)
}

// wait tries a command each time one of its records has changed, until it has got something, or its time is over.
func (c *conn) wait(ctx context.Context, w *waiter, spec *command.Spec, args [][]byte) state.Reply {
	nothing := state.Reply{Kind: state.NilArray}
	c.space.asleep.Add(1)
	defer c.space.asleep.Add(-1)
	var over <-chan time.Time
	if d := spec.Timeout(args); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	waiting, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(c.session.Waits(), end)()
	gone, stop := c.overhear()
	defer stop()
	for {
		select {
		case <-w.wake:
			if reply, done := c.retry(waiting, w, spec, args); done {
				return reply
			}
		case <-over:
			return nothing
		case <-gone:
			c.leaving = true
			return nothing
		case <-waiting.Done():
			c.leaving = ctx.Err() != nil
			return nothing
		}
	}
}

// retry tries a command on the records that have changed, while ctx lasts.
func (c *conn) retry(ctx context.Context, w *waiter, spec *command.Spec, args [][]byte) (reply state.Reply, done bool) {
	for {
		key, ok := c.space.next(w)
		if !ok {
			return state.Reply{}, false
		}
		reply, version, err := c.session.Do(ctx, spec.Narrow(args, []byte(key.Name)))
		c.rests = max(c.rests, version)
		switch {
		case err != nil && ctx.Err() != nil:
			return state.Reply{}, false
		case err != nil:
			return c.failed(ctx, err), true
		case reply.Kind == state.Error && bytes.HasPrefix(reply.Text, []byte("WRONGTYPE")) && !c.isList(ctx, spec, key):
			c.space.pass(w, key) // a record of another type is nothing to it
		case !isNil(reply):
			return reply, true
		}
	}
}

// isList says whether a record is a list, for a command that waits for one. If it is, the record that it was to move
// an item to has another type.
func (c *conn) isList(ctx context.Context, spec *command.Spec, key forerun.Key) bool {
	if spec.Name != "blmove" && spec.Name != "brpoplpush" {
		return false
	}
	reply, _, err := c.session.Do(ctx, [][]byte{[]byte("TYPE"), []byte(key.Name)})
	return err == nil && string(reply.Text) == "list"
}

func isNil(r state.Reply) bool { return r.Kind == state.Nil || r.Kind == state.NilArray }

func cloneArgs(args [][]byte) [][]byte {
	own := make([][]byte, len(args))
	for i, arg := range args {
		own[i] = bytes.Clone(arg)
	}
	return own
}

// maxBehind is how many bytes are read that come behind a command that waits. If there are more it is not noticed that the client leaves.
const maxBehind = 16 << 20

// overhear reads what the client sends meanwhile, so that it is noticed if the client leaves. It ends with stop.
func (c *conn) overhear() (gone <-chan struct{}, stop func()) {
	left, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for c.parser.unread() < maxBehind && c.hasRoom() {
			if err := c.parser.fill(c.net); err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					close(left)
				}
				return
			}
		}
	}()
	return left, func() {
		_ = c.net.SetReadDeadline(time.Unix(1, 0)) // a connection that has none is gone
		<-done
		_ = c.net.SetReadDeadline(time.Time{})
	}
}
