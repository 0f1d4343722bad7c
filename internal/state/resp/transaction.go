package resp

import (
	"bytes"
	"context"
	"errors"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// transaction is what a client has queued since MULTI.
type transaction struct {
	queue   []queued
	size    int  // bytes of all commands, also of those that are not kept
	spoiled bool // a command was refused: EXEC will execute none, and none is kept
}

// queued is a command that waits for EXEC.
type queued struct {
	spec *command.Spec
	args [][]byte // its own
}

// bytes is what the queue takes; a transaction that has not begun takes nothing.
func (t *transaction) bytes() int {
	if t == nil || t.spoiled {
		return 0
	}
	return t.size
}

// atOnce are the commands that are executed within a transaction, not queued.
var atOnce = []string{"multi", "exec", "discard", "watch", "quit", "reset"}

// enqueue keeps a command for EXEC, or refuses it as the command itself would be.
func (c *conn) enqueue(spec *command.Spec, args [][]byte) state.Reply {
	refusal := admits(spec, args)
	if refusal == nil && isSubscription(spec) {
		not := failure("ERR Command not allowed inside a transaction")
		refusal = &not
	}
	if c.multi.size += commandSize(args); c.multi.size > c.server.maxTransaction() {
		full := failure("ERR The transaction is too large. Send it in several parts.")
		refusal = &full
	}
	if refusal != nil {
		c.multi.spoil()
		return *refusal
	}
	if !c.multi.spoiled {
		c.multi.queue = append(c.multi.queue, queued{spec, cloneArgs(args)})
	}
	return state.Reply{Kind: state.Simple, Text: []byte("QUEUED")}
}

func (t *transaction) spoil() { t.spoiled, t.queue = true, nil }

// commandSize is about what a queued command takes.
func commandSize(args [][]byte) int {
	size := 64
	for _, arg := range args {
		size += len(arg) + 24
	}
	return size
}

// maxTransaction is how many bytes a transaction may take: as much as the largest command.
func (s *Server) maxTransaction() int { return 2*s.options.MaxBulk + 1<<20 }

// entrySize is about what a name takes that a connection watches, waits for or listens to, beside its letters: it is in several lists.
const entrySize = 256

// maxWatched is how many records a connection can watch at a time.
const maxWatched = 1 << 16

// admits says why a command cannot be one of a transaction.
func admits(spec *command.Spec, args [][]byte) *state.Reply {
	if spec != nil && isAnswered(spec) {
		return spec.Refuse(args)
	}
	if found, refusal := command.Find(args); found == nil {
		return &refusal
	}
	return nil
}

// refuse refuses a command that is not queued; a transaction that lasts is spoiled, and EXEC ends it even so.
func (c *conn) refuse(spec *command.Spec, refusal state.Reply) state.Reply {
	if c.multi == nil {
		return refusal
	}
	c.multi.spoil()
	if spec.Name == "exec" {
		c.discard()
		refusal.Text = append([]byte("EXECABORT Transaction discarded because of:"), bytes.TrimPrefix(refusal.Text, []byte("ERR"))...)
	}
	return refusal
}

func (c *conn) begin() state.Reply {
	if c.multi != nil {
		return failure("ERR MULTI calls can not be nested")
	}
	c.multi = &transaction{}
	return okReply()
}

func (c *conn) discard() state.Reply {
	if c.multi == nil {
		return failure("ERR DISCARD without MULTI")
	}
	c.multi = nil
	c.unwatch()
	return okReply()
}

// watchKeys begins to watch records, so that the next EXEC is refused if one has changed.
func (c *conn) watchKeys(ctx context.Context, names [][]byte) state.Reply {
	if c.multi != nil {
		return failure("ERR WATCH inside MULTI is not allowed")
	}
	if c.watching == nil {
		c.watching = &watch{keys: make(map[forerun.Key]bool)}
	}
	if len(c.watching.keys)+len(names) > maxWatched {
		return failure("ERR Too many keys are watched. Watch fewer, or UNWATCH.")
	}
	if err := c.session.Hold(ctx, command.Held("watch"), nil); err != nil {
		return c.failed(ctx, err)
	}
	fresh := c.watching.fresh(c.session.Space(), names)
	if err := c.sweep(ctx, fresh); err != nil {
		return c.failed(ctx, err)
	}
	for _, key := range fresh {
		c.watching.keys[key] = true
		c.watching.size += entrySize + len(key.Name)
		c.space.watch(c.watching, key) // before its version is read: nothing between the two is missed
	}
	expect, err := c.session.Versions(ctx, fresh)
	if err != nil {
		return c.failed(ctx, err)
	}
	c.watching.expect = append(c.watching.expect, expect...)
	return okReply()
}

// sweep removes those of some records that have expired: that they are swept later is no change to who watches them.
func (c *conn) sweep(ctx context.Context, keys []forerun.Key) error {
	found, err := c.session.Versions(ctx, keys)
	if err != nil {
		return err
	}
	for _, e := range found {
		if e.Version != 0 {
			continue
		}
		touch := [][]byte{[]byte("GETEX"), []byte(e.Key.Name)} // which changes nothing that has not expired
		if _, _, err := c.session.Do(ctx, touch); err != nil {
			return err
		}
	}
	return nil
}

// fresh lists those of some records that are not watched yet, each once.
func (w *watch) fresh(space string, names [][]byte) []forerun.Key {
	seen := make(map[forerun.Key]bool, len(names))
	var keys []forerun.Key
	for _, name := range names {
		key := forerun.Key{Space: space, Name: string(name)}
		if !w.keys[key] && !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// unwatch forgets what was watched.
func (c *conn) unwatch() {
	if c.watching == nil {
		return
	}
	for key := range c.watching.keys {
		c.space.unwatch(c.watching, key)
	}
	c.watching = nil
}

// exec executes what was queued, as one step.
func (c *conn) exec(ctx context.Context) state.Reply {
	t := c.multi
	switch {
	case t == nil:
		return failure("ERR EXEC without MULTI")
	case t.spoiled:
		c.discard()
		return failure("EXECABORT Transaction discarded because of previous errors.")
	}
	c.multi = nil
	defer c.unwatch()
	var expect []state.Expect
	if c.watching != nil {
		expect = c.watching.expect
		if c.watching.touched.Load() {
			return state.Reply{Kind: state.NilArray}
		}
	}
	replies, err := c.execOnRecords(ctx, expect, t)
	if _, conflict := errors.AsType[*state.ConflictError](err); conflict {
		return state.Reply{Kind: state.NilArray}
	}
	if err != nil {
		return c.failed(ctx, err)
	}
	return c.results(ctx, t, replies)
}

// results joins what a transaction's commands answer with what the door does of them.
func (c *conn) results(ctx context.Context, t *transaction, replies []state.Reply) state.Reply {
	reply := state.Reply{Kind: state.Array, Items: make([]state.Reply, 0, len(t.queue))}
	defer func() { c.made = 0 }() // it is counted as a whole then
	for _, q := range t.queue {
		var item state.Reply
		if isAnswered(q.spec) {
			item = c.connectionCommand(ctx, q.spec, q.args)
		} else {
			item, replies = c.withNumber(cursorAt(q.spec), c.delivered(ctx, replies[0])), replies[1:]
		}
		if reply.Items = append(reply.Items, item); !c.makes(replySize(item)) && !c.awaitRoom(ctx) {
			c.leaving = true
			return failure(c.noRoom())
		}
	}
	return reply
}

// execOnRecords executes those of a transaction's commands that the session does. What the door does itself concerns no
// record, so it can follow.
func (c *conn) execOnRecords(ctx context.Context, expect []state.Expect, t *transaction) ([]state.Reply, error) {
	if err := c.withScripts(ctx, t); err != nil {
		return nil, err
	}
	var commands [][][]byte
	for _, q := range t.queue {
		if !isAnswered(q.spec) {
			commands = append(commands, c.withPosition(cursorAt(q.spec), q.args))
		}
	}
	if len(commands) == 0 && len(expect) == 0 {
		return nil, nil
	}
	for _, q := range t.queue {
		if err := c.giveWay(ctx, q.spec, q.args); err != nil {
			return nil, err
		}
	}
	for _, q := range t.queue {
		c.remember(q.spec, q.args)
	}
	c.ear.open()
	c.space.beginOwn(c.tracking)
	replies, version, err := c.session.Exec(ctx, expect, commands)
	c.space.endOwn(c.tracking, version)
	c.ear.shut()
	if err != nil {
		return nil, err
	}
	c.rests = max(c.rests, version)
	for _, q := range t.queue {
		c.settle(ctx, q.spec, q.args)
	}
	return replies, nil
}
