package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"

	"forerun.dev/forerun/internal/seats"
)

// partOfHead is a head whose last byte does not come.
func partOfHead() []byte {
	return append(quicvarint.Append(quicvarint.Append(nil, headersFrame), maxQUICHead), make([]byte, maxQUICHead-1)...)
}

// TestUnfinishedHeads: parts of heads beside whole requests keep the connection of a client that shows no key for keylessTime, and another's longer.
func TestUnfinishedHeads(t *testing.T) {
	onPipes(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("As") != "" {
			seatAll(w, r)
		}
	}, func(t *testing.T, s *secured) {
		stranger, tenant := s.connectQUIC(), s.connectQUIC()
		began := time.Now()
		for _, conn := range []*quic.Conn{stranger, tenant} {
			s.open(conn, partOfHead())
		}
		asks := func(conn *quic.Conn, as string) {
			stream, err := conn.OpenStream()
			if err != nil {
				return // the connection has ended
			}
			_, _ = stream.Write(h3Head("GET", "/", "as", as))
			_ = stream.Close()
			_ = h3Status(t, stream)
		}
		for time.Since(began) < 2*keylessTime {
			asks(stranger, "")
			asks(tenant, "ada")
			time.Sleep(2 * time.Second) // less than leaveTime
			if stranger.Context().Err() != nil && time.Since(began) < keylessTime {
				t.Fatalf("the stranger's connection has ended after %v", time.Since(began))
			}
		}
		if stranger.Context().Err() == nil || tenant.Context().Err() != nil {
			t.Errorf("the stranger's connection: %v, the tenant's: %v", stranger.Context().Err(), tenant.Context().Err())
		}
	})
}

// TestStrangersOverQUICMakeRoom: of more than maxKeyless strangers over QUIC any is cut, and no connection of a tenant.
func TestStrangersOverQUICMakeRoom(t *testing.T) {
	onPipesWith(t, seats.New(10, MaxStrangers), seatAll, func(t *testing.T, s *secured) {
		tenant := s.client("h3")
		if got := s.mustAsk(tenant, "/", "ada"); got != 200 {
			t.Fatalf("a tenant is answered %d", got)
		}
		const more = 5
		for range maxKeyless + more {
			s.connectQUIC()
		}
		time.Sleep(time.Second)
		if open := s.common.Traffic.QUIC.Load(); open != maxKeyless+1 {
			t.Errorf("%d connections are open", open)
		}
		if got := s.mustAsk(s.client("h3"), "/", "ada"); got != 200 {
			t.Errorf("a new client with a key is answered %d", got)
		}
		if got := s.mustAsk(tenant, "/", "ada"); got != 200 || s.common.Traffic.QUIC.Load() != maxKeyless+1 {
			t.Errorf("the tenant is answered %d, and %d connections are open", got, s.common.Traffic.QUIC.Load())
		}
	})
}
