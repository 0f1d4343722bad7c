package resp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"forerun.dev/forerun/internal/state/command"
)

// clients are the connections of a space, by their ids. No connection sees those of another space.
type clients struct {
	mu   sync.Mutex // guards the rest
	byID map[int64]*conn
}

func (s *clients) add(c *conn, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[int64]*conn)
	}
	s.byID[id] = c
}

func (s *clients) remove(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// find is the connection with an id; nil if there is none.
func (s *clients) find(id int64) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// list is every connection, in the order of the ids.
func (s *clients) list() []client {
	s.mu.Lock()
	all := make([]client, 0, len(s.byID))
	for id, c := range s.byID {
		all = append(all, client{conn: c, id: id})
	}
	s.mu.Unlock()
	for i, c := range all {
		all[i].profile = c.conn.shown.get()
	}
	slices.SortFunc(all, func(a, b client) int { return cmp.Compare(a.id, b.id) })
	return all
}

// client is a connection as others of its space see it.
type client struct {
	conn *conn
	id   int64
	profile
}

// profile is what a connection's goroutine tells of it.
type profile struct {
	user, name      string
	library         [2]string
	protocol        int
	queued          int // commands since MULTI; -1: outside
	multiBytes      int
	names, patterns int // to which it listens
	tracks          bool
	broadcast       bool
	noEvict         bool
	noTouch         bool
	last            string    // command
	heard           time.Time // when it sent something last
	waiter          *waiter   // as which it may be blocked
}

// shown is the profile of a connection where others read it.
type shown struct {
	mu      sync.Mutex // guards the rest
	profile profile
}

func (s *shown) get() profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.profile
}

func (s *shown) set(change func(p *profile)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.profile)
}

// show tells others of the connection, which is about to execute a command.
func (c *conn) show(spec *command.Spec, args [][]byte) {
	c.shown.set(func(p *profile) {
		p.last = lastCommand(spec, args)
		c.describeTo(p)
	})
}

func lastCommand(spec *command.Spec, args [][]byte) string {
	switch {
	case spec == nil:
		return "NULL"
	case spec.HasSubcommands() && len(args) > 1:
		return spec.Name + "|" + command.Subcommand(args)
	}
	return spec.Name
}

// describeTo tells what a connection is.
func (c *conn) describeTo(p *profile) {
	p.user, p.name, p.library, p.protocol = cmp.Or(c.user, "default"), c.name, c.library, c.protocol
	p.tracks, p.broadcast = c.tracking != nil, c.tracking != nil && c.tracking.broadcast
	p.noEvict, p.noTouch = c.noEvict, c.noTouch
	p.queued, p.multiBytes = -1, c.multi.bytes()
	if c.multi != nil {
		p.queued = len(c.multi.queue)
	}
	p.names, p.patterns = 0, 0
	if c.sub != nil {
		p.names, p.patterns = len(c.sub.names), len(c.sub.patterns)
	}
}

// String is the connection in the form of CLIENT LIST. It does not tell the connection's memory.
func (c *client) String() string {
	now, redirection := time.Now(), -1
	if c.tracks {
		redirection = 0
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=0 name=%s age=%d idle=%d flags=%s db=0 sub=%d psub=%d ssub=0 multi=%d "+
		"qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=%d rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s\n",
		c.id, c.conn.net.RemoteAddr(), c.conn.net.LocalAddr(), c.name, int(now.Sub(c.conn.since).Seconds()), int(now.Sub(c.heard).Seconds()),
		c.flags(), c.names, c.patterns, c.queued, c.multiBytes, c.last, c.user, redirection, c.protocol, c.library[0], c.library[1])
}

// flags are the letters that CLIENT LIST has for what a connection does.
func (c *client) flags() string {
	var flags strings.Builder
	for _, f := range []struct {
		letter byte
		set    bool
	}{
		{'P', c.names+c.patterns > 0},
		{'x', c.queued >= 0},
		{'b', c.conn.isBlocked(c.waiter)},
		{'t', c.tracks},
		{'B', c.broadcast},
		{'e', c.noEvict},
		{'T', c.noTouch},
	} {
		if f.set {
			flags.WriteByte(f.letter)
		}
	}
	return cmp.Or(flags.String(), "N")
}

// isBlocked says whether a connection is blocked as a waiter.
func (c *conn) isBlocked(w *waiter) bool {
	return w != nil && w.space.isBlocked(w)
}

// kind is the type of a connection in the words of CLIENT LIST TYPE.
func (c *client) kind() string {
	if c.names+c.patterns > 0 {
		return "pubsub"
	}
	return "normal"
}

// kinds are the types of connections that Redis has; Forerun has no replicas.
var kinds = map[string]string{"normal": "normal", "pubsub": "pubsub", "master": "master", "replica": "replica", "slave": "replica"}

// kill ends another's connection. It is served nothing any more.
func (c *client) kill(of *space) {
	of.clients.remove(c.id)
	c.conn.cut()
	if w := c.waiter; w != nil {
		w.space.unblock(w, outcome{reply: nothing()})
	}
}
