package resp

import (
	"slices"
	"sync"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// channels are who listens to what, in the spaces of a store.
type channels struct {
	mu     sync.RWMutex // guards the rest; a subscriber's mu is taken under it
	spaces map[string]*listeners
}

// listeners are those of one space, by the names of channels and by patterns of names.
type listeners struct{ named, patterns map[string][]*subscriber }

func (l *listeners) of(patterns bool) map[string][]*subscriber {
	if patterns {
		return l.patterns
	}
	return l.named
}

func (c *channels) add(s *subscriber, space, name string, pattern bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.spaces[space]
	if l == nil {
		l = &listeners{make(map[string][]*subscriber), make(map[string][]*subscriber)}
		c.spaces[space] = l
	}
	l.of(pattern)[name] = append(l.of(pattern)[name], s)
}

func (c *channels) remove(s *subscriber, space, name string, pattern bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.spaces[space]
	rest := slices.DeleteFunc(slices.Clone(l.of(pattern)[name]), func(other *subscriber) bool { return other == s })
	if l.of(pattern)[name] = rest; len(rest) == 0 {
		delete(l.of(pattern), name)
	}
	if len(l.named)+len(l.patterns) == 0 {
		delete(c.spaces, space)
	}
}

// in finds who listens in a space. mu is held.
func (c *channels) in(space string) listeners {
	if l := c.spaces[space]; l != nil {
		return *l
	}
	return listeners{}
}

// publish hands a message to all who listen to a channel, and returns how many times.
func (c *channels) publish(space, name, text string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	l := c.in(space)
	n := int64(0)
	for _, s := range l.named[name] {
		s.hand("message", name, text)
		n++
	}
	for pattern, subscribers := range l.patterns {
		if !command.Match([]byte(pattern), []byte(name)) {
			continue
		}
		for _, s := range subscribers {
			s.hand("pmessage", pattern, name, text)
			n++
		}
	}
	return n
}

// names lists the channels of a space that somebody listens to by name, and that match a pattern if there is one.
func (c *channels) names(space string, pattern []byte) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var names []string
	for name := range c.in(space).named {
		if pattern == nil || command.Match(pattern, []byte(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// count is how many listen to a channel by its name.
func (c *channels) count(space, name string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return int64(len(c.in(space).named[name]))
}

// patterns is how many patterns of a space somebody listens to.
func (c *channels) patterns(space string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return int64(len(c.in(space).patterns))
}

// maxUnread is how many bytes of messages wait for a subscriber; one that is slower is cut, as by Redis.
const maxUnread = 32 << 20

// subscriber is a connection that has listened to a channel.
type subscriber struct {
	wake chan struct{} // holds one when there are messages
	cut  func()        // ends the connection

	mu       sync.Mutex // guards the rest
	messages [][]string
	size     int // bytes of the messages
}

// hand leaves a message with a subscriber. The hub's mu is held.
func (s *subscriber) hand(message ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range message {
		s.size += len(part) + 16
	}
	if s.size > maxUnread {
		s.cut()
		return
	}
	s.messages = append(s.messages, message)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take takes the messages that have come.
func (s *subscriber) take() []state.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	replies := make([]state.Reply, len(s.messages))
	for i, message := range s.messages {
		replies[i].Kind = state.Push
		for _, part := range message {
			replies[i].Items = append(replies[i].Items, bulk(part))
		}
	}
	s.messages, s.size = nil, 0
	return replies
}
