package lua

import "math"

// Table is Lua's. Its zero value is empty. It walks over what lies from 1 on, and then over its other keys in the order in which they were set.
type Table struct {
	list  []Value       // of 1 to its length; the last is not nil
	at    map[Value]int // where other keys are in pairs
	pairs []entry       // one with nil was removed
	gone  int           // how many were
	meta  *Table
	fixed bool // scripts cannot change it
}

type entry struct{ key, value Value }

// What tables take in memory, about.
const (
	tableSize = 96
	mapSize   = 288 // of the first entry that is not in a list
	entrySize = 96  // of an entry that is not in a list
	itemSize  = 16  // of one in a list
)

// position is where a key is in a list; 0: it cannot be in one.
func position(key Value) int {
	f, is := key.(float64)
	if !is || f < 1 || f > math.MaxInt32 {
		return 0
	}
	if i := int(f); float64(i) == f {
		return i
	}
	return 0
}

// Get is the value of a key, without metamethods.
func (t *Table) Get(key Value) Value {
	if i := position(key); i > 0 && i <= len(t.list) {
		return t.list[i-1]
	}
	if at, known := t.at[key]; known {
		return t.pairs[at].value
	}
	return nil
}

// Len is a number n so that n is there and n+1 is not.
func (t *Table) Len() int { return len(t.list) }

// Set sets the value of a key that is not nil and not NaN, and tells how many bytes the table takes more.
func (t *Table) Set(key, value Value) (bytes int) {
	i := position(key)
	switch {
	case i > 0 && i <= len(t.list):
		t.list[i-1] = value
		if value == nil && i == len(t.list) {
			t.trim()
		}
		return 0
	case i > 0 && i == len(t.list)+1:
		if value == nil {
			t.put(key, nil)
			return 0
		}
		t.remove(key)
		t.list = append(t.list, value)
		bytes = 2 * itemSize
		for len(t.at) > t.gone {
			next := float64(len(t.list) + 1)
			at, known := t.at[next]
			if !known || t.pairs[at].value == nil {
				break
			}
			t.list = append(t.list, t.pairs[at].value)
			t.remove(next)
			bytes += 2 * itemSize
		}
		return bytes
	}
	return t.put(key, value)
}

// Append puts values behind the list, and tells how many bytes the table takes more.
func (t *Table) Append(values ...Value) (bytes int) {
	t.list = append(t.list, values...)
	t.trim()
	return 2 * itemSize * len(values)
}

func (t *Table) trim() {
	for len(t.list) > 0 && t.list[len(t.list)-1] == nil {
		t.list = t.list[:len(t.list)-1]
	}
}

// remove takes a key out of pairs, where a walk may be.
func (t *Table) remove(key Value) {
	if at, known := t.at[key]; known && t.pairs[at].value != nil {
		t.pairs[at].value = nil
		t.gone++
	}
}

func (t *Table) put(key, value Value) (bytes int) {
	if value == nil {
		t.remove(key)
		return 0
	}
	if at, known := t.at[key]; known {
		if t.pairs[at].value == nil {
			t.gone--
		}
		t.pairs[at].value = value
		return 0
	}
	if t.gone > 8 && t.gone > len(t.pairs)/2 {
		t.compact()
	}
	if t.at == nil {
		t.at = make(map[Value]int)
		bytes = mapSize
	}
	t.at[key] = len(t.pairs)
	t.pairs = append(t.pairs, entry{key, value})
	return bytes + entrySize
}

// compact forgets removed keys. Only a key that is not there yet leads to it, which ends each walk anyway.
func (t *Table) compact() {
	kept := t.pairs[:0]
	clear(t.at)
	for _, e := range t.pairs {
		if e.value != nil {
			t.at[e.key] = len(kept)
			kept = append(kept, e)
		}
	}
	clear(t.pairs[len(kept):])
	t.pairs, t.gone = kept, 0
}

// Next is what follows a key (nil: the first), and how many entries without a value were passed; ok is false if there is no such key. The end
// is nil.
func (t *Table) Next(key Value) (next, value Value, passed int, ok bool) {
	i, at := position(key), 0
	switch {
	case key == nil:
		i = 0
	case i > 0 && i <= len(t.list):
	default:
		found, known := t.at[key]
		if !known && i == 0 {
			return nil, nil, 0, false
		}
		if known {
			at = found + 1
		}
		i = len(t.list)
	}
	for ; i < len(t.list); i++ {
		if t.list[i] != nil {
			return float64(i + 1), t.list[i], passed, true
		}
		passed++
	}
	for ; at < len(t.pairs); at++ {
		if e := t.pairs[at]; e.value != nil {
			return e.key, e.value, passed, true
		}
		passed++
	}
	return nil, nil, passed, true
}

// NewTable makes a table of pairs: names and values in turn.
func NewTable(pairs ...Value) *Table {
	t := new(Table)
	for i := 0; i+1 < len(pairs); i += 2 {
		t.Set(pairs[i], pairs[i+1])
	}
	return t
}

// Library makes a table of functions that scripts cannot change, with other values by their names.
func Library(values map[string]Value, functions ...*Function) *Table {
	t := &Table{fixed: true}
	for _, f := range functions {
		t.Set(f.name, f)
	}
	for _, name := range sortedKeys(values) {
		t.Set(name, values[name])
	}
	return t
}
