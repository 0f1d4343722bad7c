package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

// Bounds of session tickets of QUIC.
const (
	keyTime    = time.Hour       // after which there is another key
	keyLife    = 2 * keyTime     // of a key
	clockSlack = 3 * time.Second // by which the clocks may come apart between two looks at them
	lookTime   = time.Minute     // between these, at most
	tracked    = 1 << 20         // tickets whose use is known: the last ones, a bit each
)

// tickets makes and reads the session tickets of one QUIC listener, with which clients that come back send early data.
//
// Each ticket has a number. A bit remembers for the last tickets that they were used, so memory does not grow, and no clock matters. A second use, or
// an old number, resumes the session without early data. The keys are only in memory: after a restart, or at another server, no ticket of before can
// be read. A machine that was restored or suspended may run twice, so there the keys are void: its wall clock and its monotonic clock come apart.
type tickets struct {
	traffic *Traffic
	clock   func() (wall time.Time, even time.Duration)

	mu     sync.Mutex // guards the rest
	keys   *tls.Config
	ring   []ticketKey // the newest first
	wall   time.Time   // at the last look at the clocks
	even   time.Duration
	issued uint64 // the last number
	used   [tracked / 64]uint64
}

type ticketKey struct {
	secret [32]byte
	made   time.Duration
}

func newTickets(traffic *Traffic) *tickets {
	begun := time.Now()
	t := &tickets{traffic: traffic, keys: new(tls.Config), clock: func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(begun)
	}}
	t.wall, t.even = t.clock()
	t.refresh()
	return t
}

// configure has a configuration use the tickets.
func (t *tickets) configure(c *tls.Config) *tls.Config {
	c.WrapSession, c.UnwrapSession = t.wrap, t.unwrap
	return c
}

// run keeps the keys until ctx is done.
func (t *tickets) run(ctx context.Context) {
	look := time.NewTicker(lookTime)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			t.refresh()
		case <-ctx.Done():
			return
		}
	}
}

// refresh makes a key if it is time, and forgets those that are void.
func (t *tickets) refresh() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
}

// look is refresh. The caller holds mu.
func (t *tickets) look() {
	wall, even := t.clock()
	apart := wall.Sub(t.wall) - (even - t.even)
	t.wall, t.even = wall, even
	var good []ticketKey
	for _, k := range t.ring {
		if apart.Abs() <= clockSlack && even-k.made < keyLife {
			good = append(good, k)
		}
	}
	fresh := len(good) == 0 || even-good[0].made >= keyTime
	if !fresh && len(good) == len(t.ring) {
		return
	}
	if fresh {
		k := ticketKey{made: even}
		_, _ = rand.Read(k.secret[:]) // never fails
		good = append([]ticketKey{k}, good...)
	}
	t.ring = good
	secrets := make([][32]byte, len(good))
	for i, k := range good {
		secrets[i] = k.secret
	}
	t.keys.SetSessionTicketKeys(secrets)
}

// ticketMark begins what a ticket holds of ours: its number, and the limits under which it was made.
var ticketMark = []byte("forerun\x01")

// promised are the limits that a client with a ticket may use before it hears of them.
var promised = fmt.Appendf(nil, "%d %d %d %d", maxQUICHead, maxStreams, maxControls, firstWindow)

// wrap is tls.Config's WrapSession.
func (t *tickets) wrap(c tls.ConnectionState, s *tls.SessionState) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	t.issued++
	t.used[t.issued%tracked/64] &^= 1 << (t.issued % 64)
	s.Extra = append(s.Extra, append(binary.BigEndian.AppendUint64(bytes.Clone(ticketMark), t.issued), promised...))
	return t.keys.EncryptTicket(c, s)
}

// unwrap is tls.Config's UnwrapSession.
func (t *tickets) unwrap(ticket []byte, c tls.ConnectionState) (*tls.SessionState, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	s, err := t.keys.DecryptTicket(ticket, c)
	if s != nil {
		s.EarlyData = t.strike(s.Extra) && s.EarlyData
	}
	return s, err
}

// strike notes the use of a ticket. It reports whether early data may come with it. The caller holds mu.
func (t *tickets) strike(extra [][]byte) bool {
	for _, e := range extra {
		rest, ours := bytes.CutPrefix(e, ticketMark)
		if !ours || len(rest) < 8 {
			continue
		}
		number, limits := binary.BigEndian.Uint64(rest), rest[8:]
		if number > t.issued || number+tracked <= t.issued {
			return false
		}
		word, bit := &t.used[number%tracked/64], uint64(1)<<(number%64)
		if *word&bit != 0 {
			t.traffic.Replayed.Add(1)
			return false
		}
		*word |= bit
		return bytes.Equal(limits, promised)
	}
	return false
}
