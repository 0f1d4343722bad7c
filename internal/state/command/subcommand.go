package command

import (
	"maps"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/state"
)

// subcommand is one of a command's subcommands in Redis 7.2.
type subcommand struct {
	arity int    // number of arguments with both names; -n means at least n
	args  string // for people
	does  string // what it does; empty: Forerun does not have it
}

// subcommands are those of each command that has any.
var subcommands = map[string]map[string]subcommand{
	"acl": {
		"cat": {arity: -2}, "deluser": {arity: -3}, "dryrun": {arity: -4}, "genpass": {arity: -2}, "getuser": {arity: 3}, "help": help, "list": {arity: 2},
		"load": {arity: 2}, "log": {arity: -2}, "save": {arity: 2}, "setuser": {arity: -3}, "users": {arity: 2}, "whoami": {arity: 2},
	},
	"client": {
		"caching":      {3, "(YES|NO)", "Let the records that the next command reads count for tracking, or not."},
		"getredir":     {2, "", "Return 0 while tracking is on, and -1 while it is off: it is not redirected."},
		"tracking":     {-3, "(ON|OFF) [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]", "Tell the client, in RESP3, when records that it has read change."},
		"trackinginfo": {2, "", "Return how changes are told to the current connection."},
		"getname":      {2, "", "Return the name of the current connection."},
		"help":         help,
		"id":           {2, "", "Return the ID of the current connection."},
		"info":         {2, "", "Return information about the current connection."},
		"kill":         {-3, "(<address>|<option> <value> [<option> <value> ...])", "Kill connections of the namespace. Options are: ADDR, ID, LADDR, MAXAGE, SKIPME (YES|NO), TYPE, USER."},
		"list":         {-2, "[TYPE (NORMAL|MASTER|REPLICA|PUBSUB)] [ID <id> [<id> ...]]", "Return information about the connections of the namespace."},
		"no-evict":     {3, "(ON|OFF)", "Accepted: no connection is evicted to save memory."},
		"no-touch":     {3, "(ON|OFF)", "Accepted: when records are read is not kept."},
		"reply":        {3, "(ON|OFF|SKIP)", "Control the replies to the current connection."},
		"unblock":      {-3, "<id> [TIMEOUT|ERROR]", "Unblock a blocked connection of the namespace."},
		"setinfo":      {4, "(LIB-NAME <name>|LIB-VER <version>)", "Set the name or the version of the client's library."},
		"setname":      {3, "<name>", "Assign a name to the current connection."},
		"pause":        {arity: -3},
		"unpause":      {arity: 2},
	},
	"cluster": {
		"addslots": {arity: -3}, "addslotsrange": {arity: -4}, "bumpepoch": {arity: 2}, "count-failure-reports": {arity: 3}, "countkeysinslot": {arity: 3},
		"delslots": {arity: -3}, "delslotsrange": {arity: -4}, "failover": {arity: -2}, "flushslots": {arity: 2}, "forget": {arity: 3},
		"getkeysinslot": {arity: 4}, "help": help, "info": {arity: 2}, "keyslot": {arity: 3}, "links": {arity: 2}, "meet": {arity: -4}, "myid": {arity: 2},
		"myshardid": {arity: 2}, "nodes": {arity: 2}, "replicas": {arity: 3}, "replicate": {arity: 3}, "reset": {arity: -2}, "saveconfig": {arity: 2},
		"set-config-epoch": {arity: 3}, "setslot": {arity: -4}, "shards": {arity: 2}, "slaves": {arity: 3}, "slots": {arity: 2},
	},
	"command": {
		"getkeys":         {-3, "<command> [<arg> ...]", "Return the keys among the arguments of a command."},
		"getkeysandflags": {-3, "<command> [<arg> ...]", "Return the keys among the arguments of a command, and what it does to each."},
		"count":           {2, "", "Return how many commands there are."},
		"docs":            {-2, "[<command> ...]", "Return since when commands exist, and their groups and subcommands."},
		"help":            help,
		"info":            {-2, "[<command> ...]", "Return arity, flags and keys of commands."},
		"list":            {-2, "[FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]", "Return the names of commands."},
	},
	"config": {
		"get":       {-3, "<pattern> [<pattern> ...]", "Return the settings whose names match one of the patterns."},
		"help":      help,
		"resetstat": {2, "", "Accepted: INFO tells no statistics that it could reset."},
		"rewrite":   {2, "", "Refused: the server has no Redis configuration file."},
		"set":       {-4, "<setting> <value> [<setting> <value> ...]", "Check settings. Values that have no meaning here are accepted and not used."},
	},
	"function": {
		"delete": {arity: 3}, "dump": {arity: 2}, "flush": {arity: -2}, "help": help, "kill": {arity: 2}, "list": {arity: -2}, "load": {arity: -3},
		"restore": {arity: -3}, "stats": {arity: 2},
	},
	"latency": {
		"doctor": {arity: 2}, "graph": {arity: 3}, "help": help, "histogram": {arity: -2}, "history": {arity: 3}, "latest": {arity: 2}, "reset": {arity: -2},
	},
	"memory": {
		"doctor": {arity: 2}, "help": help, "malloc-stats": {arity: 2}, "purge": {arity: 2}, "stats": {arity: 2}, "usage": {arity: -3},
	},
	"module": {"help": help, "list": {arity: 2}, "load": {arity: -3}, "loadex": {arity: -3}, "unload": {arity: 3}},
	"object": {
		"encoding": {3, "<key>", "Return the kind of internal representation that Redis would use."},
		"freq":     {3, "<key>", "Refused: how often records are read is not kept."},
		"help":     help,
		"idletime": {3, "<key>", "Return 0: when records are read is not kept."},
		"refcount": {3, "<key>", "Return 1."},
	},
	"pubsub": {
		"channels":      {-2, "[<pattern>]", "Return the channels that have subscribers, and match the pattern if there is one."},
		"help":          help,
		"numpat":        {2, "", "Return the number of patterns that have subscribers."},
		"numsub":        {-2, "[<channel> ...]", "Return the number of subscribers of channels."},
		"shardchannels": {arity: -2}, "shardnumsub": {arity: -2},
	},
	"script": {
		"debug":  {arity: 3},
		"exists": {-3, "<sha1> [<sha1> ...]", "Return which scripts are known."},
		"flush":  {-2, "[ASYNC|SYNC]", "Forget all scripts of the namespace."},
		"help":   help,
		"kill":   {arity: 2},
		"load":   {3, "<script>", "Compile a script, and keep it for EVALSHA."},
	},
	"slowlog": {"get": {arity: -2}, "help": help, "len": {arity: 2}, "reset": {arity: 2}},
	"xgroup": {
		"create": {arity: -5}, "createconsumer": {arity: 5}, "delconsumer": {arity: 5}, "destroy": {arity: 4}, "help": help, "setid": {arity: -5},
	},
	"xinfo": {"consumers": {arity: 4}, "groups": {arity: 3}, "help": help, "stream": {arity: -3}},
}

