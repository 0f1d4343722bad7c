package resp

import (
	"context"
	"maps"
	"slices"
	"sync"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// channels are who listens to what in a space.
type channels struct {
	mu              sync.RWMutex             // guards the rest; a subscriber's mu is taken under it
	named, patterns map[string][]*subscriber // by the names of channels and by patterns of names
}

func (c *channels) of(patterns bool) map[string][]*subscriber {
	if patterns {
		return c.patterns
	}
	return c.named
}

func (c *channels) add(s *subscriber, name string, pattern bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(pattern)[name] = append(c.of(pattern)[name], s)
}

func (c *channels) remove(s *subscriber, name string, pattern bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(c.of(pattern)[name]), func(other *subscriber) bool { return other == s })
	if c.of(pattern)[name] = rest; len(rest) == 0 {
		delete(c.of(pattern), name)
	}
}

// publish hands a message to all who listen to a channel, and returns how many times. If ctx ends before it is known who does, nobody gets it.
func (c *channels) publish(ctx context.Context, name, text string) (int64, error) {
	a := addressees{channel: name, matcher: command.NewMatcher(ctx), tried: make(map[string]bool)}
	for {
		for _, pattern := range c.list(true) { // that may take long, so nobody waits for it but who asks
			a.try(pattern)
		}
		if err := a.matcher.Err(); err != nil {
			return 0, err
		}
		if n, ok := c.deliver(&a, text); ok {
			return n, nil
		}
	}
}

// addressees are who is to get a message: who listens to a channel, or to a pattern that matches it.
type addressees struct {
	channel string
	matcher *command.Matcher
	tried   map[string]bool // patterns, and whether they match
}

// try notes whether a pattern matches, if that is not known.
func (a *addressees) try(pattern string) {
	if _, known := a.tried[pattern]; !known {
		a.tried[pattern] = a.matcher.Match([]byte(pattern), []byte(a.channel))
	}
}

// matchedAtOnce bounds the bytes of patterns times those of a name that are matched while those wait who begin to listen.
const matchedAtOnce = 1 << 20

// complete tries those patterns to which somebody listens only since they were listed: whoever has begun with one and then with the channel
// gets both. It reports false if that takes long.
func (c *channels) complete(a *addressees) bool {
	work := 0
	for pattern := range c.patterns {
		if _, known := a.tried[pattern]; known {
			continue
		}
		if work += (len(pattern) + 1) * (len(a.channel) + 1); work > matchedAtOnce {
			return false
		}
		a.try(pattern)
	}
	return a.matcher.Err() == nil
}

// deliver hands out a message, if it is known to whom.
func (c *channels) deliver(a *addressees, text string) (n int64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.complete(a) {
		return 0, false
	}
	for _, s := range c.named[a.channel] {
		s.hand("message", a.channel, text)
		n++
	}
	for pattern, list := range c.patterns {
		if !a.tried[pattern] {
			continue
		}
		for _, s := range list {
			s.hand("pmessage", pattern, a.channel, text)
			n++
		}
	}
	return n, true
}

// list lists the names of channels, or the patterns, that somebody listens to.
func (c *channels) list(patterns bool) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Keys(c.of(patterns)))
}

// names lists the channels that somebody listens to by name, and that match a pattern if there is one, as long as ctx lasts.
func (c *channels) names(ctx context.Context, pattern []byte) ([]string, error) {
	m := command.NewMatcher(ctx)
	names := slices.DeleteFunc(c.list(false), func(name string) bool { return pattern != nil && !m.Match(pattern, []byte(name)) })
	slices.Sort(names)
	return names, m.Err()
}

// count is how many listen to a channel by its name.
func (c *channels) count(name string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return int64(len(c.named[name]))
}

// patternCount is how many patterns somebody listens to.
func (c *channels) patternCount() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return int64(len(c.patterns))
}

// maxUnread is how many bytes of messages wait for a subscriber; one that is slower is cut, as by Redis, and so is one if its space has no room for more.
const maxUnread = 32 << 20

// message is what a subscriber is told: of a channel, or that a record has changed.
type message struct {
	parts   []string
	invalid bool // it is the name of a record
}

// reply is a message as it is sent.
func (m message) reply() state.Reply {
	if m.invalid {
		return push(bulk("invalidate"), state.Reply{Kind: state.Array, Items: []state.Reply{bulk(m.parts[0])}})
	}
	r := state.Reply{Kind: state.Push}
	for _, part := range m.parts {
		r.Items = append(r.Items, bulk(part))
	}
	return r
}

// subscriber is a connection that has listened to a channel, or is told of changes.
type subscriber struct {
	wake chan struct{} // holds one when there are messages
	cut  func()        // ends the connection
	name string        // of its space

	mu       sync.Mutex // guards the rest
	messages []message
	size     int   // bytes of the messages,
	sending  int   // and of those that were taken and are not sent
	held     share // of the room for what is large
}

// hand leaves a message with a subscriber.
func (s *subscriber) hand(parts ...string) { s.leave(message{parts: parts}) }

// invalidate tells a subscriber that a record has changed.
func (s *subscriber) invalidate(name string) { s.leave(message{parts: []string{name}, invalid: true}) }

func (s *subscriber) leave(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range m.parts {
		s.size += len(part) + 16
	}
	if unread := s.size + s.sending; unread > maxUnread || unread > restingBuffer && !s.held.change(s.name, unread) {
		s.cut()
		return
	}
	s.messages = append(s.messages, m)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take takes the messages that have come, for a client that speaks a protocol. They count until sent.
func (s *subscriber) take(protocol int) []state.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	replies := make([]state.Reply, 0, len(s.messages))
	for _, m := range s.messages {
		if !m.invalid || protocol == 3 { // RESP2 has no form for it
			replies = append(replies, m.reply())
		}
	}
	s.sending += s.size
	s.messages, s.size = nil, 0
	return replies
}

// sent hears that what was taken is sent, or counts elsewhere.
func (s *subscriber) sent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = 0
	left := s.size
	if left <= restingBuffer {
		left = 0
	}
	s.held.change(s.name, left)
}
