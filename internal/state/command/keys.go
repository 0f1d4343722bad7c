package command

import "forerun.dev/forerun/internal/state"

func del(t *txn, args [][]byte) state.Reply {
	n := int64(0)
	for _, name := range args[1:] {
		if r := t.load(name); r.exists() {
			t.remove(name, r)
			n++
		}
	}
	return integer(n)
}

func exists(t *txn, args [][]byte) state.Reply {
	n := int64(0)
	for _, name := range args[1:] {
		if r := t.load(name); r.exists() {
			n++
		}
	}
	return integer(n)
}

func typeOf(t *txn, args [][]byte) state.Reply {
	r := t.load(args[1])
	return state.Reply{Kind: state.Simple, Text: []byte(typeNames[r.kind])}
}

var typeNames = [...]string{state.Absent: "none", state.String: "string", state.Hash: "hash", state.List: "list", state.Set: "set", state.SortedSet: "zset"}

// TypeNamed is the type that TYPE answers by a name.
func TypeNamed(name []byte) state.Type {
	for kind, known := range typeNames {
		if known == string(name) {
			return state.Type(kind)
		}
	}
	return state.Absent
}
