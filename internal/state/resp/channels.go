package resp

import (
	"slices"
	"sync"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// channels are who listens to what, in the spaces of a store.
type channels struct {
	mu       sync.RWMutex // guards the rest; a subscriber's mu is taken under it
	named    map[channel][]*subscriber
	patterns map[channel][]*subscriber
}

// channel is the name of a channel, or a pattern of names.
type channel struct{ space, name string }

// of are those who listen to names, or to patterns.
func (c *channels) of(patterns bool) map[channel][]*subscriber {
	if patterns {
		return c.patterns
	}
	return c.named
}

func (c *channels) add(s *subscriber, ch channel, pattern bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	listeners := c.of(pattern)
	listeners[ch] = append(listeners[ch], s)
}

func (c *channels) remove(s *subscriber, ch channel, pattern bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	listeners := c.of(pattern)
	rest := slices.DeleteFunc(slices.Clone(listeners[ch]), func(other *subscriber) bool { return other == s })
	if len(rest) == 0 {
		delete(listeners, ch)
	} else {
		listeners[ch] = rest
	}
}

// publish hands a message to all who listen to a channel, and returns how many times.
func (c *channels) publish(ch channel, text string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := int64(0)
	for _, s := range c.named[ch] {
		s.hand("message", ch.name, text)
		n++
	}
	for pattern, listeners := range c.patterns {
		if pattern.space != ch.space || !command.Match([]byte(pattern.name), []byte(ch.name)) {
			continue
		}
		for _, s := range listeners {
			s.hand("pmessage", pattern.name, ch.name, text)
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
	for ch := range c.named {
		if ch.space == space && (pattern == nil || command.Match(pattern, []byte(ch.name))) {
			names = append(names, ch.name)
		}
	}
	slices.Sort(names)
	return names
}

// listeners is how many listen to a channel by its name.
func (c *channels) listeners(ch channel) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return int64(len(c.named[ch]))
}

// patternCount is how many patterns of a space somebody listens to.
func (c *channels) patternCount(space string) (n int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for pattern := range c.patterns {
		if pattern.space == space {
			n++
		}
	}
	return n
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
