package history

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// kind is what commands a record gets.
type kind int

const (
	number kind = iota // a string that holds a number
	list
	hash
	sorted // a sorted set: a hash in other words
	pair   // two numbers, always written together
)

// record is a record, or two that are written together.
type record struct {
	kind kind
	name string
}

// recordsOf are the records of a history: few, so that clients meet.
func recordsOf(space string) (all []record) {
	for k := number; k <= pair; k++ {
		for n := range 2 {
			all = append(all, record{k, fmt.Sprintf("%s-%d-%d", space, k, n)})
		}
	}
	return all
}

// input is what a client asked for: words[0] is what is done, the rest its arguments.
type input struct {
	record record
	words  []string
}

// output is what it was told.
type output struct {
	known bool // false: it was told nothing
	reply string
}

const none = "(nil)"

// model is what the records must do, one command after the other.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: parts,
		Init:      func() []any { return []any{""} },
		Step:      step,
	}
	return m.ToModel()
}

// parts puts the commands on each record together, in the order of their requests.
func parts(all []porcupine.Operation) [][]porcupine.Operation {
	byRecord := make(map[string][]porcupine.Operation)
	for _, o := range all {
		name := o.Input.(input).record.name
		byRecord[name] = append(byRecord[name], o)
	}
	var split [][]porcupine.Operation
	for _, name := range slices.Sorted(maps.Keys(byRecord)) {
		part := byRecord[name]
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		split = append(split, part)
	}
	return split
}

// step returns the states that a command may leave behind.
func step(state, in, out any) []any {
	i, o, before := in.(input), out.(output), state.(string)
	after, reply := execute(i.record.kind, before, i.words)
	switch {
	case !o.known && after != before:
		return []any{before, after}
	case !o.known, i.words[0] == "cas" && o.reply == none: // that something has changed may be so even if it has changed back
		return []any{before}
	case o.reply == reply:
		return []any{after}
	}
	return nil
}

// execute does one command. A state is a text: "" is no record.
func execute(k kind, state string, words []string) (after, reply string) {
	switch k {
	case list:
		return executeList(state, words)
	case hash, sorted:
		return executeFields(state, words)
	}
	return executeNumber(state, words)
}

// executeNumber does a command on a number, or on both of a pair.
func executeNumber(state string, words []string) (after, reply string) {
	old := state
	if old == "" {
		old = none
	}
	switch words[0] {
	case "get":
		return state, old
	case "set":
		return words[1], "OK"
	case "getset":
		return words[1], old
	case "getdel":
		return "", old
	case "setnx":
		if state == "" {
			return words[1], "1"
		}
		return state, "0"
	case "cas":
		if old == words[1] {
			return words[2], "OK"
		}
		return state, none
	case "incrby":
		sum := add(state, words[1])
		return sum, sum
	}
	panic(words[0])
}

func add(a, b string) string {
	x, _ := strconv.Atoi(a) // nothing is 0
	y, _ := strconv.Atoi(b)
	return strconv.Itoa(x + y)
}

// executeList does a command on a list, whose items have a comma behind them.
func executeList(state string, words []string) (after, reply string) {
	items := strings.Split(strings.TrimSuffix(state, ","), ",")
	if state == "" {
		items = nil
	}
	popped := none
	switch words[0] {
	case "rpush":
		items = append(items, words[1])
	case "lpush":
		items = slices.Insert(items, 0, words[1])
	case "lpop":
		if len(items) > 0 {
			popped, items = items[0], items[1:]
		}
	case "rpop":
		if n := len(items); n > 0 {
			popped, items = items[n-1], items[:n-1]
		}
	case "lrange":
		return state, strings.Join(items, " ")
	}
	for _, item := range items {
		after += item + ","
	}
	if strings.HasSuffix(words[0], "push") {
		return after, strconv.Itoa(len(items))
	}
	return after, popped
}

// executeFields does a command on a hash or a sorted set, whose state is "field=value " for each field, in order.
func executeFields(state string, words []string) (after, reply string) {
	fields := make(map[string]string)
	for _, f := range strings.Fields(state) {
		name, value, _ := strings.Cut(f, "=")
		fields[name] = value
	}
	if words[0] == "all" {
		return state, state
	}
	name := words[1]
	_, there := fields[name]
	switch words[0] {
	case "set":
		fields[name], reply = words[2], "1"
		if there {
			reply = "0"
		}
	case "add":
		fields[name] = add(fields[name], words[2])
		reply = fields[name]
	case "del":
		delete(fields, name)
		reply = "0"
		if there {
			reply = "1"
		}
	}
	return joined(fields), reply
}

// joined writes fields in order.
func joined(fields map[string]string) (text string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text += name + "=" + fields[name] + " "
	}
	return text
}

func describe(in, out any) string {
	i, o := in.(input), out.(output)
	if !o.known {
		return fmt.Sprintf("%s %s -> no answer", i.record.name, strings.Join(i.words, " "))
	}
	return fmt.Sprintf("%s %s -> %s", i.record.name, strings.Join(i.words, " "), o.reply)
}
