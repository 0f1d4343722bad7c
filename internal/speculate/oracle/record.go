package oracle

import (
	"fmt"
	"strconv"
)

// Records is how many records a world has.
const Records = 4

// Value is what a record holds: nothing, a string or a list.
type Value struct {
	Kind byte // 0: there is no record; 's', 'l'; '?' must not be read
	Text string
}

func (v Value) String() string {
	if v.Kind == 0 {
		return "-"
	}
	return fmt.Sprintf("%c%q", v.Kind, v.Text)
}

// Store is what all records hold.
type Store [Records]Value

// Verb is what a command does.
type Verb byte

// The verbs. Those behind Sum are of clients other than speculative functions, or are done by a head only.
const (
	Get    Verb = iota // A
	MGet               // A, B
	Look               // A; its reply is no function of what it read alone
	Clock              // the coarse time; reads no record
	Set                // A = argument
	MSet               // A, B = argument
	Del                // A
	Incr               // A
	Push               // A, argument
	Pop                // A
	SetNX              // A = argument, if there is none
	Copy               // B = A
	Sum                // all records
	Wipe               // all lists are deleted, which no command names before
	Effect             // something outside
)

var verbs = [...]string{"GET", "MGET", "LOOK", "CLOCK", "SET", "MSET", "DEL", "INCR", "PUSH", "POP", "SETNX", "COPY", "SUM", "WIPE", "EFFECT"}

// Command is an operation on records.
type Command struct {
	Verb     Verb
	A, B     int
	Argument int
}

func (c Command) String() string {
	s := verbs[c.Verb]
	for _, k := range c.keys() {
		s += " r" + strconv.Itoa(k)
	}
	switch c.Verb {
	case Set, MSet, Push, SetNX, Effect:
		s += " " + strconv.Itoa(c.Argument)
	}
	return s
}

func (c Command) keys() []int {
	switch c.Verb {
	case MGet, MSet, Copy:
		return []int{c.A, c.B}
	case Clock, Sum, Wipe, Effect:
		return nil
	}
	return []int{c.A}
}

// Unbuffered tells whether only a head may do it.
func (c Command) Unbuffered() bool { return c.Verb >= Sum }

// Reads are the records that the reply, or what is written, depends on.
func (c Command) Reads() []int {
	switch c.Verb {
	case Get, Look, Incr, Push, Pop, SetNX, Copy:
		return []int{c.A}
	case MGet:
		return []int{c.A, c.B}
	case Sum, Wipe:
		all := make([]int, Records)
		for i := range all {
			all[i] = i
		}
		return all
	}
	return nil
}

// Writes are the records that it may write.
func (c Command) Writes() []int {
	switch c.Verb {
	case Set, Del, Incr, Push, Pop, SetNX:
		return []int{c.A}
	case MSet:
		return []int{c.A, c.B}
	case Copy:
		return []int{c.B}
	case Wipe:
		return c.Reads()
	}
	return nil
}

const wrongType = "WRONGTYPE"

// Execute runs the command on the records of Reads. written has what it made of those of Writes, nil where it left one alone; it is
// nil itself if the command was refused.
func (c Command) Execute(reads []Value) (reply string, written []*Value) {
	for _, v := range reads {
		if v.Kind == '?' {
			return "unknown", nil
		}
	}
	put := func(v Value) []*Value { return []*Value{&v} }
	argument := strconv.Itoa(c.Argument)
	switch c.Verb {
	case Get, Look:
		if reads[0].Kind == 'l' && c.Verb == Get {
			return wrongType, nil
		}
		return reads[0].String(), nil
	case MGet, Sum:
		for _, v := range reads {
			reply += v.String()
		}
		return reply, nil
	case Set:
		return "OK", put(Value{'s', argument})
	case MSet:
		v := Value{'s', argument}
		return "OK", []*Value{&v, &v}
	case Del:
		return "OK", put(Value{})
	case Incr:
		n, err := strconv.Atoi(reads[0].Text)
		if reads[0].Kind == 'l' || reads[0].Kind == 's' && err != nil {
			return wrongType, nil
		}
		n++
		return strconv.Itoa(n), put(Value{'s', strconv.Itoa(n)})
	case Push:
		if reads[0].Kind == 's' {
			return wrongType, nil
		}
		list := reads[0].Text + string(rune('a'+c.Argument%8))
		return strconv.Itoa(len(list)), put(Value{'l', list})
	case Pop:
		return pop(reads[0])
	case SetNX:
		if reads[0].Kind != 0 {
			return "0", []*Value{nil}
		}
		return "1", put(Value{'s', argument})
	case Copy:
		if reads[0].Kind == 0 {
			return "0", []*Value{nil}
		}
		return "1", put(reads[0])
	case Wipe:
		return wipe(reads)
	}
	return "OK", nil
}

func pop(v Value) (reply string, written []*Value) {
	switch {
	case v.Kind == 's':
		return wrongType, nil
	case v.Kind == 0:
		return "nil", []*Value{nil}
	case len(v.Text) == 1:
		return v.Text, []*Value{{}}
	}
	return v.Text[:1], []*Value{{'l', v.Text[1:]}}
}

func wipe(reads []Value) (reply string, written []*Value) {
	n := 0
	written = make([]*Value, len(reads))
	for i, v := range reads {
		if v.Kind == 'l' {
			written[i] = &Value{}
			n++
		}
	}
	return strconv.Itoa(n), written
}

// Apply runs the command on a store.
func (c Command) Apply(store *Store) (reply string) {
	reads := c.Reads()
	values := make([]Value, len(reads))
	for i, k := range reads {
		values[i] = store[k]
	}
	reply, written := c.Execute(values)
	for i, k := range c.Writes() {
		if i < len(written) && written[i] != nil {
			store[k] = *written[i]
		}
	}
	return reply
}
