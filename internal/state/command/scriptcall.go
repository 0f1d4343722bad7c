package command

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/lua"
)

// The version that scripts are told, as the door tells it.
const (
	scriptVersion    = "7.4.0"
	scriptVersionNum = 0x070400
)

// ofRedis is what scripts see as redis.
var ofRedis struct {
	once    sync.Once // makes the rest
	library *lua.Table
}

func redisLibrary() *lua.Table {
	ofRedis.once.Do(func() { ofRedis.library = newRedisLibrary() })
	return ofRedis.library
}

func newRedisLibrary() *lua.Table {
	none := func(*lua.Call) []lua.Value { return nil }
	return lua.Library(map[string]lua.Value{
		"LOG_DEBUG": 0.0, "LOG_VERBOSE": 1.0, "LOG_NOTICE": 2.0, "LOG_WARNING": 3.0,
		"REPL_NONE": 0.0, "REPL_AOF": 1.0, "REPL_SLAVE": 2.0, "REPL_REPLICA": 2.0, "REPL_ALL": 3.0,
		"REDIS_VERSION": scriptVersion, "REDIS_VERSION_NUM": float64(scriptVersionNum),
	},
		lua.NewFunction("acl_check_cmd", mayCall),
		lua.NewFunction("breakpoint", func(*lua.Call) []lua.Value { return []lua.Value{false} }),
		lua.NewFunction("call", func(c *lua.Call) []lua.Value { return call(c, true) }),
		lua.NewFunction("debug", none),
		lua.NewFunction("error_reply", errorReply),
		lua.NewFunction("log", logLine),
		lua.NewFunction("pcall", func(c *lua.Call) []lua.Value { return call(c, false) }),
		lua.NewFunction("replicate_commands", func(*lua.Call) []lua.Value { return []lua.Value{true} }),
		lua.NewFunction("set_repl", none),
		lua.NewFunction("setresp", setProtocol),
		lua.NewFunction("sha1hex", func(c *lua.Call) []lua.Value {
			if len(c.Args()) != 1 {
				throw(c, "ERR wrong number of arguments")
			}
			text, _ := argument(c.Args()[0])
			c.Charge(len(text))
			c.Looks(shaWork * len(text))
			return []lua.Value{c.Text([]byte(ScriptSHA(text)))}
		}),
		lua.NewFunction("status_reply", func(c *lua.Call) []lua.Value { return []lua.Value{single(c, "ok")} }),
	)
}

// shaWork is the work of a byte of a SHA-1.
const shaWork = 4

// throw throws an error of Redis.
func throw(c *lua.Call, message string) { c.Throw(lua.NewTable("err", message)) }

// single makes the table of a function that takes one text.
func single(c *lua.Call, field string) *lua.Table {
	c.Charge(tableCost + entryCost)
	if len(c.Args()) == 1 {
		if text, is := c.Args()[0].(string); is {
			return lua.NewTable(field, text)
		}
	}
	return lua.NewTable("err", "ERR wrong number or type of arguments")
}

func errorReply(c *lua.Call) []lua.Value {
	t := single(c, "err")
	text := strings.TrimPrefix(t.Get("err").(string), "-")
	c.Charge(len(text))
	if !strings.Contains(text, " ") { // it is no code with a message
		text = "ERR " + text
	}
	t.Set("err", text)
	return []lua.Value{t}
}

// logLine checks its arguments as Redis does. There is no log that they could go to.
func logLine(c *lua.Call) []lua.Value {
	switch {
	case len(c.Args()) < 2:
		throw(c, "ERR redis.log() requires two arguments or more.")
	default:
		level, is := c.Args()[0].(float64)
		if !is {
			throw(c, "ERR First argument must be a number (log level).")
		}
		if level < 0 || level > 3 {
			throw(c, "ERR Invalid debug level.")
		}
	}
	return nil
}

func setProtocol(c *lua.Call) []lua.Value {
	if len(c.Args()) != 1 {
		throw(c, "ERR redis.setresp() requires one argument.")
	}
	version, is := c.Args()[0].(float64)
	if !is || version != 2 && version != 3 {
		throw(c, "ERR RESP version must be 2 or 3.")
	}
	c.Host().(*running).protocol = int(version)
	return nil
}

