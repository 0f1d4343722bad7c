package resp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
	"forerun.dev/forerun/internal/state/places"
)

// maxPending is how many bytes of replies are held back for one wait.
const maxPending = 256 << 10

// conn is one connection; its goroutine owns it.
type conn struct {
	server *Server
	net    net.Conn
	since  time.Time

	first    Session // that of its beginning, and after RESET
	session  Session // nil: it has to authenticate
	space    *space  // that of the session
	id       int64   // in that
	leave    func()  // gives back its seat
	protocol int     // 2 or 3
	user     string
	name     string // CLIENT SETNAME
	library  [2]string
	noEvict  bool // CLIENT NO-EVICT
	noTouch  bool
	cut      func() // ends it
	shown    shown  // to others of the space

	tracking *tracker // since CLIENT TRACKING ON; nil: off
	caching  bool     // CLIENT CACHING was called just before

	mute      bool          // CLIENT REPLY OFF
	skips     bool          // the reply to the command at work
	skipsNext bool          // and that to the next
	multi     *transaction  // since MULTI; nil: outside
	watching  *watch        // since WATCH; nil: nothing
	sub       *subscription // since SUBSCRIBE; nil: it never was

	turn *places.Turn
	work int // bytes of work since the turn was told

	parser  parser
	ear     ear
	out     []byte          // replies not sent
	pending int             // how many
	rests   forerun.Version // on which they rest
	held    share           // of the room for what is large
	awaited int             // bytes of the command that waits for records, and of these
	made    int             // bytes of the reply at work, which is not among those in out yet
	leaving bool            // close when they are sent
}

// serve executes what comes in until the connection ends.
func (c *conn) serve(ctx context.Context) {
	defer c.end()
	for {
		c.parser.stranger = c.session == nil
		args, complete, err := c.parser.next()
		switch {
		case err != nil:
			c.answer(failure("ERR " + err.Error()))
			_ = c.flush(ctx) // it is closed in any case
			return
		case complete:
			before := len(c.out)
			c.execute(ctx, args)
			c.works(ctx, args, len(c.out)-before)
			if !c.leaving && len(c.out) < maxPending {
				continue
			}
		}
		if !c.takeRoom(ctx) || c.flush(ctx) != nil || c.leaving {
			return
		}
		if !complete {
			if !c.takeRoom(ctx) || c.parser.fill(c.net) != nil { // what was sent takes no room any more
				return
			}
			c.shown.set(func(p *profile) { p.heard = time.Now() })
		}
	}
}

// workOfCommand is what a short command takes, in bytes of work.
const workOfCommand = 2 << 10

// works counts the work on a command, which needs a place if the connection goes on without a pause.
func (c *conn) works(ctx context.Context, args [][]byte, answered int) {
	c.work += workOfCommand + max(0, answered)
	for _, arg := range args {
		c.work += len(arg)
	}
	if c.work < places.Step {
		return
	}
	space := ""
	if c.session != nil {
		space = c.session.Space()
	}
	_ = c.turn.Work(ctx, space, c.work) // that the context has ended is seen at the next read or write
	c.work = 0
}

// takeRoom sees to it that there is room for what the connection holds now, and for what it is going to read. If there is not,
// the client is told, as far as it listens, and the connection must end.
func (c *conn) takeRoom(ctx context.Context) bool {
	if c.hasRoom() || c.awaitRoom(ctx) {
		return true
	}
	c.out = nil
	_ = c.net.SetWriteDeadline(time.Now().Add(time.Second)) // it is closed in any case
	_, _ = fmt.Fprintf(c.net, "-%s\r\n", c.noRoom())
	return false
}

// awaitRoom waits, where there is no room, for the turn of an activation that is ahead, and reports whether there is some then: what others
// hold that are before it is given back by that time, and it must not be told what it would not be told in its turn.
func (c *conn) awaitRoom(ctx context.Context) bool {
	return c.session != nil && c.session.Hold(ctx, forerun.Because(forerun.ReasonConnectionMemory), nil) == nil && c.hasRoom()
}

// awaitRoomFor is awaitRoom if there is none for a reply, which answer counts.
func (c *conn) awaitRoomFor(ctx context.Context, reply state.Reply) {
	if !c.makes(replySize(reply)) {
		c.awaitRoom(ctx)
	}
	c.made = 0
}

func (c *conn) hasRoom() bool {
	bytes := 0
	for _, size := range []int{
		c.parser.size(), c.parser.places(), cap(c.out), c.multi.bytes(), c.watching.bytes(), c.sub.bytes(), c.tracking.bytes(), c.awaited, c.made,
		len(c.name) + len(c.library[0]) + len(c.library[1]),
	} {
		if size > restingBuffer {
			bytes += size
		}
	}
	if bytes == 0 && c.held.bytes == 0 {
		return true
	}
	space := ""
	if c.session != nil {
		space = c.session.Space()
	}
	return c.held.changeWithin(space, bytes, c.mostHeld())
}

