package worker

import (
	"context"
	"errors"
	"os"
	"time"
)

// How it is noticed that a client has given up what waits for its activation's turn: it closes its connection. With speculation off it
// would have had its answer, so what it asked for must not be done later, when it may have asked again.

// listen hears a connection's end while nobody reads from it: the context that it returns ends with ctx, or when the other end is closed,
// and this one with that. What comes in meanwhile is left to who reads next. It ends with stop.
func (c *doorConn) listen(ctx context.Context) (heard context.Context, stop func()) {
	heard, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := c.raw.Read(func(fd uintptr) bool { return !established(fd) })
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			end()
			_ = c.Close()
		}
	}()
	return heard, func() {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // a connection that has none is gone
		<-done
		_ = c.SetReadDeadline(time.Time{})
		end()
	}
}

// lookEvery is how often is looked whether who sent a request is still there.
const lookEvery = 10 * time.Millisecond

// watched is the context of a request, and ends also when its client has gone: the HTTP server does not notice that as long as a body
// is not read.
func (c *doorConn) watched(ctx context.Context) (watched context.Context, stop func()) {
	watched, stop = context.WithCancel(ctx)
	go func() {
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-look.C:
				if !c.isEstablished() {
					stop()
				}
			}
		}
	}()
	return watched, stop
}