// mayCall says whether there is a command: whoever may run scripts may call all.
func mayCall(c *lua.Call) []lua.Value {
	if len(c.Args()) == 0 {
		throw(c, "ERR Please specify at least one argument for this redis.acl_check_cmd() call")
	}
	name, ok := argument(c.Args()[0])
	if !ok || Known(name) == nil {
		throw(c, "ERR Invalid command passed to redis.acl_check_cmd()")
	}
	return []lua.Value{true}
}

// argument is a value as the argument of a command.
func argument(v lua.Value) ([]byte, bool) {
	switch v := v.(type) {
	case string:
		return []byte(v), true
	case float64:
		if n := int64(v); float64(n) == v && v > -1e15 && v < 1e15 {
			return strconv.AppendInt(nil, n, 10), true
		}
		return []byte(lua.FormatDouble(v, 17)), true
	}
	return nil, false
}

// maxScriptWork is how much work a script and its commands may do. The last command goes to its end.
const maxScriptWork = 2 * lua.MaxWork

// call is redis.call, which throws what a command refuses, and redis.pcall, which returns it.
func call(c *lua.Call, throws bool) []lua.Value {
	r := c.Host().(*running)
	if r.overlay.all-r.begun > maxScriptWork {
		c.TakesTooLong()
	}
	reply := r.call(c)
	if r.err != nil {
		c.Stop(r.err)
	}
	v := r.value(c, reply)
	if throws && reply.Kind == state.Error {
		c.Throw(v)
	}
	return []lua.Value{v}
}

// call executes a command of the script.
func (r *running) call(c *lua.Call) state.Reply {
	if len(c.Args()) == 0 {
		return failure("ERR Please specify at least one argument for this redis lib call")
	}
	args := make([][]byte, len(c.Args()))
	for i, v := range c.Args() {
		var ok bool
		if args[i], ok = argument(v); !ok {
			return failure("ERR Lua redis lib command arguments must be strings or integers")
		}
		c.Charge(len(args[i]) + itemSize)
	}
	spec := Known(args[0])
	switch {
	case spec == nil:
		return failure("ERR Unknown Redis command called from script")
	case !spec.AcceptsArity(len(args)):
		return failure("ERR Wrong number of args calling Redis command from script")
	case slices.Contains(spec.Facts().Flags, "noscript"):
		return failure("ERR This Redis command is not allowed from script")
	}
	if refusal := spec.Refuse(args); refusal != nil {
		return *refusal
	}
	if spec.run == nil {
		return r.callDoor(spec, args)
	}
	if r.readOnly && spec.Access(args)&Write != 0 {
		return failure("ERR Write commands are not allowed from read-only scripts.")
	}
	if r.reach(spec, args); r.err != nil {
		return state.Reply{}
	}
	if len(args[0]) > 0 && r.overlay.size > maxStep {
		r.err = tooMuchWritten()
		return state.Reply{}
	}
	one := txn{overlay: r.overlay, spec: spec, space: r.space, now: r.now}
	one.work(workOfArg * len(args))
	reply := spec.run(&one, args)
	r.err = one.err
	return reply
}

// callDoor executes those of the door's commands that concern no connection.
func (r *running) callDoor(spec *Spec, args [][]byte) state.Reply {
	switch spec.Name {
	case "ping":
		switch len(args) {
		case 1:
			return state.Reply{Kind: state.Simple, Text: []byte("PONG")}
		case 2:
			return bulk(args[1])
		}
		return failure("ERR wrong number of arguments for 'ping' command")
	case "echo":
		return bulk(args[1])
	case "select":
		if string(args[1]) != "0" {
			return failure("ERR DB index is out of range")
		}
		return ok()
	case "time":
		r.needsTurn(forerun.ReasonUnversioned, spec.Name)
		seconds := strconv.AppendInt(nil, r.now/1000, 10)
		return array([]state.Reply{bulk(seconds), bulk(strconv.AppendInt(nil, r.now%1000*1000, 10))})
	case "publish":
		r.needsTurn(forerun.ReasonPublishes, spec.Name)
		r.show(args[1])
		r.show(args[2])
		r.messages = append(r.messages, bulk(args[1]), bulk(args[2]))
		return integer(0)
	}
	return failure("ERR This Redis command is not allowed from script")
}
