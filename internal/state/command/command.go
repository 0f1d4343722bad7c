// Package command knows every command of Redis 7 and executes those that
// Forerun's embedded store has, over an ordered byte-KV store.
//
// One table (table.go) says of each command its arity, whether it reads or
// writes records, which of its arguments are keys, and whether it can be
// buffered. A command that is implemented is one row and one function.
//
// The functions are pure: what they do depends on the arguments, on what they
// read and on the time that is passed in; what they write goes to an Overlay.
// So the same functions serve a command executed at once, a transaction and a
// column of buffered writes. They promise Redis's replies and Redis's words; the
// order of what Redis leaves unordered (fields of a hash, members of a set) is
// the order of bytes. A command that answers an error has changed nothing.
package command

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"forerun.dev/forerun/internal/state"
)

// Flags say what a command does, for those who buffer, lock or cache.
type Flags uint16

// The flags of commands.
const (
	Read         Flags = 1 << iota // its reply or its effect depends on records
	Write                          // it changes records
	Unbufferable                   // it blocks, is random, reaches other connections, or touches keys that its arguments do not name
	Connection                     // it is about the connection: the door answers it
	Clock                          // its reply or its effect depends on the time
	Blocking                       // it may wait for records to change
	Whole                          // it may reach any record of the space, not only those that its arguments name
	Stores                         // its first key gets the result, whatever it was, and it reads the others
)

// Spec is what the table says about a command. It is immutable.
type Spec struct {
	Name  string // in lower case
	Arity int    // number of arguments with the name; -n means at least n
	Flags Flags
	keys  keyRule
	run   function // nil: Forerun has not got it
}

// function executes a command whose arity is right; args[0] is its name.
type function func(t *txn, args [][]byte) state.Reply

// Known finds a command by its name, in any case; nil if Redis has none of this name.
func Known(name []byte) *Spec {
	var lower [maxName]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return table[string(lower[:len(name)])]
}

// Find finds a command that Execute can execute with these arguments. If there is none, the spec is nil and the reply
// says why, as Redis would.
func Find(args [][]byte) (*Spec, state.Reply) {
	if len(args) == 0 {
		return nil, failure("ERR empty command")
	}
	spec := Known(args[0])
	if spec == nil {
		return nil, unknown(args, "")
	}
	if refusal := spec.Refuse(args); refusal != nil {
		return nil, *refusal
	}
	if spec.run == nil {
		if spec.IsHelp(args) {
			return nil, spec.Help()
		}
		return nil, unknown(args, spec.lack("command"))
	}
	return spec, state.Reply{}
}

// lack says why Redis has the command, or subcommand, and Forerun has not.
func (s *Spec) lack(what string) string {
	switch s.Name {
	case "fcall", "fcall_ro", "function":
		return "(Forerun's embedded store keeps no functions: use EVAL)"
	}
	return "(Redis has this " + what + ", Forerun's embedded store does not have it yet)"
}

// Implemented says whether Execute can execute the command.
func (s *Spec) Implemented() bool { return s.run != nil }

// AcceptsArity says whether the command can have n arguments, its name among them.
func (s *Spec) AcceptsArity(n int) bool {
	return n == s.Arity || s.Arity < 0 && n >= -s.Arity
}

// Access says what the command does with these arguments: SET reads, SORT, GEORADIUS and BITFIELD write, and SORT cannot be buffered,
// only with some of their options.
func (s *Spec) Access(args [][]byte) Flags {
	switch {
	case !s.AcceptsArity(len(args)):
	case s.Name == "set":
		return s.setAccess(args)
	case s.Name == "sort" || s.Name == "sort_ro":
		return s.Flags &^ sortLacks(args)
	case s.Name == "bitfield" && onlyGets(args[2:]),
		(s.Name == "georadius" || s.Name == "georadiusbymember") && len(s.keys.find(args)) == 1:
		return s.Flags &^ Write
	}
	return s.Flags
}

func (s *Spec) setAccess(args [][]byte) Flags {
	flags := s.Flags
	if o, refusal := parseSetOptions(args[3:], setOptions); refusal == nil {
		if o.nx || o.xx || o.get || o.keepTTL {
			flags |= Read
		}
		if o.relative() {
			flags |= Clock
		}
	}
	return flags
}

// Execute runs a command that Find has found in a space, at a time. The overlay keeps slices of args as they are: who
// uses it longer than args passes a copy. The error is that of the overlay's base or its context, or forerun.TooLarge, and then the overlay must be
// thrown away.
func Execute(o *Overlay, s *Spec, space string, now time.Time, args [][]byte) (state.Reply, error) {
	t := txn{overlay: o, spec: s, space: space, now: now.UnixMilli()}
	if t.work(workOfArg * len(args)); t.err != nil {
		return state.Reply{}, t.err
	}
	reply := s.run(&t, args)
	if t.err == nil {
		t.err = o.charge(reply)
	}
	return reply, t.err
}

// All lists every command of Redis 7, in the order of their names.
func All() []*Spec {
	specs := slices.Collect(maps.Values(table))
	slices.SortFunc(specs, func(a, b *Spec) int { return cmp.Compare(a.Name, b.Name) })
	return specs
}
