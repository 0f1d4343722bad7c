package command

import (
	"strings"

	"forerun.dev/forerun/internal/state"
)

// subcommands are the numbers of arguments, with both names (-n: at least n), of the subcommands that Forerun has.
var subcommands = map[string]map[string]int{
	"object":  {"encoding": 3, "freq": 3, "help": 2, "idletime": 3, "refcount": 3},
	"client":  {"id": 2, "getname": 2, "setname": 3, "info": 2, "list": -2, "setinfo": 4, "no-evict": 3, "no-touch": 3},
	"config":  {"get": -3},
	"pubsub":  {"channels": -2, "numpat": 2, "numsub": -2},
	"command": {"count": 2, "docs": -2, "info": -2, "list": -2},
}

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
	arity, found := known[sub]
	switch {
	case !found:
		text := "ERR unknown subcommand '" + string(shorten(args[1], maxShown)) + "'. Try " + strings.ToUpper(s.Name) + " HELP."
		return &state.Reply{Kind: state.Error, Text: oneLine([]byte(text))}
	case arity != len(args) && (arity > 0 || len(args) < -arity):
		return refuse("ERR wrong number of arguments for '%s|%s' command", s.Name, sub)
	}
	return nil
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
