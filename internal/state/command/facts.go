package command

import (
	_ "embed" // facts.txt
	"slices"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/state"
)

// Facts are what Redis's COMMAND tells of a command, for tools that show it or go by it. Forerun itself goes by the table.
type Facts struct {
	Group, Since string
	Flags        []string
	Categories   []string // without their @
	keys         [][]string
}

//go:embed facts.txt
var factsText string

var facts = sync.OnceValue(func() map[string]*Facts {
	all := make(map[string]*Facts)
	for line := range strings.Lines(factsText) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		f := &Facts{Group: words[1], Since: words[2], Flags: listOf(words[3]), Categories: listOf(words[4])}
		for _, flags := range listOf(words[5]) {
			f.keys = append(f.keys, strings.Split(flags, "+"))
		}
		all[words[0]] = f
	}
	return all
})

func listOf(word string) []string {
	if word == "-" {
		return nil
	}
	return strings.Split(word, ",")
}

// Facts are those of the command.
func (s *Spec) Facts() *Facts { return facts()[s.Name] }

// IsCategory says whether Redis has a category of commands.
func IsCategory(name string) bool {
	for _, f := range facts() {
		if slices.Contains(f.Categories, name) {
			return true
		}
	}
	return false
}

// KeyFlags are what the command does to the key that is its nth, in Redis's words.
func (s *Spec) KeyFlags(args [][]byte, n int) []string {
	switch {
	case s.Name == "set" && !hasWord(args[3:], "GET"): // anywhere, as Redis does not parse the options for this
		return []string{"OW", "update"}
	case s.Name == "bitfield" && s.Access(args)&Write == 0:
		return []string{"RO", "access"}
	}
	f := facts()[s.Name+"|"+Subcommand(args)] // of XGROUP, whose subcommands differ
	if f == nil {
		f = s.Facts()
	}
	keys := f.keys
	return keys[min(n, len(keys)-1)]
}

func hasWord(args [][]byte, word string) bool {
	return slices.ContainsFunc(args, func(arg []byte) bool { return is(arg, word) })
}

// GetKeys answers COMMAND GETKEYS of a command with its arguments, or GETKEYSANDFLAGS.
func GetKeys(args [][]byte, withFlags bool) state.Reply {
	s := Known(args[0])
	if s == nil {
		return failure("ERR Invalid command specified")
	}
	arity := s.Arity
	if s.HasSubcommands() && len(args) > 1 {
		sub, known := subcommands[s.Name][Subcommand(args)]
		if !known {
			return failure("ERR Invalid command specified")
		}
		arity = sub.arity
	}
	first, _, _ := s.KeyRange()
	switch {
	case first == 0 && s.keys.find == nil, s.HasSubcommands() && arity >= -2 && arity <= 2: // which have none but their names
		return failure("ERR The command has no key arguments")
	case len(args) != arity && (arity > 0 || len(args) < -arity):
		return failure("ERR Invalid number of arguments specified for command")
	}
	items := []state.Reply{}
	for i := range s.KeyPositions(args) {
		items = append(items, keyItem(args[i], s.KeyFlags(args, len(items)), withFlags))
	}
	if len(items) == 0 && !slices.Contains(s.Facts().Flags, "no_mandatory_keys") {
		return failure("ERR Invalid arguments specified for command")
	}
	return array(items)
}

func keyItem(name []byte, flags []string, withFlags bool) state.Reply {
	if !withFlags {
		return bulk(name)
	}
	set := state.Reply{Kind: state.SetReply}
	for _, flag := range flags {
		set.Items = append(set.Items, state.Reply{Kind: state.Simple, Text: []byte(flag)})
	}
	return array([]state.Reply{bulk(name), set})
}
