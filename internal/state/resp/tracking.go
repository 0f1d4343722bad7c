package resp

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// Client-side caching, as Redis has it: a client keeps what it reads, and is told when a record that it has read changes (CLIENT TRACKING).
// It is told once for each reading. The message comes behind the reply to that reading, so a client that forgets what it is told of
// does not keep what has changed. Only RESP3 has a form for such messages, so a RESP2 client is told nothing.

// tracker is what a connection is told of.
type tracker struct {
	to             *subscriber
	broadcast      bool     // of every change of the records whose names begin with one of these, read or not
	prefixes       []string // none: of all
	optIn, optOut  bool     // reads count after CLIENT CACHING YES only, or unless it was NO
	noLoop         bool     // not of its own changes
	size           atomic.Int64
	keys           map[forerun.Key]bool // that it has read; the space's mu guards this and the rest
	writes         bool                 // a command of its own is at work, so with noLoop it is told later
	changedBetween []changeOf
}

// changeOf is a change of a record.
type changeOf struct {
	key     forerun.Key
	version forerun.Version
}

// What a connection may have read at most: beyond, it is told to forget something.
const (
	maxTracked      = 1 << 16
	maxTrackedBytes = 16 << 20
)

// bytes is about what a tracker takes; none takes nothing.
func (t *tracker) bytes() int {
	if t == nil {
		return 0
	}
	return int(t.size.Load())
}

// track notes that a client reads a record.
func (s *space) track(t *tracker, key forerun.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.keys[key] {
		return
	}
	t.keys[key] = true
	s.tracked[key] = append(s.tracked[key], t)
	s.parts.Add(1)
	t.size.Add(int64(entrySize + len(key.Name)))
	for old := range t.keys {
		if len(t.keys) <= maxTracked && t.size.Load() <= maxTrackedBytes {
			return
		}
		s.untrack(t, old)
		t.to.invalidate(old.Name)
	}
}

// untrack forgets that a client has read a record. The space's mu is held.
func (s *space) untrack(t *tracker, key forerun.Key) {
	delete(t.keys, key)
	s.parts.Add(-1)
	t.size.Add(-int64(entrySize + len(key.Name)))
	rest := slices.DeleteFunc(s.tracked[key], func(other *tracker) bool { return other == t })
	if s.tracked[key] = rest; len(rest) == 0 {
		delete(s.tracked, key)
	}
}

// beginTracking begins to tell of changes, and stopTracking ends it.
func (s *space) beginTracking(t *tracker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.broadcast && !slices.Contains(s.broadcasts, t) {
		s.broadcasts = append(s.broadcasts, t)
		s.parts.Add(1)
	}
}

func (s *space) stopTracking(t *tracker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range t.keys {
		s.untrack(t, key)
	}
	if i := slices.Index(s.broadcasts, t); i >= 0 {
		s.broadcasts = slices.Delete(s.broadcasts, i, i+1)
		s.parts.Add(-1)
	}
}

// invalidate tells those that a change of a record concerns. The space's mu is held.
func (s *space) invalidate(key forerun.Key, version forerun.Version) {
	for _, t := range slices.Clone(s.tracked[key]) {
		s.untrack(t, key)
		t.tell(key, version)
	}
	for _, t := range s.broadcasts {
		begins := func(prefix string) bool { return strings.HasPrefix(key.Name, prefix) }
		if len(t.prefixes) == 0 || slices.ContainsFunc(t.prefixes, begins) {
			t.tell(key, version)
		}
	}
}

func (t *tracker) tell(key forerun.Key, version forerun.Version) {
	if t.writes {
		t.changedBetween = append(t.changedBetween, changeOf{key, version})
		return
	}
	t.to.invalidate(key.Name)
}

// adopt gives a tracker the options of another, and the prefixes of both.
func (s *space) adopt(t, wanted *tracker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.optIn, t.optOut, t.noLoop = wanted.optIn, wanted.optOut, wanted.noLoop
	t.prefixes = append(t.prefixes, wanted.prefixes...)
}

