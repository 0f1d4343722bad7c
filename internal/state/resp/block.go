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
	c.turn.Leave()
	w := c.space.newWaiter(spec.Awaits())
	for _, name := range spec.Sources(own) {
		w.keys.Add(c.key(name)) // once: it would wait behind itself
	}
	if to := spec.Destination(own); to != nil {
		w.moved = c.key(to)
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
	c.shown.set(func(p *profile) { p.waiter = w })
	defer c.shown.set(func(p *profile) { p.waiter = nil })
	reply := c.do(ctx, spec, own)
	if !isNil(reply) || c.leaving {
		c.space.leave(w)
		c.settle(ctx, spec, own)
		return reply
	}
	return c.wait(ctx, w, spec, own)
}

func (c *conn) key(name []byte) forerun.Key {
	return forerun.Key{Space: c.session.Space(), Name: string(name)}
}

// wait waits until a command has got something, or its time is over.
func (c *conn) wait(ctx context.Context, w *waiter, spec *command.Spec, args [][]byte) state.Reply {
	waiting, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(c.session.Waits(), end)()
	session := c.session
	w.try = func() outcome {
		reply, version, err := session.Do(waiting, args)
		if waiting.Err() != nil && err != nil {
			return outcome{reply: nothing()} // the client leaves
		}
		return outcome{reply, version, err}
	}
	c.space.sleep(w)
	if s, ok := session.(interface{ Sleeps() (end func()) }); ok {
		defer s.Sleeps()()
	}
	if c.flush(ctx) != nil {
		c.leaving = true
		return nothing()
	}
	var over <-chan time.Time
	if d := spec.Timeout(args); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	gone, stop := c.overhear()
	select {
	case <-w.ended:
	case <-over:
	case <-gone:
		c.leaving = true
	case <-waiting.Done():
		c.leaving = ctx.Err() != nil
	}
	stop() // what it counts is this goroutine's from here on
	if c.space.leave(w) {
		return nothing()
	}
	c.rests = max(c.rests, w.result.version)
	if w.result.err != nil {
		return c.failed(ctx, w.result.err)
	}
	c.awaitRoomFor(ctx, w.result.reply)
	return w.result.reply
}

func nothing() state.Reply { return state.Reply{Kind: state.NilArray} }

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