// mostHeld is how much the connections of the space may hold together for this one to hold more. An activation that is ahead leaves a half of
// that to those whose turn it is.
func (c *conn) mostHeld() int {
	if s, ok := c.session.(interface{ IsAhead() bool }); ok && s.IsAhead() {
		return c.held.room.most / 2
	}
	return c.held.room.most
}

func (c *conn) noRoom() string {
	return fmt.Sprintf("ERR The connections of this namespace hold more than %d MiB of unfinished commands, transactions, unread replies and "+
		"names that they wait for. Use fewer at a time.", c.held.room.most>>20)
}

// end takes the connection out of the hub, and gives back its room.
func (c *conn) end() {
	c.held.change(c.held.space, 0)
	c.unwatch()
	if c.sub != nil {
		_ = c.net.Close() // so that nobody goes on writing; it is closed in any case
		c.forsake()
	}
	c.leave()
}

// execute runs one command and keeps the reply.
func (c *conn) execute(ctx context.Context, args [][]byte) {
	if len(args) == 0 {
		return
	}
	spec := command.Known(args[0])
	c.skips, c.skipsNext = c.skipsNext, false
	c.show(spec, args)
	switch {
	case !c.isForListeners(spec):
		c.answer(refuseListener(spec))
	case c.multi != nil && (spec == nil || !slices.Contains(atOnce, spec.Name)):
		c.answer(c.enqueue(spec, args))
	case c.session != nil && spec != nil && isSubscription(spec):
		c.subscriptionCommand(ctx, spec, args)
	case spec != nil && isAnswered(spec):
		reply := c.connectionCommand(ctx, spec, args)
		c.awaitRoomFor(ctx, reply)
		c.answer(reply)
	case c.session != nil && spec != nil && spec.Flags&command.Blocking != 0:
		c.answer(c.block(ctx, spec, args))
	case c.session == nil:
		c.answer(failure("NOAUTH Authentication required."))
	default:
		reply := c.do(ctx, spec, args)
		c.settle(ctx, spec, args)
		c.answer(reply)
	}
	if c.multi == nil && (spec == nil || spec.Name != "client") {
		c.caching = false
	}
	if c.multi != nil || spec != nil && isAnswered(spec) {
		c.shown.set(c.describeTo)
	}
}

// do passes a command to the session.
func (c *conn) do(ctx context.Context, spec *command.Spec, args [][]byte) state.Reply {
	spec, args, err := c.withScript(ctx, spec, args)
	if err == nil {
		err = c.giveWay(ctx, spec, args)
	}
	if err != nil {
		return c.failed(ctx, err)
	}
	at := cursorAt(spec)
	c.remember(spec, args)
	c.ear.open()
	c.space.beginOwn(c.tracking)
	reply, version, err := c.session.Do(ctx, c.withPosition(at, args))
	c.space.endOwn(c.tracking, version)
	c.ear.shut()
	if err != nil {
		return c.failed(ctx, err)
	}
	c.rests = max(c.rests, version)
	reply = c.delivered(ctx, reply)
	c.awaitRoomFor(ctx, reply)
	return c.withNumber(at, reply)
}

// giveWay holds a command that writes until its activation's turn if anybody waits for its records: they are served before the
// activation goes on, which it would not see if it was ahead.
func (c *conn) giveWay(ctx context.Context, spec *command.Spec, args [][]byte) error {
	if keys := c.writes(spec, args); c.space.isAwaited(keys) {
		return c.session.Hold(ctx, command.HeldForWaiter(spec.Name), nil)
	}
	return nil
}

// settle waits, after a command that writes, until those have looked who wait for its records.
func (c *conn) settle(ctx context.Context, spec *command.Spec, args [][]byte) {
	c.space.settle(ctx, c.writes(spec, args))
}

// writes are the records that a command writes, as long as anybody waits for any.
func (c *conn) writes(spec *command.Spec, args [][]byte) (keys []forerun.Key) {
	if c.space.blocked.Load() == 0 || spec == nil || spec.Flags&command.Write == 0 {
		return nil
	}
	for i := range spec.KeyPositions(args) {
		keys = append(keys, forerun.Key{Space: c.session.Space(), Name: string(args[i])})
	}
	return keys
}

// failed answers that the session could not do something.
func (c *conn) failed(ctx context.Context, err error) state.Reply {
	c.leaving = ctx.Err() != nil
	if refusal, ok := errors.AsType[Refusal](err); ok {
		return failure(string(refusal))
	}
	return broken(err)
}

