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
func (c *channels) publish(ctx context.Context, name, text string) (n int64, err error) {
	patterns, err := c.matching(ctx, name)
	if err != nil {
		return 0, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.named[name] {
		s.hand("message", name, text)
		n++
	}
	for _, pattern := range patterns {
		for _, s := range c.patterns[pattern] {
			s.hand("pmessage", pattern, name, text)
			n++
		}
	}
	return n, nil
}

// matching lists the patterns that match a name. That may take long, so nobody waits for it but who asks.
func (c *channels) matching(ctx context.Context, name string) ([]string, error) {
	m := command.NewMatcher(ctx)
	patterns := slices.DeleteFunc(c.list(true), func(pattern string) bool { return !m.Match([]byte(pattern), []byte(name)) })
	return patterns, m.Err()
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

// subscriber is a connection that has listened to a channel.
type subscriber struct {
	wake chan struct{} // holds one when there are messages
	cut  func()        // ends the connection
	name string        // of its space

	mu       sync.Mutex // guards the rest
	messages [][]string
	size     int   // bytes of the messages,
	sending  int   // and of those that were taken and are not sent
	held     share // of the room for what is large
}

// hand leaves a message with a subscriber.
func (s *subscriber) hand(message ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range message {
		s.size += len(part) + 16
	}
	if unread := s.size + s.sending; unread > maxUnread || unread > restingBuffer && !s.held.change(s.name, unread) {
		s.cut()
		return
	}
	s.messages = append(s.messages, message)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take takes the messages that have come. They count until sent.
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