var help = subcommand{2, "", "Print this help."}

// Refuse says why arguments cannot be those of the command; nil if their number, and the subcommand, are right.
func (s *Spec) Refuse(args [][]byte) *state.Reply {
	if !s.AcceptsArity(len(args)) {
		return refuse("ERR wrong number of arguments for '%s' command", s.Name)
	}
	known := subcommands[s.Name]
	if known == nil || len(args) == 1 {
		return nil
	}
	sub := Subcommand(args)
	found, exists := known[sub]
	switch {
	case !exists:
		return s.lacks(args[1], "")
	case found.arity != len(args) && (found.arity > 0 || len(args) < -found.arity):
		return refuse("ERR wrong number of arguments for '%s|%s' command", s.Name, sub)
	case found.does == "":
		return s.lacks(args[1], " "+s.lack("subcommand"))
	}
	return nil
}

// lacks refuses a subcommand by its name; a hint may follow.
func (s *Spec) lacks(sub []byte, hint string) *state.Reply {
	text := "ERR unknown subcommand '" + string(shorten(sub, maxShown)) + "'. Try " + strings.ToUpper(s.Name) + " HELP." + hint
	return &state.Reply{Kind: state.Error, Text: oneLine([]byte(text))}
}

// Subcommands are the names of the command's subcommands that Forerun has, in order.
func (s *Spec) Subcommands() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(subcommands[s.Name])) {
		if subcommands[s.Name][name].does != "" {
			names = append(names, name)
		}
	}
	return names
}

// Absent are the names of the command's subcommands that Redis has and Forerun has not, in order.
func (s *Spec) Absent() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(subcommands[s.Name])) {
		if subcommands[s.Name][name].does == "" {
			names = append(names, name)
		}
	}
	return names
}

// HasSubcommands says whether the second argument of the command is the name of a subcommand.
func (s *Spec) HasSubcommands() bool { return subcommands[s.Name] != nil }

// SubcommandArity is the number of arguments of a subcommand with both names; -n means at least n.
func (s *Spec) SubcommandArity(name string) int { return subcommands[s.Name][name].arity }

// Help answers the subcommand HELP: what the command's subcommands do that Forerun has.
func (s *Spec) Help() state.Reply {
	lines := []string{strings.ToUpper(s.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	for _, name := range append(slices.DeleteFunc(s.Subcommands(), func(name string) bool { return name == "help" }), "help") {
		sub := subcommands[s.Name][name]
		lines = append(lines, strings.TrimSpace(strings.ToUpper(name)+" "+sub.args), "    "+sub.does)
	}
	items := make([]state.Reply, len(lines))
	for i, line := range lines {
		items[i] = state.Reply{Kind: state.Simple, Text: []byte(line)}
	}
	return array(items)
}

// IsHelp says whether arguments that Refuse accepts ask for the command's help.
func (s *Spec) IsHelp(args [][]byte) bool {
	return len(args) == 2 && s.HasSubcommands() && Subcommand(args) == "help"
}

// Subcommand is the second name of a command, in lower case; one that is too long for a name is cut.
func Subcommand(args [][]byte) string {
	if len(args) < 2 {
		return ""
	}
	return Lower(args[1])
}

// Lower is a name in lower case, for a text that need not be one and is cut when it is too long for one.
func Lower(name []byte) string { return strings.ToLower(string(name[:min(len(name), maxName)])) }
