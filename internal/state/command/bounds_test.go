package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// endless is a store of records without end, each of the type that its name begins with.
type endless struct {
	value []byte // of each field, item and string
	most  int    // elements that may be looked at
	has   uint64 // elements; 0: without end
	over  bool   // more were
}

func (e *endless) record(name []byte) record {
	many := cmp.Or(e.has, 1<<40)
	switch r := (record{payload: binary.AppendUvarint(nil, many)}); name[0] {
	case 'h':
		r.kind = state.Hash
		return r
	case 'l':
		return record{kind: state.List, payload: binary.BigEndian.AppendUint64(itemNumber(listOrigin), listOrigin+many)}
	case 's':
		r.kind = state.Set
		return r
	case 'z':
		r.kind = state.SortedSet
		return r
	case 't':
		return record{kind: state.String, payload: e.value}
	}
	return record{}
}

func (e *endless) Get(key []byte) ([]byte, bool, error) {
	k, isRecord := ParseRecordKey(key)
	if !isRecord {
		return e.value, true, nil
	}
	r := e.record([]byte(k.Name))
	return r.encode(), r.exists(), nil
}

func (e *endless) Scan(from, _ []byte, _ bool, f func(key, value []byte) bool) error {
	value := e.value
	if IsRecordKey(from) {
		r := e.record([]byte("t"))
		value = r.encode()
	}
	for n := range uint64(e.most) {
		if !f(binary.BigEndian.AppendUint64(append(bytes.Clone(from), make([]byte, scoreSize)...), n), value) {
			return nil
		}
	}
	e.over = true
	return nil
}

// TestNoCommandCollectsWithoutEnd: a tenant may store more than there is memory for, and ask for it with a few bytes.
func TestNoCommandCollectsWithoutEnd(t *testing.T) {
	value := strings.Repeat("v", 1000)
	for _, line := range []string{
		"HGETALL h", "HKEYS h", "HVALS h", "RENAME h i", "COPY h i", "HSCAN h 0 COUNT 100000",
		"LRANGE l 0 -1", "LREM l 1 " + value, "LREM l 0 " + value, "LPOS l " + value + " COUNT 0", "LPOP l 100000", "LMPOP 1 l RIGHT COUNT 100000", "SORT l ALPHA LIMIT 0 1",
		"SMEMBERS s", "SUNION s s", "SINTER s s", "SDIFF s x", "SUNIONSTORE x s", "SSCAN s 0 COUNT 100000", "SPOP s 100000000", "SRANDMEMBER s 100000000",
		"ZRANGE z 0 -1", "ZRANGEBYSCORE z -inf inf", "ZRANGEBYLEX z - +", "ZRANGESTORE x z 0 -1", "ZREMRANGEBYRANK z 0 -1", "ZPOPMIN z 100000",
		"ZMPOP 1 z MIN COUNT 100000", "ZUNION 2 z s", "ZINTER 1 z", "ZDIFF 1 z", "ZSCAN z 0 COUNT 100000",
		"KEYS *", "SCAN 0 COUNT 100000",
		"MGET" + strings.Repeat(" t", 100), "HMGET h" + strings.Repeat(" f", 100), "BITOP OR x" + strings.Repeat(" t", 100),
	} {
		args := bytes.Fields([]byte(line))
		spec, refusal := Find(args)
		if spec == nil {
			t.Fatal(line, show(refusal))
		}
		store := &endless{value: []byte(value), most: 20_000}
		tx := txn{overlay: NewOverlay(context.Background(), store), spec: spec, shown: maxStep - 64<<10}
		if spec.run(&tx, args); forerun.KindOf(tx.err) != forerun.TooLarge || store.over {
			t.Errorf("%.60s: %v; it looked at more than %d elements: %v", line, tx.err, store.most, store.over)
		}
	}
}

// TestOnlyWhatIsKeptCounts: values that are not asked for, and members that are left out, do not.
func TestOnlyWhatIsKeptCounts(t *testing.T) {
	for _, line := range []string{"HRANDFIELD h 3", "SDIFF s s", "SDIFFSTORE x s s"} {
		args := bytes.Fields([]byte(line))
		spec, _ := Find(args)
		tx := txn{overlay: NewOverlay(context.Background(), &endless{value: make([]byte, 1000), most: 20, has: 20}), spec: spec}
		if spec.run(&tx, args); tx.err != nil || tx.shown > 500 {
			t.Errorf("%s keeps %d bytes (%v)", line, tx.shown, tx.err)
		}
	}
}

// TestSortAnswersWithinBounds: each of many patterns may ask for each of many elements.
func TestSortAnswersWithinBounds(t *testing.T) {
	m := &machine{memory: memory{}}
	if _, err := m.run(strings.Fields("SADD s" + numbered(" ", 100))...); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"#", "x*"} {
		args := bytes.Fields([]byte("SORT s" + strings.Repeat(" GET "+pattern, 100)))
		tx := txn{overlay: NewOverlay(context.Background(), m.memory), spec: Known(args[0]), space: "space", shown: maxStep - 64<<10}
		if reply := sortRecord(&tx, args); forerun.KindOf(tx.err) != forerun.TooLarge || len(reply.Items) > 0 {
			t.Errorf("GET %s: %d items, %v", pattern, len(reply.Items), tx.err)
		}
	}
}

