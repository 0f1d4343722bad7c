package harness

import (
	"context"
	"sync"
)

// Idle are connections that are kept open between requests. The zero value has none. It may be used by several goroutines.
type Idle struct {
	mu  sync.Mutex // guards all
	all []*Connection
}

// Take returns an idle connection, or a new one if there is none.
func (i *Idle) Take(ctx context.Context, r *Request) (*Connection, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if n := len(i.all); n > 0 {
		last := i.all[n-1]
		i.all = i.all[:n-1]
		return last, nil
	}
	return r.Connect(ctx)
}

// Give keeps a connection for the next request.
func (i *Idle) Give(c *Connection) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, c)
}

// Close closes the idle connections.
func (i *Idle) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.all {
		c.Close()
	}
}
