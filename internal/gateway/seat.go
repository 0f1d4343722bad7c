package gateway

import (
	"net/http"
	"sync"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/seats"
)

// claim says for which tenant a request asks for the connection.
type claim struct {
	of     string // the tenant
	keyed  bool   // the request shows the tenant's key
	shared bool   // the connection has other requests at the same time
}

// verdict is what becomes of a claim.
type verdict int

// The verdicts.
const (
	seatTaken  verdict = iota // the connection has a seat
	noSeat                    // the tenant has all connections that it may have
	otherOwner                // the connection is another tenant's
)

// client is a connection of a client, which lies in the context of its requests under clientKey.
type client interface {
	// sit makes the connection a tenant's.
	sit(by claim) verdict
	// refuseMore has the connection take no request after the answer that w writes.
	refuseMore(w http.ResponseWriter)
}

type clientKey struct{}

// place says whose a connection is. It is a stranger's until a request shows a key.
//
// HTTP/1.1 has one request at a time, so the connection belongs to the tenant of the last request. A proxy may use it for one tenant after another.
// The requests of an HTTP/2 or HTTP/3 connection share it, so it belongs to the tenant of the first authenticated one until its end. A web
// action's request is no authentication: such a connection belongs to the owner of the last action until a key is shown.
type place struct {
	seats *seats.Seats

	mu    sync.Mutex // guards the rest
	of    string     // the tenant whose seat it has; empty: a stranger's
	bound bool       // a request on a shared connection showed that tenant's key
	leave func()     // gives its seat back; nil when it is closed
}

// stand begins as a stranger's, whom cut cuts.
func (p *place) stand(cut func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave = p.seats.Stand(cut)
}

// vacate gives the seat back. It may be called twice.
func (p *place) vacate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leave != nil {
		p.leave()
		p.leave = nil
	}
}

// owner is the tenant whose seat the connection has, and whether a request showed that tenant's key. It is empty for a stranger.
func (p *place) owner() (tenant string, bound bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of, p.bound
}

// sit implements client.
func (p *place) sit(by claim) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.leave == nil:
		return seatTaken // it is closed
	case p.bound && p.of != by.of && by.keyed:
		return otherOwner
	case p.bound:
		return seatTaken // of another, whose client asks for a web action
	}
	if p.of != by.of {
		give, ok := func() {}, true
		if by.of != operator {
			give, ok = p.seats.Take(by.of)
		}
		if !ok {
			return noSeat
		}
		p.leave()
		p.of, p.leave = by.of, give
	}
	p.bound = by.keyed && by.shared
	return seatTaken
}

// Seat makes the connection of a request that shows a tenant's key the tenant's, if it is a client's. The error is forerun.TooMany if the
// tenant has all that it may have, and forerun.Misdirected if the connection is another tenant's. Then the connection takes no further
// request, so that the client opens another.
func Seat(w http.ResponseWriter, r *http.Request, namespace string) error {
	return seat(w, r, claim{namespace, true, isShared(r)})
}

// SeatVisit is Seat for a request of a web action, which shows no key of its owner. It may share the connection of another tenant.
func SeatVisit(w http.ResponseWriter, r *http.Request, owner string) error {
	return seat(w, r, claim{owner, false, isShared(r)})
}

// SeatOperator is Seat for the operator: there is always room for it.
func SeatOperator(w http.ResponseWriter, r *http.Request) error { return Seat(w, r, operator) }

// operator is no tenant's name.
const operator = "/"

func seat(w http.ResponseWriter, r *http.Request, by claim) error {
	c, ok := r.Context().Value(clientKey{}).(client)
	if !ok {
		return nil
	}
	switch c.sit(by) {
	case noSeat:
		c.refuseMore(w)
		return tooMany(1, "Too many connections at a time.")
	case otherOwner:
		c.refuseMore(w)
		return forerun.Errorf(forerun.Misdirected, "", "This connection belongs to another tenant. Send the request again over a new one.")
	}
	return nil
}

// isShared reports whether a request's connection has others at the same time.
func isShared(r *http.Request) bool { return r.ProtoMajor > 1 }

// endConn has the connection of a request take no other after this answer.
func endConn(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(clientKey{}).(client); ok {
		c.refuseMore(w)
	}
}
