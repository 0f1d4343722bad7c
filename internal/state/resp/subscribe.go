package resp

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// subscription is what a connection listens to. Messages come while it does other things, so a goroutine of their own
// sends them; it and the connection's take turns at writing.
type subscription struct {
	*subscriber
	space           *space
	names, patterns map[string]bool
	size            int // bytes of these, about
	end             chan struct{}
	sending         sync.WaitGroup // the goroutine that sends messages
	writing         sync.Mutex     // held by who writes to the connection, and guards its protocol
	held            bool           // by the connection's goroutine, until it has flushed
}

// list is what the connection listens to by name, or by pattern.
func (s *subscription) list(patterns bool) map[string]bool {
	if patterns {
		return s.patterns
	}
	return s.names
}

// count is to how much it listens; 0 if it never began.
func (s *subscription) count() int64 {
	if s == nil {
		return 0
	}
	return int64(len(s.names) + len(s.patterns))
}

// bytes is about what the connection's names take, the messages aside, which count by themselves; nothing if it never began.
func (s *subscription) bytes() int {
	if s == nil {
		return 0
	}
	return s.size
}

// hold keeps messages back until the connection has flushed: the first message of a channel comes behind the reply to
// SUBSCRIBE, and none behind that to UNSUBSCRIBE.
func (s *subscription) hold() {
	if !s.held {
		s.writing.Lock()
		s.held = true
	}
}

func (s *subscription) release() {
	if s.held {
		s.held = false
		s.writing.Unlock()
	}
}

// hears says whether messages may come to the connection: of channels, or of changes.
func (c *conn) hears() bool { return c.listens() || c.tracking != nil }

// listens says whether the connection listens to anything.
func (c *conn) listens() bool { return c.sub.count() > 0 }

// listening is the connection's subscription, which is made when it is needed first.
func (c *conn) listening() *subscription {
	if c.sub == nil {
		c.sub = &subscription{space: c.space, names: make(map[string]bool), patterns: make(map[string]bool), end: make(chan struct{})}
		c.sub.subscriber = &subscriber{
			wake: make(chan struct{}, 1), cut: sync.OnceFunc(func() { go c.net.Close() }), name: c.session.Space(), held: share{room: c.server.room},
		}
		c.sub.sending.Go(c.sendMessages)
	}
	return c.sub
}

// subscribe begins to listen to channels, or to patterns of their names.
func (c *conn) subscribe(word string, names [][]byte, patterns bool) {
	c.listening().hold()
	list := c.sub.list(patterns)
	for _, name := range names {
		if !list[string(name)] && c.sub.count() >= maxSubscriptions {
			c.answer(failure("ERR The connection listens to too many channels. Unsubscribe from some, or use a pattern."))
			return
		}
		if !list[string(name)] {
			list[string(name)] = true
			c.sub.size += entrySize + len(name)
			c.sub.space.channels.add(c.sub.subscriber, string(name), patterns)
		}
		c.answer(push(bulk(word), bulk(string(name)), integer(c.sub.count())))
	}
}

// maxSubscriptions is how many channels and patterns a connection can listen to.
const maxSubscriptions = 1 << 16

// unsubscribe ends that; without names, of all.
func (c *conn) unsubscribe(word string, names [][]byte, patterns bool) {
	var list map[string]bool
	if c.sub != nil {
		list = c.sub.list(patterns)
	}
	if len(names) == 0 {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			names = append(names, []byte(name))
		}
	}
	if len(names) == 0 {
		c.answer(push(bulk(word), state.Reply{Kind: state.Nil}, integer(c.sub.count())))
		return
	}
	for _, name := range names {
		if list[string(name)] {
			delete(list, string(name))
			c.sub.size -= entrySize + len(name)
			c.sub.hold()
			c.sub.space.channels.remove(c.sub.subscriber, string(name), patterns)
			c.takeMessages()
		}
		c.answer(push(bulk(word), bulk(string(name)), integer(c.sub.count())))
	}
}

func push(items ...state.Reply) state.Reply { return state.Reply{Kind: state.Push, Items: items} }

// takeMessages puts the messages that have come among the replies. The connection's goroutine holds the writing.
func (c *conn) takeMessages() {
	for _, message := range c.sub.take(c.protocol) {
		c.answer(message)
	}
	c.sub.sent()
}

// sendMessages sends messages as they come, until the end.
func (c *conn) sendMessages() {
	s := c.sub
	for {
		select {
		case <-s.wake:
		case <-s.end:
			return
		}
		s.writing.Lock()
		var out []byte
		for _, message := range s.take(c.protocol) {
			out = appendReply(out, message, c.protocol)
		}
		_, err := c.net.Write(out)
		s.sent()
		s.writing.Unlock()
		if err != nil {
			return // the connection ends
		}
	}
}