// beginOwn says that a command of a client is at work that is not to be told of its own changes; endOwn, that it has made those of a version.
func (s *space) beginOwn(t *tracker) {
	if t == nil || !t.noLoop {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.writes = true
}

func (s *space) endOwn(t *tracker, version forerun.Version) {
	if t == nil || !t.noLoop {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.writes = false
	for _, change := range t.changedBetween {
		if change.version != version {
			t.to.invalidate(change.key.Name)
		}
	}
	t.changedBetween = nil
}

// remember notes which records a command reads, before it does.
func (c *conn) remember(spec *command.Spec, args [][]byte) {
	t := c.tracking
	if t == nil {
		return
	}
	c.sub.hold() // what it is told comes behind the reply
	if t.broadcast || t.optIn && !c.caching || t.optOut && c.caching || spec == nil ||
		spec.Flags&(command.Read|command.Write) != command.Read || !spec.AcceptsArity(len(args)) {
		return
	}
	for i := range spec.KeyPositions(args) {
		c.space.track(t, c.key(args[i]))
	}
}

// track executes CLIENT TRACKING.
func (c *conn) track(ctx context.Context, args [][]byte) state.Reply {
	on := bytes.EqualFold(args[0], []byte("on"))
	wanted, refusal := parseTracking(args[1:])
	switch {
	case refusal != "":
		return failure("ERR " + refusal)
	case !on && !bytes.EqualFold(args[0], []byte("off")):
		return syntaxError()
	case !on && c.tracking == nil:
		return okReply()
	}
	if on {
		if refusal := wanted.conflict(c.tracking); refusal != "" {
			return failure("ERR " + refusal)
		}
	}
	c.session.Listens(true) // before its activation may end
	err := c.session.Hold(ctx, command.Held("client tracking"), func() {
		if on {
			c.startTracking(wanted)
		} else {
			c.endTracking()
		}
	})
	c.session.Listens(c.hears())
	if err != nil {
		return c.failed(ctx, err)
	}
	return okReply()
}

// parseTracking reads the options of CLIENT TRACKING.
func parseTracking(args [][]byte) (t *tracker, refusal string) {
	t = &tracker{keys: make(map[forerun.Key]bool)}
	for i := 0; i < len(args); i++ {
		switch option := command.Lower(args[i]); {
		case option == "bcast":
			t.broadcast = true
		case option == "optin":
			t.optIn = true
		case option == "optout":
			t.optOut = true
		case option == "noloop":
			t.noLoop = true
		case option == "prefix" && i+1 < len(args):
			i++
			t.prefixes = append(t.prefixes, string(args[i]))
		case option == "redirect" && i+1 < len(args):
			return nil, "Forerun's embedded store does not have CLIENT TRACKING with REDIRECT: use RESP3 (HELLO 3)"
		default:
			return nil, "syntax error"
		}
	}
	return t, ""
}

// conflict says why the options contradict each other, or those that there are; "" if they do not.
func (t *tracker) conflict(now *tracker) string {
	if len(t.prefixes) > 0 && !t.broadcast {
		return "PREFIX option requires BCAST mode to be enabled"
	}
	if now != nil && now.broadcast != t.broadcast {
		return "You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
	}
	switch {
	case t.broadcast && (t.optIn || t.optOut):
		return "OPTIN and OPTOUT are not compatible with BCAST"
	case t.optIn && t.optOut:
		return "You can't specify both OPTIN mode and OPTOUT mode"
	case now != nil && (t.optIn && now.optOut || t.optOut && now.optIn):
		return "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
	}
	for i, prefix := range t.prefixes {
		if now != nil {
			if other, overlaps := overlap(prefix, now.prefixes); overlaps {
				return "Prefix '" + prefix + "' overlaps with an existing prefix '" + other + "'. Prefixes for a single client must not overlap."
			}
		}
		if other, overlaps := overlap(prefix, t.prefixes[i+1:]); overlaps {
			return "Prefix '" + prefix + "' overlaps with another provided prefix '" + other + "'. Prefixes for a single client must not overlap."
		}
	}
	return ""
}

func overlap(prefix string, with []string) (other string, overlaps bool) {
	i := slices.IndexFunc(with, func(other string) bool { return strings.HasPrefix(prefix, other) || strings.HasPrefix(other, prefix) })
	if i < 0 {
		return "", false
	}
	return with[i], true
}

// startTracking begins to tell the client of changes, or goes on with other options.
func (c *conn) startTracking(wanted *tracker) {
	if now := c.tracking; now != nil {
		c.space.adopt(now, wanted)
		return
	}
	wanted.to = c.listening().subscriber
	c.tracking = wanted
	c.space.beginTracking(wanted)
}

// endTracking ends that.
func (c *conn) endTracking() {
	if c.tracking != nil {
		c.space.stopTracking(c.tracking)
		c.tracking = nil
	}
}

// cache executes CLIENT CACHING: whether the records count that the next command reads.
func (c *conn) cache(word []byte) state.Reply {
	t := c.tracking
	switch {
	case t == nil || !t.optIn && !t.optOut:
		return failure("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case bytes.EqualFold(word, []byte("yes")) && !t.optIn:
		return failure("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case bytes.EqualFold(word, []byte("no")) && !t.optOut:
		return failure("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	case !bytes.EqualFold(word, []byte("yes")) && !bytes.EqualFold(word, []byte("no")):
		return syntaxError()
	}
	c.caching = true
	return okReply()
}

// redirection is the connection that is told in this one's place: none, as far as there is tracking.
func (c *conn) redirection() state.Reply {
	if c.tracking == nil {
		return integer(-1)
	}
	return integer(0)
}

// trackingInfo answers CLIENT TRACKINGINFO.
func (c *conn) trackingInfo() state.Reply {
	flags := state.Reply{Kind: state.SetReply}
	add := func(flag string, set bool) {
		if set {
			flags.Items = append(flags.Items, bulk(flag))
		}
	}
	t := c.tracking
	prefixes := state.Reply{Kind: state.Array}
	add("off", t == nil)
	if t != nil {
		add("on", true)
		add("bcast", t.broadcast)
		add("optin", t.optIn)
		add("caching-yes", t.optIn && c.caching)
		add("optout", t.optOut)
		add("caching-no", t.optOut && c.caching)
		add("noloop", t.noLoop)
		for _, prefix := range t.prefixes {
			prefixes.Items = append(prefixes.Items, bulk(prefix))
		}
	}
	return state.Reply{Kind: state.MapReply, Items: []state.Reply{
		bulk("flags"), flags, bulk("redirect"), c.redirection(), bulk("prefixes"), prefixes,
	}}
}
