package resp

import (
	"bytes"
	"context"
	"strings"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// redisVersion is the Redis that clients take this for: 7.2's commands and replies are there, and from 7.4 on clients use client-side caching.
const redisVersion = "7.4.0"

// connectionCommand executes a command that is about the connection.
func (c *conn) connectionCommand(ctx context.Context, spec *command.Spec, args [][]byte) state.Reply {
	if refusal := spec.Refuse(args); refusal != nil {
		return c.refuse(spec, *refusal)
	}
	switch spec.Name {
	case "hello":
		return c.hello(ctx, args)
	case "auth":
		return c.auth(ctx, args)
	case "quit":
		c.leaving = true
		return okReply()
	case "reset":
		return c.reset(ctx)
	}
	switch {
	case c.session == nil:
		return failure("NOAUTH Authentication required.")
	case spec.IsHelp(args):
		return spec.Help()
	}
	return c.sessionCommand(ctx, spec, args)
}

// sessionCommand executes a command of a connection that is authenticated.
func (c *conn) sessionCommand(ctx context.Context, spec *command.Spec, args [][]byte) state.Reply {
	switch spec.Name {
	case "ping":
		return c.ping(args)
	case "echo":
		return bulk(string(args[1]))
	case "select":
		return selectDatabase(args[1])
	case "client":
		return c.client(ctx, args)
	case "command":
		return describe(args)
	case "info":
		return c.info(args)
	case "config":
		return c.config(args)
	case "time":
		return now(c.server.hub.now())
	case "wait":
		return waitForReplicas(args)
	case "publish":
		return c.publish(ctx, args)
	case "pubsub":
		return c.pubsub(ctx, args)
	case "script":
		return c.script(ctx, args)
	case "multi":
		return c.begin()
	case "exec":
		return c.exec(ctx)
	case "discard":
		return c.discard()
	case "watch":
		return c.watchKeys(ctx, args[1:])
	case "unwatch":
		c.unwatch()
		return okReply()
	}
	_, refusal := command.Find(args)
	return refusal
}

func (c *conn) ping(args [][]byte) state.Reply {
	if c.protocol == 2 && c.listens() && len(args) < 3 { // where it comes among messages, which are lists
		return state.Reply{Kind: state.Array, Items: []state.Reply{bulk("pong"), bulk(string(bytes.Join(args[1:], nil)))}}
	}
	switch len(args) {
	case 1:
		return state.Reply{Kind: state.Simple, Text: []byte("PONG")}
	case 2:
		return bulk(string(args[1]))
	}
	return failure("ERR wrong number of arguments for 'ping' command")
}

func selectDatabase(index []byte) state.Reply {
	n, valid := length(index)
	switch {
	case !valid:
		return failure("ERR value is not an integer or out of range")
	case n != int(int32(n)):
		return failure("ERR value is out of range, value must between -2147483648 and 2147483647")
	case n != 0:
		return failure("ERR DB index is out of range")
	}
	return okReply()
}

// reset makes the connection what it was when it was accepted.
func (c *conn) reset(ctx context.Context) state.Reply {
	if c.listens() {
		if err := c.session.Hold(ctx, command.Held("reset"), nil); err != nil {
			return c.failed(ctx, err)
		}
	}
	if c.flush(ctx) != nil {
		c.leaving = true
	}
	c.unwatch()
	c.forsake()
	c.protocol, c.user, c.name, c.multi = 2, "", "", nil
	c.mute, c.skips, c.noEvict, c.noTouch = false, false, false, false
	if !c.join(c.first) {
		c.leaving = true
		return failure(noSeat)
	}
	return state.Reply{Kind: state.Simple, Text: []byte("RESET")}
}

func (c *conn) auth(ctx context.Context, args [][]byte) state.Reply {
	if len(args) > 3 {
		return failure("ERR syntax error")
	}
	user, password := "default", args[1]
	if len(args) == 3 {
		user, password = string(args[1]), args[2]
	} else if c.server.options.Authenticate == nil {
		return failure("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	}
	if refusal := c.authenticate(ctx, user, string(password)); refusal != nil {
		return *refusal
	}
	return okReply()
}

func (c *conn) hello(ctx context.Context, args [][]byte) state.Reply {
	protocol := c.protocol
	if len(args) > 1 {
		var valid bool
		if protocol, valid = length(args[1]); !valid {
			return failure("ERR Protocol version is not an integer or out of range")
		}
		if protocol != 2 && protocol != 3 {
			return failure("NOPROTO unsupported protocol version")
		}
	}
	name, refusal := c.helloOptions(ctx, args[min(2, len(args)):])
	if refusal != nil {
		return *refusal
	}
	if c.session == nil {
		return failure("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	if name != nil {
		c.name = *name
	}
	if c.sub != nil {
		c.sub.hold() // until the reply is sent
	}
	c.protocol = protocol
	return state.Reply{Kind: state.MapReply, Items: []state.Reply{
		bulk("server"), bulk("redis"), bulk("version"), bulk(redisVersion), bulk("proto"), integer(int64(protocol)),
		bulk("id"), integer(c.id), bulk("mode"), bulk("standalone"), bulk("role"), bulk("master"),
		bulk("modules"),
		{Kind: state.Array},
	}}
}

// helloOptions carries out AUTH, and returns the name of SETNAME if it was given.
func (c *conn) helloOptions(ctx context.Context, args [][]byte) (name *string, refusal *state.Reply) {
	var credentials [][]byte
	for i := 0; i < len(args); {
		rest := len(args) - i - 1
		switch {
		case strings.EqualFold(string(args[i]), "AUTH") && rest >= 2:
			credentials = args[i+1 : i+3]
			i += 3
		case strings.EqualFold(string(args[i]), "SETNAME") && rest >= 1:
			given := string(args[i+1])
			if !validName(given) {
				r := badName()
				return nil, &r
			}
			name = &given
			i += 2
		default:
			r := failure("ERR Syntax error in HELLO option '" + string(args[i]) + "'")
			return nil, &r
		}
	}
	if credentials != nil {
		refusal = c.authenticate(ctx, string(credentials[0]), string(credentials[1]))
	}
	return name, refusal
}

func validName(name string) bool {
	for _, b := range []byte(name) {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

func badName() state.Reply {
	return failure("ERR Client names cannot contain spaces, newlines or special characters.")
}
