package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"slices"
	"sync"
	"time"

	"forerun.dev/forerun/internal/registry"
)

const (
	lasts       = 12 * time.Hour // a session, from its login
	mostOfATime = 32             // sessions of a tenant: one more ends the oldest
)

// session is a login. A request belongs to it that shows both secrets: the cookie has id, which no script can read, and the page keeps
// token, which no other origin can read. Another origin of the same host can read or set neither of the two for the console's page.
type session struct {
	id, token string
	namespace string
	key       registry.Credentials
	ends      time.Time
	ctx       context.Context // done when the session has ended: so are its requests
	end       context.CancelFunc
	forget    func() // stops the wait for the key to be void
}

// owns reports whether a token is the session's.
func (s *session) owns(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// sessions are those that have not ended. They are in memory alone: a server that starts again has none.
type sessions struct {
	mu   sync.Mutex // guards byID
	byID map[string]*session
}

// begin makes a session of a key that was authenticated. whenVoid has a function called once a key is void, until what it returns is called.
func (all *sessions) begin(namespace string, key registry.Credentials, whenVoid func(uuid string, f func()) (stop func())) *session {
	s := &session{id: rand.Text() + rand.Text(), token: rand.Text() + rand.Text(), namespace: namespace, key: key, ends: time.Now().Add(lasts)}
	s.ctx, s.end = context.WithDeadline(context.Background(), s.ends)
	s.forget = whenVoid(key.UUID, s.end)
	all.mu.Lock()
	defer all.mu.Unlock()
	var of []*session
	for _, other := range all.byID {
		if other.namespace == namespace && other.ctx.Err() == nil { // one that has ended may still be there
			of = append(of, other)
		}
	}
	if len(of) >= mostOfATime {
		slices.MinFunc(of, func(a, b *session) int { return a.ends.Compare(b.ends) }).end()
	}
	if all.byID == nil {
		all.byID = make(map[string]*session)
	}
	all.byID[s.id] = s
	context.AfterFunc(s.ctx, func() { all.drop(s) })
	return s
}

// drop removes a session that has ended.
func (all *sessions) drop(s *session) {
	all.mu.Lock()
	delete(all.byID, s.id)
	all.mu.Unlock()
	s.forget()
}

// find returns the session that a cookie names; nil: there is none.
func (all *sessions) find(id string) *session {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.byID[id]; s != nil && s.ctx.Err() == nil {
		return s
	}
	return nil
}