// forsake ends all that the connection listens to, and what sends messages.
func (c *conn) forsake() {
	c.endTracking()
	if c.sub == nil {
		return
	}
	for _, patterns := range []bool{false, true} {
		for name := range c.sub.list(patterns) {
			c.sub.space.channels.remove(c.sub.subscriber, name, patterns)
		}
	}
	c.sub.release()
	close(c.sub.end)
	c.sub.sending.Wait()
	c.sub.take(c.protocol) // nobody reads them
	c.sub.sent()
	c.sub = nil
	c.session.Listens(false)
}

// allowedListening are the commands that a RESP2 client can use while it listens.
var allowedListening = []string{"subscribe", "psubscribe", "unsubscribe", "punsubscribe", "ping", "quit", "reset"}

// isForListeners says whether a command can be used while the client listens: in RESP2 nobody could tell the reply to
// another from a message.
func (c *conn) isForListeners(spec *command.Spec) bool {
	return c.protocol == 3 || !c.listens() || spec == nil || slices.Contains(allowedListening, spec.Name)
}

func refuseListener(spec *command.Spec) state.Reply {
	return failure("ERR Can't execute '" + spec.Name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
}

// isSubscription says whether a command begins or ends listening.
func isSubscription(spec *command.Spec) bool {
	return strings.HasSuffix(spec.Name, "subscribe") && isAnswered(spec)
}

// subscriptionCommand executes such a command, which has a reply for each channel.
func (c *conn) subscriptionCommand(ctx context.Context, spec *command.Spec, args [][]byte) {
	if refusal := spec.Refuse(args); refusal != nil {
		c.answer(*refusal)
		return
	}
	patterns, ends := strings.HasPrefix(spec.Name, "p"), strings.HasSuffix(spec.Name, "unsubscribe")
	if ends && !c.listens() {
		c.unsubscribe(spec.Name, args[1:], patterns)
		return
	}
	c.session.Listens(true) // before its activation may end
	if c.sub != nil {
		c.sub.hold() // which may wait for a client that reads nothing: nothing else of the activation is to
	}
	err := c.session.Hold(ctx, command.Held(spec.Name), func() {
		if ends {
			c.unsubscribe(spec.Name, args[1:], patterns)
		} else {
			c.subscribe(spec.Name, args[1:], patterns)
		}
	})
	if err != nil {
		c.answer(c.failed(ctx, err))
	}
	c.session.Listens(c.hears())
}

// publish sends a message to all who listen to a channel. What was written before is on disk before they hear of it.
func (c *conn) publish(ctx context.Context, args [][]byte) state.Reply {
	if err := c.session.Hold(ctx, command.Held("publish"), nil); err != nil {
		return c.failed(ctx, err)
	}
	if c.rests > 0 {
		if err := c.session.Durable(ctx, c.rests); err != nil {
			return c.failed(ctx, err)
		}
	}
	ctx, end := c.attended(ctx)
	defer end()
	n, err := c.space.channels.publish(ctx, string(args[1]), string(args[2]))
	if err != nil {
		return c.failed(ctx, err)
	}
	return integer(n)
}

// attended is the context of what the door does itself and may take long: it lasts as long as the client, and the activation, wait for it.
func (c *conn) attended(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.session.Waits(), cancel)
	c.ear.open()
	return ctx, func() {
		c.ear.shut()
		stop()
		cancel()
	}
}

// pubsub tells who listens.
func (c *conn) pubsub(ctx context.Context, args [][]byte) state.Reply {
	if err := c.session.Hold(ctx, command.Held("pubsub"), nil); err != nil {
		return c.failed(ctx, err)
	}
	reply := state.Reply{Kind: state.Array}
	channels := &c.space.channels
	switch command.Subcommand(args) {
	case "channels":
		var pattern []byte
		if len(args) > 2 {
			pattern = args[2]
		}
		ctx, end := c.attended(ctx)
		defer end()
		names, err := channels.names(ctx, pattern)
		if err != nil {
			return c.failed(ctx, err)
		}
		for _, name := range names {
			reply.Items = append(reply.Items, bulk(name))
		}
		return reply
	case "numpat":
		return integer(channels.patternCount())
	}
	for _, name := range args[2:] {
		reply.Items = append(reply.Items, bulk(string(name)), integer(channels.count(string(name))))
	}
	return reply
}
