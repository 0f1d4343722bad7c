package command

import (
	"forerun.dev/forerun/internal/state"
)

func object(t *txn, args [][]byte) state.Reply {
	sub := Subcommand(args)
	if sub == "help" {
		return t.spec.Help()
	}
	r := t.load(args[2])
	switch {
	case !r.exists():
		return null()
	case sub == "encoding":
		return bulk([]byte(t.encoding(args[2], r)))
	case sub == "refcount":
		return integer(1)
	case sub == "idletime":
		return integer(0) // when records are read is not kept
	}
	return failure("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
}

// How large collections can be that Redis keeps in one piece (its defaults).
const (
	maxEmbedded    = 44  // bytes of a string
	maxPieceFields = 512 // of a hash, and integers of a set
	maxPieceScores = 128 // members of a sorted set
	maxPieceBytes  = 64  // of a field, a value or a member
)

// encoding is how Redis would hold a record that was written at once.
func (t *txn) encoding(name []byte, r record) string {
	n := r.elementCount()
	switch r.kind {
	case state.String:
		return stringEncoding(r.payload)
	case state.List:
		return "quicklist"
	case state.Set:
		if n <= maxPieceFields && t.each(name, func(member, _ []byte) bool { _, isInt := parseInt(member); return isInt }) {
			return "intset"
		}
		return "hashtable"
	case state.Hash:
		if n <= maxPieceFields && t.each(name, func(field, value []byte) bool { return max(len(field), len(value)) <= maxPieceBytes }) {
			return "listpack"
		}
		return "hashtable"
	}
	if n <= maxPieceScores && t.each(name, func(member, _ []byte) bool { return len(member) <= maxPieceBytes }) {
		return "listpack"
	}
	return "skiplist"
}

func stringEncoding(data []byte) string {
	if _, isInt := parseInt(data); isInt {
		return "int"
	}
	if len(data) <= maxEmbedded {
		return "embstr"
	}
	return "raw"
}

// each says whether all elements of a record have a property.
func (t *txn) each(name []byte, has func(element, value []byte) bool) bool {
	all := true
	from, to := t.elementRange(name)
	t.walk(from, to, false, len(from), func(element, value []byte) bool {
		all = has(element, value)
		return all
	})
	return all
}
