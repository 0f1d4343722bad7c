package command

import (
	"bytes"
	"math"
	"slices"

	"forerun.dev/forerun/internal/state"
)

// sortQuery is what SORT asks for.
type sortQuery struct {
	by         []byte // the pattern whose records say how elements are compared; nil: by the elements themselves
	unsorted   bool   // by has no star: the order stays as it is
	get        [][]byte
	descending bool
	alpha      bool
	skip, most int64 // of the sorted elements; most < 0: all
	store      []byte
	storing    bool
}

// sortLacks says which flags of SORT do not hold with some options. A word of a pattern may look like BY or GET: then
// more hold than need to.
func sortLacks(args [][]byte) Flags {
	lacks := Whole | Unbufferable | Write
	if len(sortKeys(args)) > 1 {
		lacks &^= Write
	}
	if hasWord(args[2:], "BY") || hasWord(args[2:], "GET") {
		lacks &^= Whole | Unbufferable
	}
	return lacks
}

// sorting is an element with what it is compared by.
type sorting struct {
	element []byte
	score   float64
	text    []byte // nil: there is none
}

func sortRecord(t *txn, args [][]byte) state.Reply { return sortGeneric(t, args, true) }
func sortRO(t *txn, args [][]byte) state.Reply     { return sortGeneric(t, args, false) }

func parseSort(args [][]byte, mayStore bool) (q sortQuery, refusal *state.Reply) {
	q.most = -1
	for len(args) > 0 {
		used := 2
		switch {
		case is(args[0], "ASC"):
			q.descending, used = false, 1
		case is(args[0], "DESC"):
			q.descending, used = true, 1
		case is(args[0], "ALPHA"):
			q.alpha, used = true, 1
		case is(args[0], "LIMIT") && len(args) > 2:
			used = 3
			if q.skip, refusal = parseWithin(args[1], math.MinInt64, math.MaxInt64, ""); refusal == nil {
				q.most, refusal = parseWithin(args[2], math.MinInt64, math.MaxInt64, "")
			}
			if refusal != nil {
				return q, refusal
			}
		case is(args[0], "STORE") && len(args) > 1 && mayStore:
			q.store, q.storing = args[1], true
		case is(args[0], "BY") && len(args) > 1:
			q.by = args[1]
			q.unsorted = bytes.IndexByte(q.by, '*') < 0
		case is(args[0], "GET") && len(args) > 1:
			q.get = append(q.get, args[1])
		default:
			return q, refuse("ERR syntax error")
		}
		args = args[used:]
	}
	return q, nil
}

func sortGeneric(t *txn, args [][]byte, mayStore bool) state.Reply {
	q, refusal := parseSort(args[2:], mayStore)
	if refusal != nil {
		return *refusal
	}
	r := t.load(args[1])
	if r.exists() && r.kind != state.List && r.kind != state.Set && r.kind != state.SortedSet {
		return wrongType()
	}
	if q.unsorted && r.kind == state.Set && q.storing { // what is stored must have an order
		q.unsorted, q.alpha, q.by = false, true, nil
	}
	elements := t.toSort(args[1], r, q)
	if !q.unsorted && !t.sort(elements, q) {
		return failure("ERR One or more scores can't be converted into double")
	}
	results := t.sortResults(elements[q.bounds(len(elements)):], q)
	if !q.storing {
		return array(results)
	}
	return t.storeList(q.store, results)
}

// bounds is how many elements are skipped.
func (q *sortQuery) bounds(n int) int { return int(min(max(q.skip, 0), int64(n))) }

// toSort collects the elements of a record, in its order.
func (t *txn) toSort(name []byte, r record, q sortQuery) []sorting {
	var elements []sorting
	add := func(e []byte) { elements = append(elements, sorting{element: t.keep(e)}) }
	switch r.kind {
	case state.List:
		t.items(name, r.bounds(), q.unsorted && q.descending, func(_ int64, item []byte) bool { add(item); return true })
	case state.Set:
		t.elements(name, func(member, _ []byte) { add(member) })
	case state.SortedSet:
		z, _ := t.sortedSet(name)
		z.walk(z.all(), q.unsorted && q.descending, func(m scored) bool { add(m.member); return true })
	}
	return elements
}