// numbered are n words, each with a number.
func numbered(word string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprint(&b, word, i)
	}
	return b.String()
}

// TestWritesEndWithinBounds: an element lies under the name of its record, which may be long.
func TestWritesEndWithinBounds(t *testing.T) {
	name := strings.Repeat("n", 1000)
	for _, line := range []string{
		"SADD " + name + numbered(" m", 100), "RPUSH " + name + numbered(" m", 100), "HSET " + name + numbered(" f 1 f", 99) + " 1",
		"ZADD " + name + numbered(" 1 m", 100),
	} {
		args := bytes.Fields([]byte(line))
		tx := txn{overlay: NewOverlay(context.Background(), memory{}), spec: Known(args[0]), space: "space"}
		tx.overlay.size = 2*maxStep - 10_000
		if tx.spec.run(&tx, args); forerun.KindOf(tx.err) != forerun.TooLarge || len(tx.overlay.writes) > 20 {
			t.Errorf("%.5s: %d writes, %v", line, len(tx.overlay.writes), tx.err)
		}
	}
}

// TestRemovalIsShort: also of few elements, if their names are long; it must not need the memory that they would take.
func TestRemovalIsShort(t *testing.T) {
	m := &machine{memory: memory{}}
	long := strings.Repeat("x", 2000)
	for line, want := range map[string]int{
		"HSET h" + numbered(" f"+long, 100): 1, "SADD s" + numbered(" m"+long, 50): 1, "ZADD z" + numbered(" 1 m"+long, 50): 2, "SADD few" + numbered(" m", 50): 0,
	} {
		args := strings.Fields(line)
		if reply, err := m.run(args...); err != nil || reply.Kind == state.Error {
			t.Fatal(show(reply), err)
		}
		o := NewOverlay(context.Background(), m.memory)
		command := [][]byte{[]byte("DEL"), []byte(args[1])}
		if _, err := Execute(o, Known(command[0]), "space", m.now, command); err != nil || len(spans(o)) != want || want > 0 && len(o.writes) != 1 {
			t.Errorf("DEL %s clears %d ranges and removes %d keys, %v; want %d", args[1], len(spans(o)), len(o.writes), err, want)
		}
		if reply, _ := m.run("DEL", args[1]); show(reply) != "1" {
			t.Errorf("DEL %s: %s", args[1], show(reply))
		}
	}
	if len(m.memory) != 0 {
		t.Errorf("%d pairs are left", len(m.memory))
	}
}

// spans are the ranges that an overlay clears.
func spans(o *Overlay) []span { return slices.Concat(o.cleared...) }

// TestManyRangesAreCleared: each is found among many without a look at all.
func TestManyRangesAreCleared(t *testing.T) {
	const n = 5000
	o := NewOverlay(context.Background(), nothing{})
	key := func(i int, end string) []byte { return fmt.Appendf(nil, "%05d%s", i, end) }
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		o.Set(key(i, "b"), nil)
		o.Clear(key(i, "a"), key(i, "c"))
		o.Set(key(i, "d"), nil)
	}
	if len(spans(o)) != n || len(o.cleared) > bits.Len(n) || len(o.written(nil, nil)) != n || len(o.sorted) > bits.Len(n) {
		t.Errorf("%d ranges lie in %d runs, %d writes in %d", len(spans(o)), len(o.cleared), len(o.writes), len(o.sorted))
	}
	for i := range n {
		if !o.isCleared(key(i, "a")) || !o.isCleared(key(i, "bb")) || o.isCleared(key(i, "c")) || o.isCleared(key(i, "")) {
			t.Fatalf("the ends of range %d are somewhere else", i)
		}
	}
	if o.Clear(key(0, ""), key(n, "")); !o.isCleared(key(0, "")) || !o.isCleared(key(n-1, "d")) || o.isCleared(key(n, "")) || len(o.writes) > 0 {
		t.Error("one that holds all others is not cleared")
	}
}

// nothing is a store without records.
type nothing struct{}

func (nothing) Get([]byte) ([]byte, bool, error) { return nil, false, nil }

func (nothing) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error { return nil }

