package resp

import (
	"bytes"
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
	"punsubscribe", "quit", "reset", "script", "select", "subscribe", "time", "unsubscribe", "unwatch", "wait", "watch",
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
		return document(args[2:])
	case "list":
		return list(args[2:])
	case "getkeys":
		return command.GetKeys(args[2:], false)
	case "getkeysandflags":
		return command.GetKeys(args[2:], true)
	}
	return describeNamed(args[min(2, len(args)):])
}

// list answers COMMAND LIST: the names of all commands, or of those that a filter lets through, and of their subcommands.
func list(args [][]byte) state.Reply {
	reply := state.Reply{Kind: state.Array}
	if len(args) == 0 {
		for _, s := range available() {
			reply.Items = append(reply.Items, bulk(s.Name))
		}
		return reply
	}
	if len(args) != 3 || command.Lower(args[0]) != "filterby" {
		return syntaxError()
	}
	var passes func(s *command.Spec, name string) bool
	switch command.Lower(args[1]) {
	case "module":
		return reply // there are no modules
	case "aclcat":
		passes = func(s *command.Spec, _ string) bool {
			return slices.Contains(s.Facts().Categories, command.Lower(args[2]))
		}
	case "pattern":
		passes = func(_ *command.Spec, name string) bool { return command.Match(bytes.ToLower(args[2]), []byte(name)) }
	default:
		return syntaxError()
	}
	for _, s := range available() {
		for _, name := range append([]string{s.Name}, fullNames(s)...) {
			if passes(s, name) {
				reply.Items = append(reply.Items, bulk(name))
			}
		}
	}
	return reply
}

// fullNames are those of a command's subcommands.
func fullNames(s *command.Spec) []string {
	names := s.Subcommands()
	for i, name := range names {
		names[i] = s.Name + "|" + name
	}
	return names
}

// document answers COMMAND DOCS, without what is for people to read.
func document(names [][]byte) state.Reply {
	reply := state.Reply{Kind: state.MapReply}
	for _, s := range available() {
		isNamed := func(name []byte) bool { return command.Known(name) == s }
		if len(names) == 0 || slices.ContainsFunc(names, isNamed) {
			reply.Items = append(reply.Items, bulk(s.Name), documentOne(s))
		}
	}
	return reply
}

func documentOne(s *command.Spec) state.Reply {
	items := []state.Reply{bulk("since"), bulk(s.Facts().Since), bulk("group"), bulk(s.Facts().Group)}
	if names := fullNames(s); names != nil {
		subcommands := state.Reply{Kind: state.MapReply}
		for _, name := range names {
			subcommands.Items = append(subcommands.Items, bulk(name), state.Reply{Kind: state.MapReply, Items: []state.Reply{bulk("group"), bulk(s.Facts().Group)}})
		}
		items = append(items, bulk("subcommands"), subcommands)
	}
	return state.Reply{Kind: state.MapReply, Items: items}
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

// describeOne is a command as Redis 7 describes it: name, arity, flags, first key, last key, step, categories, two lists that are empty
// here (tips and key specifications), and subcommands.
func describeOne(s *command.Spec) state.Reply {
	f := s.Facts()
	flags := simples(f.Flags)
	if s.MovesKeys() {
		flags.Items = append(flags.Items, simples([]string{"movablekeys"}).Items...)
	}
	categories := make([]string, len(f.Categories))
	for i, name := range f.Categories {
		categories[i] = "@" + name
	}
	first, last, step := s.KeyRange()
	none := state.Reply{Kind: state.Array}
	subcommands := none
	for _, name := range s.Subcommands() {
		subcommands.Items = append(subcommands.Items, state.Reply{Kind: state.Array, Items: []state.Reply{
			bulk(s.Name + "|" + name), integer(int64(s.SubcommandArity(name))),
			{Kind: state.SetReply},
			integer(0), integer(0), integer(0),
			{Kind: state.SetReply},
			none, none, none,
		}})
	}
	return state.Reply{Kind: state.Array, Items: []state.Reply{
		bulk(s.Name), integer(int64(s.Arity)), flags, integer(int64(first)), integer(int64(last)), integer(int64(step)),
		simples(categories),
		none, none, subcommands,
	}}
}

func simples(texts []string) state.Reply {
	set := state.Reply{Kind: state.SetReply}
	for _, text := range texts {
		set.Items = append(set.Items, state.Reply{Kind: state.Simple, Text: []byte(text)})
	}
	return set
}
