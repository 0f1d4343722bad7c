package worker

import (
	"context"
	"errors"
	"os"
	"time"
)

// A client gives up a held request by closing its connection. Without speculation it would have had its answer. So the
// request must not be performed later, when the client may have sent it again.

// listen detects the end of a connection while no goroutine reads from it. The returned context ends with ctx, or when
// the other end closes; listen then closes this end. Incoming data is left for the next reader. listen ends with stop.
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