// broken answers with an error of the store.
func broken(err error) state.Reply {
	switch forerun.KindOf(err) { // as Redis, whose clients know these
	case forerun.Full:
		return failure("MISCONF " + err.Error())
	case forerun.OverQuota:
		return failure("OOM " + err.Error())
	}
	return failure("ERR " + err.Error())
}

// answer keeps a reply. What there is no room for is not written: many large ones at a time would fill the memory before they are sent.
func (c *conn) answer(r state.Reply) {
	if !c.makes(replySize(r)) {
		c.leaving = true
		r = failure(c.noRoom())
	}
	c.made = 0
	if (c.mute || c.skips) && r.Kind != state.Push {
		return
	}
	c.out = appendReply(c.out, r, c.protocol)
	c.pending++
}

// makes counts bytes of the reply at work, and reports whether there is room for it.
func (c *conn) makes(bytes int) bool {
	c.made += bytes
	return c.made <= restingBuffer || c.hasRoom()
}

// flush sends the replies once what they rest on is on disk. If it does not get there, each becomes an error.
func (c *conn) flush(ctx context.Context) error {
	c.turn.Leave() // it may wait for the disk, or for the client
	if len(c.out) == 0 {
		if c.sub != nil {
			c.sub.release()
		}
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err() // it is killed, and told nothing
	}
	if c.rests > 0 {
		if err := c.session.Durable(ctx, c.rests); err != nil {
			c.refuseAll(err)
		}
	}
	if c.sub != nil {
		c.sub.hold()
		defer c.sub.release()
	}
	_, err := c.net.Write(c.out)
	c.out, c.pending, c.rests = c.out[:0], 0, 0
	if cap(c.out) > restingBuffer {
		c.out = nil
	}
	return err
}

// refuseAll takes back all replies: whether the writes they speak of are on disk is not known.
func (c *conn) refuseAll(err error) {
	c.out = c.out[:0]
	for range c.pending {
		c.out = appendReply(c.out, broken(err), c.protocol)
	}
	c.leaving = true
}

func failure(text string) state.Reply { return state.Reply{Kind: state.Error, Text: []byte(text)} }

func okReply() state.Reply { return state.Reply{Kind: state.Simple, Text: []byte("OK")} }

func bulk(text string) state.Reply { return state.Reply{Kind: state.Bulk, Text: []byte(text)} }

func integer(n int64) state.Reply { return state.Reply{Kind: state.Integer, Int: n} }

// authenticate changes the session to that of a user.
func (c *conn) authenticate(ctx context.Context, user, password string) (refusal *state.Reply) {
	if c.server.options.Authenticate == nil {
		if user == "default" {
			return nil
		}
		r := wrongPassword()
		return &r
	}
	session, err := c.server.options.Authenticate(ctx, user, password)
	if err == nil {
		if c.flush(ctx) != nil { // what it rests on is the old session's to wait for
			c.leaving = true
		}
		if c.session != nil && c.session.Space() != session.Space() {
			c.unwatch()
			c.forsake()
		}
		if !c.join(session) {
			c.leaving = true
			r := failure(noSeat)
			return &r
		}
		c.user = user
		return nil
	}
	r := wrongPassword()
	if e, ok := errors.AsType[*forerun.Error](err); !ok || e.Kind != forerun.Unauthorized {
		r = failure("ERR " + err.Error())
	}
	return &r
}

// noSeat is what Redis says to one client too many.
const noSeat = "ERR max number of clients reached"

// join takes the connection to the space of a session, or among the strangers. It reports false, and leaves it where it is, if the
// space has no seat for it.
func (c *conn) join(session Session) bool {
	if session == nil {
		leave := c.server.seats.Stand(func() { _ = c.net.Close() })
		c.move(nil, nil, 0, leave)
		return true
	}
	name := session.Space()
	its := c.server.hub.space(name)
	if its == c.space {
		c.session = session
		return true
	}
	give, ok := c.server.seats.Take(name)
	if ok {
		id := its.lastID.Add(1)
		its.conns.Add(1)
		c.move(session, its, id, func() {
			its.clients.remove(id)
			its.conns.Add(-1)
			give()
		})
		its.clients.add(c, id)
	}
	return ok
}

// move has the connection leave where it was.
func (c *conn) move(session Session, its *space, id int64, leave func()) {
	if c.leave != nil {
		c.leave()
	}
	c.session, c.space, c.id, c.leave = session, its, id, leave
}

func wrongPassword() state.Reply {
	return failure("WRONGPASS invalid username-password pair or user is disabled.")
}
