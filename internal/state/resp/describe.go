package resp

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// info answers INFO, whose sections client libraries read when they connect. Of clients it tells those of the space.
func (c *conn) info(args [][]byte) state.Reply {
	sections := []struct{ name, text string }{
		{"server", fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nos:Linux\r\n", redisVersion)},
		{"clients", fmt.Sprintf("# Clients\r\nconnected_clients:%d\r\nmaxclients:%d\r\nblocked_clients:%d\r\n", c.space.conns.Load(), c.server.options.MaxConns, c.space.asleep.Load())},
		{"persistence", "# Persistence\r\nloading:0\r\n"},
		{"replication", "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"},
		{"cluster", "# Cluster\r\ncluster_enabled:0\r\n"},
	}
	wanted := make([]string, 0, len(args)-1)
	for _, arg := range args[1:] {
		wanted = append(wanted, strings.ToLower(string(arg)))
	}
	all := len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool { return w == "all" || w == "default" || w == "everything" })
	var text []string
	for _, s := range sections {
		if all || slices.Contains(wanted, s.name) {
			text = append(text, s.text)
		}
	}
	return state.Reply{Kind: state.Verbatim, Text: []byte(strings.Join(text, "\r\n"))}
}

// answered are the commands that the door itself executes.
var answered = []string{
	"auth", "client", "command", "config", "discard", "echo", "exec", "hello", "info", "multi", "ping", "psubscribe", "publish", "pubsub",
	"punsubscribe", "quit", "reset", "select", "subscribe", "time", "unsubscribe", "unwatch", "wait", "watch",
}

func isAnswered(s *command.Spec) bool { return !s.Implemented() && slices.Contains(answered, s.Name) }

// available lists what clients can use through the door.
var available = sync.OnceValue(func() []*command.Spec {
	return slices.DeleteFunc(command.All(), func(s *command.Spec) bool {
		return !s.Implemented() && !isAnswered(s)
	})
})

// descriptions are those of the available commands, each once: a client may ask for the same as often as it likes.
var descriptions = sync.OnceValue(func() map[*command.Spec]state.Reply {
	all := make(map[*command.Spec]state.Reply)
	for _, s := range available() {
		all[s] = describeOne(s)
	}
	return all
})

// describe answers COMMAND and its subcommands.
func describe(args [][]byte) state.Reply {
	switch command.Subcommand(args) {
	case "count":
		return integer(int64(len(available())))
	case "docs":
		return state.Reply{Kind: state.MapReply} // whoever asks goes by COMMAND INFO then
	case "list":
		reply := state.Reply{Kind: state.Array}
		for _, s := range available() {
			reply.Items = append(reply.Items, bulk(s.Name))
		}
		return reply
	}
	return describeNamed(args[min(2, len(args)):])
}

// describeNamed describes some commands, or all.
func describeNamed(names [][]byte) state.Reply {
	reply := state.Reply{Kind: state.Array}
	if len(names) == 0 {
		for _, s := range available() {
			reply.Items = append(reply.Items, descriptions()[s])
		}
	}
	for _, name := range names {
		item, known := descriptions()[command.Known(name)]
		if !known {
			item.Kind = state.NilArray
		}
		reply.Items = append(reply.Items, item)
	}
	return reply
}

// describeOne is a command as Redis 7 describes it: name, arity, flags, first key, last key, step, and four lists that
// are empty here (categories, tips, key specifications, subcommands).
func describeOne(s *command.Spec) state.Reply {
	flags := state.Reply{Kind: state.SetReply}
	add := func(flag string, on bool) {
		if on {
			flags.Items = append(flags.Items, state.Reply{Kind: state.Simple, Text: []byte(flag)})
		}
	}
	add("write", s.Flags&command.Write != 0)
	add("readonly", s.Flags&(command.Write|command.Read) == command.Read)
	add("blocking", s.Flags&command.Blocking != 0)
	add("noscript", s.Flags&command.Connection != 0)
	first, last, step := s.KeyRange()
	none := state.Reply{Kind: state.Array}
	return state.Reply{Kind: state.Array, Items: []state.Reply{
		bulk(s.Name), integer(int64(s.Arity)), flags, integer(int64(first)), integer(int64(last)), integer(int64(step)),
		{Kind: state.SetReply},
		none, none, none,
	}}
}
