package resp

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// client executes a subcommand of CLIENT.
func (c *conn) client(ctx context.Context, args [][]byte) state.Reply {
	switch command.Subcommand(args) {
	case "id":
		return integer(c.id)
	case "info":
		return listed([]client{{conn: c, id: c.id, profile: c.shown.get()}})
	case "list":
		return c.listClients(args[2:])
	case "kill":
		return c.killClients(ctx, args[2:])
	case "unblock":
		return c.unblockClient(ctx, args[2:])
	case "tracking":
		return c.track(ctx, args[2:])
	case "trackinginfo":
		return c.trackingInfo()
	case "getredir":
		return c.redirection()
	case "caching":
		return c.cache(args[2])
	case "reply":
		return c.switchReplies(args[2])
	case "getname":
		if c.name == "" {
			return state.Reply{Kind: state.Nil}
		}
		return bulk(c.name)
	case "setname":
		if !validName(string(args[2])) {
			return badName()
		}
		c.name = string(args[2])
		return okReply()
	case "setinfo":
		return c.setInfo(string(args[2]), string(args[3]))
	case "no-evict":
		return turn(&c.noEvict, args[2])
	}
	return turn(&c.noTouch, args[2])
}

// turn turns something on or off.
func turn(what *bool, word []byte) state.Reply {
	on := bytes.EqualFold(word, []byte("on"))
	if !on && !bytes.EqualFold(word, []byte("off")) {
		return syntaxError()
	}
	*what = on
	return okReply()
}

func syntaxError() state.Reply { return failure("ERR syntax error") }

func notInteger() state.Reply { return failure("ERR value is not an integer or out of range") }

// setInfo keeps what a client library says of itself.
func (c *conn) setInfo(attribute, value string) state.Reply {
	i := 0
	switch strings.ToLower(attribute) {
	case "lib-name":
	case "lib-ver":
		i = 1
	default:
		return failure("ERR Unrecognized option '" + attribute + "'")
	}
	if !validName(value) {
		return failure("ERR " + strings.ToLower(attribute) + " cannot contain spaces, newlines or special characters.")
	}
	c.library[i] = value
	return okReply()
}

// switchReplies has the client get replies, or none, or none to this command and the next.
func (c *conn) switchReplies(word []byte) state.Reply {
	switch command.Lower(word) {
	case "on":
		c.mute, c.skips = false, false
	case "off":
		c.mute = true
	case "skip":
		c.skips, c.skipsNext = true, !c.mute
	default:
		return syntaxError()
	}
	return okReply()
}

// listed is a list of connections.
func listed(list []client) state.Reply {
	var text strings.Builder
	for _, c := range list {
		text.WriteString(c.String())
	}
	return state.Reply{Kind: state.Verbatim, Text: []byte(text.String())}
}

// listClients lists the connections of the space, all or those of a type or with some ids.
func (c *conn) listClients(args [][]byte) state.Reply {
	all := c.space.clients.list()
	switch {
	case len(args) == 0:
		return listed(all)
	case len(args) == 2 && bytes.EqualFold(args[0], []byte("type")):
		kind, known := kinds[command.Lower(args[1])]
		if !known {
			return failure("ERR Unknown client type '" + string(args[1]) + "'")
		}
		return listed(slices.DeleteFunc(all, func(c client) bool { return c.kind() != kind }))
	case len(args) > 1 && bytes.EqualFold(args[0], []byte("id")):
		var found []client
		for _, arg := range args[1:] {
			id, ok := number(arg)
			if !ok {
				return failure("ERR Invalid client ID")
			}
			if i, ok := slices.BinarySearchFunc(all, id, func(c client, id int64) int { return int(c.id - id) }); ok {
				found = append(found, all[i])
			}
		}
		return listed(found)
	}
	return syntaxError()
}

// number reads an integer as Redis does.
func number(arg []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(arg), 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == string(arg)
}

// filter is what CLIENT KILL asks for.
type filter struct {
	id                    int64
	kind, user            string
	address, localAddress string
	maxAge                int64 // seconds that a connection must have lasted
	spareMe               bool
}