// sort puts elements in order; ok is false if one has no score.
func (t *txn) sort(elements []sorting, q sortQuery) bool {
	for i := range elements {
		if t.err != nil {
			return true
		}
		e := &elements[i]
		e.text = e.element
		if q.by != nil {
			e.text = t.lookUp(q.by, e.element)
		}
		if q.alpha || e.text == nil {
			continue
		}
		var fits, ok bool
		if e.score, fits, ok = parseLoosely(e.text); !ok || !fits || isTiny(e.score) {
			return false
		}
	}
	slices.SortStableFunc(elements, func(a, b sorting) int {
		if t.err == nil {
			t.err = t.overlay.proceed(workOfArg)
		}
		order := a.compare(b, q)
		if q.descending {
			return -order
		}
		return order
	})
	return true
}

// isTiny says whether a number is so small that it may have lost digits, which C's strtod tells of.
func isTiny(f float64) bool { return f != 0 && math.Abs(f) < 0x1p-1022 }

func (a sorting) compare(b sorting, q sortQuery) int {
	switch {
	case !q.alpha && a.score < b.score:
		return -1
	case !q.alpha && a.score > b.score:
		return 1
	case !q.alpha || q.by == nil:
		return bytes.Compare(a.element, b.element)
	case (a.text == nil) != (b.text == nil):
		if a.text == nil {
			return -1
		}
		return 1
	}
	return bytes.Compare(a.text, b.text)
}

// lookUp finds the value that a pattern leads to for an element: "#" is the element itself; a star stands for it in the
// name of a string or, with ->FIELD behind, of a hash. nil: there is none.
func (t *txn) lookUp(pattern, element []byte) []byte {
	if string(pattern) == "#" {
		return element
	}
	star := bytes.IndexByte(pattern, '*')
	if star < 0 || t.err != nil {
		return nil
	}
	rest, field := pattern[star+1:], []byte(nil)
	if i := bytes.Index(rest, []byte("->")); i >= 0 && i+2 < len(rest) {
		rest, field = rest[:i], rest[i+2:]
	}
	name := slices.Concat(pattern[:star], element, rest)
	r := t.load(name)
	switch {
	case field == nil && r.kind == state.String:
		t.show(r.payload)
		return append([]byte{}, r.payload...)
	case field != nil && r.kind == state.Hash:
		if value, found := t.element(name, field); found {
			t.show(value)
			return append([]byte{}, value...)
		}
	}
	return nil
}

// sortResults is what SORT shows of up to the wanted number of elements.
func (t *txn) sortResults(elements []sorting, q sortQuery) []state.Reply {
	if q.most >= 0 {
		elements = elements[:min(q.most, int64(len(elements)))]
	}
	results := []state.Reply{}
	for _, e := range elements {
		if len(q.get) == 0 {
			results = append(results, bulk(e.element))
		}
		for _, pattern := range q.get {
			if t.show(nil); t.err != nil {
				return nil
			}
			if value := t.lookUp(pattern, e.element); value != nil {
				results = append(results, bulk(value))
			} else {
				results = append(results, null())
			}
		}
	}
	return results
}

// storeList makes a record a list of results.
func (t *txn) storeList(name []byte, results []state.Reply) state.Reply {
	if old := t.load(name); old.exists() {
		t.remove(name, old)
	}
	b := bounds{listOrigin, listOrigin}
	for _, item := range results {
		t.setElement(name, itemNumber(b.end), item.Text)
		b.end++
	}
	if b.len() > 0 {
		t.settleList(name, record{}, b)
	}
	return integer(b.len())
}
