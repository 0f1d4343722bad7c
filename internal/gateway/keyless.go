package gateway

import (
	"sync"
	"time"

	"forerun.dev/forerun/internal/seats"
)

// Bounds of connections over QUIC on which no key was shown. http3 waits for the rest of a head without an end, and holds what has come of it.
const (
	maxKeyless  = 128             // strangers at a time: with maxStreams heads each they hold some 225 MiB
	keylessTime = 4 * time.Minute // until GOAWAY, of strangers and of visitors of web actions
)

// keyless is the place of a connection over QUIC among the strangers, whose unfinished heads take memory. The zero value has none yet.
type keyless struct {
	mu    sync.Mutex // guards the rest
	over  bool       // the connection is a tenant's, or has ended
	leave func()     // gives the place back; nil: there is none
}

// begin takes a place. One stranger too many has any of them cut. It may be called twice.
func (k *keyless) begin(all *seats.Seats, cut func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.over && k.leave == nil {
		k.leave = all.Stand(cut)
	}
}

// end gives the place back. It may be called twice.
func (k *keyless) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	if k.leave != nil {
		k.leave()
		k.leave = nil
	}
}