func (f *filter) matches(c client) bool {
	return (f.address == "" || f.address == c.conn.net.RemoteAddr().String()) &&
		(f.localAddress == "" || f.localAddress == c.conn.net.LocalAddr().String()) &&
		(f.kind == "" || f.kind == c.kind()) && (f.id == 0 || f.id == c.id) && (f.user == "" || f.user == c.user) &&
		f.maxAge <= int64(time.Since(c.conn.since).Seconds())
}

// parseFilter reads the options of CLIENT KILL. Users are those of the connections that there are.
func parseFilter(args [][]byte, all []client) (f filter, refusal *state.Reply) {
	refuse := func(text string) (filter, *state.Reply) {
		r := failure("ERR " + text)
		return filter{}, &r
	}
	f.spareMe = true
	if len(args)%2 != 0 {
		return refuse("syntax error")
	}
	for option := range slices.Chunk(args, 2) {
		value := string(option[1])
		switch command.Lower(option[0]) {
		case "id":
			var ok bool
			if f.id, ok = number(option[1]); !ok || f.id < 1 {
				return refuse("client-id should be greater than 0")
			}
		case "type":
			var known bool
			if f.kind, known = kinds[command.Lower(option[1])]; !known {
				return refuse("Unknown client type '" + value + "'")
			}
		case "addr":
			f.address = value
		case "laddr":
			f.localAddress = value
		case "user":
			f.user = value
			if value != "default" && !slices.ContainsFunc(all, func(c client) bool { return c.user == value }) {
				return refuse("No such user '" + value + "'")
			}
		case "maxage":
			var ok bool
			if f.maxAge, ok = number(option[1]); !ok || f.maxAge < 1 {
				return refuse("maxage is not an integer or out of range")
			}
		case "skipme":
			f.spareMe = strings.EqualFold(value, "yes")
			if !f.spareMe && !strings.EqualFold(value, "no") {
				return refuse("syntax error")
			}
		default:
			return refuse("syntax error")
		}
	}
	return f, nil
}

// killClients ends connections of the space: the one with an address, or all that the options match.
func (c *conn) killClients(ctx context.Context, args [][]byte) state.Reply {
	all := c.space.clients.list()
	f := filter{address: string(args[0])}
	if len(args) > 1 {
		var refusal *state.Reply
		if f, refusal = parseFilter(args, all); refusal != nil {
			return *refusal
		}
	}
	if err := c.session.Hold(ctx, command.Held("client kill"), nil); err != nil {
		return c.failed(ctx, err)
	}
	killed := int64(0)
	for _, other := range c.space.clients.list() {
		switch {
		case !f.matches(other) || f.spareMe && other.conn == c:
			continue
		case other.conn == c:
			c.leaving = true
		default:
			other.kill(c.space)
		}
		killed++
	}
	switch {
	case len(args) > 1:
		return integer(killed)
	case killed == 0:
		return failure("ERR No such client")
	}
	return okReply()
}

// unblockClient ends the wait of a blocked client of the space, as if its time were over or with an error.
func (c *conn) unblockClient(ctx context.Context, args [][]byte) state.Reply {
	result := outcome{reply: nothing()}
	switch {
	case len(args) == 1 || len(args) == 2 && bytes.EqualFold(args[1], []byte("timeout")):
	case len(args) == 2 && bytes.EqualFold(args[1], []byte("error")):
		result.reply = failure("UNBLOCKED client unblocked via CLIENT UNBLOCK")
	case len(args) == 2:
		return failure("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	default:
		return failure("ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.")
	}
	id, ok := number(args[0])
	if !ok {
		return notInteger()
	}
	if err := c.session.Hold(ctx, command.Held("client unblock"), nil); err != nil {
		return c.failed(ctx, err)
	}
	if other := c.space.clients.find(id); other != nil {
		if w := other.shown.get().waiter; w != nil && w.space.isBlocked(w) && w.space.unblock(w, result) {
			return integer(1)
		}
	}
	return integer(0)
}