// TestRemovalsTakeRoom: each element that is removed by itself takes some; what lies together is removed as a whole.
func TestRemovalsTakeRoom(t *testing.T) {
	m := &machine{memory: memory{}}
	for _, line := range []string{"SADD s" + numbered(" m", 1000), "HSET h" + numbered(" f 1 f", 999) + " 1", "ZADD z" + numbered(" 1 m", 1000), "RPUSH l" + numbered(" i", 1000)} {
		if reply, err := m.run(strings.Fields(line)...); err != nil || reply.Kind == state.Error {
			t.Fatal(show(reply), err)
		}
	}
	for line, most := range map[string]int{
		"SREM s" + numbered(" m", 900): 901, "HDEL h" + numbered(" f", 900): 901, "SPOP s 900": 901, "ZREM z" + numbered(" m", 900): 1801, "ZREMRANGEBYRANK z 0 899": 901,
		"ZPOPMAX z 900": 901, "LPOP l 900": 1, "RPOP l 900": 1, "LMPOP 1 l LEFT COUNT 900": 1, "SPOP s 1000": 1, "ZREMRANGEBYRANK z 0 -1": 1, "LPOP l 1000": 1,
	} {
		for _, full := range []bool{false, true} {
			args := bytes.Fields([]byte(line))
			tx := txn{overlay: NewOverlay(context.Background(), m.memory), spec: Known(args[0]), space: "space"}
			if full {
				tx.overlay.size = 2*maxStep - 10_000
			}
			tx.spec.run(&tx, args)
			refused := forerun.KindOf(tx.err) == forerun.TooLarge && tx.err != nil
			if refused != (full && most > 100) || len(tx.overlay.writes) > most {
				t.Errorf("%.30s: %d writes, %v; want %d", line, len(tx.overlay.writes), tx.err, most)
			}
		}
	}
}

// leaving is a store whose reader goes away with the first read.
type leaving struct {
	Reader
	leave func()
	reads int
}

func (l *leaving) Get(key []byte) ([]byte, bool, error) {
	l.leave()
	l.reads++
	return l.Reader.Get(key)
}

func (l *leaving) Scan(from, to []byte, reverse bool, f func(key, value []byte) bool) error {
	l.leave()
	return l.Reader.Scan(from, to, reverse, func(key, value []byte) bool {
		l.reads++
		return f(key, value)
	})
}

// TestCommandsEndWithTheirContext: also in the midst of what takes long.
func TestCommandsEndWithTheirContext(t *testing.T) {
	const many = 20_000
	for _, line := range []string{
		"KEYS *", "KEYS none*", "DBSIZE", "SCAN 0 COUNT 1000000", "LPOS l x", "LREM l 0 x", "ZCOUNT z -inf inf", "ZLEXCOUNT z - +",
		"SINTER" + strings.Repeat(" s", many), "SDIFF s" + strings.Repeat(" none", many), "ZDIFF " + fmt.Sprint(many) + strings.Repeat(" none", many),
		"PFCOUNT" + strings.Repeat(" none", many), "DEL" + numbered(" none", many), "HMGET h" + numbered(" f", many), "HDEL h" + numbered(" f", many),
	} {
		endsWithItsContext(t, &endless{most: many}, line, 5000)
	}
	m := memory{}
	long := strings.Repeat("a", 100_000)
	for _, args := range [][]string{{"SET", long, "1"}, {"SET", "a", long[:2000]}, {"HSET", "h" + long, "f", "1"}, {"SADD", "set", "1", "2", "3"}} {
		if _, err := (&machine{memory: m}).run(args...); err != nil {
			t.Fatal(err)
		}
	}
	for line, most := range map[string]int{
		"KEYS *" + long[:len(long)/2] + "b": 5, "KEYS *[" + long[:len(long)/2] + "]b": 5, "LCS a a": 2, "HMGET h" + long + numbered(" f", 1000): 20,
		"SORT set BY " + strings.Repeat(long, 11) + "*": 6,
	} {
		endsWithItsContext(t, m, line, most)
	}
}

func endsWithItsContext(t *testing.T, store Reader, line string, most int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	base := &leaving{Reader: store, leave: cancel}
	args := bytes.Fields([]byte(line))
	_, err := Execute(NewOverlay(ctx, base), Known(args[0]), "space", time.Time{}, args)
	if !errors.Is(err, context.Canceled) || base.reads > most {
		t.Errorf("%.30s: %v after %d reads", line, err, base.reads)
	}
}

// broken is a store in which no element can be found, but walked over.
type broken struct{ memory }

var errBroken = errors.New("broken")

func (b broken) Get(key []byte) ([]byte, bool, error) {
	if key[0] == elementPrefix {
		return nil, false, errBroken
	}
	return b.memory.Get(key)
}

// TestErrorsWithinAWalkAreTold: what the store could not read must not seem to be absent.
func TestErrorsWithinAWalkAreTold(t *testing.T) {
	m := &machine{memory: memory{}}
	for _, name := range []string{"a", "b"} {
		if _, err := m.run("SADD", name, "x"); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"SINTER a b", "SINTERCARD 2 a b", "ZINTER 2 a b", "ZDIFF 2 a b", "SDIFF a b"} {
		args := bytes.Fields([]byte(line))
		if reply, err := Execute(NewOverlay(context.Background(), broken{m.memory}), Known(args[0]), "space", time.Time{}, args); !errors.Is(err, errBroken) {
			t.Errorf("%s: %s, %v", line, show(reply), err)
		}
	}
}
