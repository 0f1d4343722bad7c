package command

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// memory is a Reader of a map.
type memory map[string]string

func (m memory) Get(key []byte) ([]byte, bool, error) {
	v, ok := m[string(key)]
	return []byte(v), ok, nil
}

func (m memory) Scan(from, to []byte, reverse bool, f func(key, value []byte) bool) error {
	var keys []string
	for key := range m {
		if key >= string(from) && (to == nil || key < string(to)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if reverse {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		if !f([]byte(key), []byte(m[key])) {
			break
		}
	}
	return nil
}

// Clear, Set and Delete make memory a Changes.
func (m memory) Clear(from, to []byte) error {
	for key := range m {
		if key >= string(from) && key < string(to) {
			delete(m, key)
		}
	}
	return nil
}

func (m memory) Set(key, value []byte) error {
	m[string(key)] = string(value)
	return nil
}

func (m memory) Delete(key []byte) error {
	delete(m, string(key))
	return nil
}

// machine executes commands one after the other over a memory.
type machine struct {
	memory memory
	now    time.Time
}

func (m *machine) run(args ...string) (state.Reply, error) {
	var list [][]byte
	for _, arg := range args {
		list = append(list, []byte(arg))
	}
	spec, reply := Find(list)
	if spec == nil {
		return reply, nil
	}
	o := NewOverlay(context.Background(), m.memory)
	reply, err := Execute(o, spec, "space", m.now, list)
	if err != nil || reply.Kind == state.Error {
		return reply, err
	}
	return reply, o.Flush(m.memory)
}

// show writes a reply for people.
func show(r state.Reply) string {
	switch r.Kind {
	case state.Nil:
		return "nil"
	case state.NilArray:
		return "nil array"
	case state.Simple:
		return string(r.Text)
	case state.Error:
		return "error: " + string(r.Text)
	case state.Integer:
		return strconv.FormatInt(r.Int, 10)
	case state.Bulk:
		return strconv.Quote(string(r.Text))
	case state.Double:
		return strconv.FormatFloat(r.Float, 'g', -1, 64)
	}
	var items []string
	for _, item := range r.Items {
		items = append(items, show(item))
	}
	brackets := map[state.ReplyKind]string{state.Array: "[]", state.MapReply: "{}", state.SetReply: "()", state.Pairs: "<>"}[r.Kind]
	return brackets[:1] + strings.Join(items, " ") + brackets[1:]
}

// TestReplies runs the scripts in testdata/replies. "run" executes commands, one a line, with words as Go or plain strings; "at"
// sets the clock to a number of milliseconds; "keys" shows what is stored.
func TestReplies(t *testing.T) {
	datadriven.Walk(t, "testdata/replies", func(t *testing.T, path string) {
		m := &machine{memory: memory{}, now: time.UnixMilli(0)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "run":
				return m.script(t, d.Input)
			case "at":
				ms, err := strconv.ParseInt(d.CmdArgs[0].Key, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				m.now = time.UnixMilli(ms)
				return ""
			case "stored":
				return m.stored()
			}
			t.Fatalf("%s: unknown directive %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

func (m *machine) script(t *testing.T, input string) string {
	var b strings.Builder
	for line := range strings.Lines(input) {
		var args []string
		for _, word := range strings.Fields(line) {
			if plain, err := strconv.Unquote(word); err == nil {
				word = plain
			}
			args = append(args, word)
		}
		reply, err := m.run(args...)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, show(reply))
	}
	return b.String()
}

func (m *machine) stored() string {
	var b strings.Builder
	_ = m.memory.Scan(nil, nil, false, func(key, value []byte) bool {
		fmt.Fprintf(&b, "%q = %q\n", key, value)
		return true
	})
	return b.String()
}

func TestTableIsComplete(t *testing.T) {
	specs := All()
	if len(specs) != 250 {
		t.Errorf("%d commands: Redis 7.0.15 has 240, 7.2 has WAITAOF, and 7.4 nine for the lives of fields", len(specs))
	}
	for _, s := range specs {
		if s.Implemented() && (s.Flags&(Read|Write) == 0 || s.Flags&Connection != 0) {
			t.Errorf("%s is executed on records, but the table does not say that it reads or writes them", s.Name)
		}
		if s.Facts() == nil {
			t.Errorf("there are no facts of %s", s.Name)
		}
		if s.Arity == 0 || s.Name != strings.ToLower(s.Name) || len(s.Name) > maxName {
			t.Errorf("%s has arity %d", s.Name, s.Arity)
		}
		if Known([]byte(strings.ToUpper(s.Name))) != s {
			t.Errorf("%s is not found in capitals", s.Name)
		}
	}
}

func TestKeys(t *testing.T) {
	for line, want := range map[string]string{
		"GET a":                                  "a",
		"MSET a 1 b 2":                           "a b",
		"DEL a b c":                              "a b c",
		"BLPOP a b 0":                            "a b",
		"BITOP AND a b c":                        "a b c",
		"EVAL script 2 a b c":                    "a b",
		"EVAL script x a b":                      "",
		"EVAL script 99 a b":                     "",
		"FCALL f 0":                              "",
		"ZUNIONSTORE a 2 b c WEIGHTS 1 2":        "a b c",
		"ZINTERCARD 2 a b LIMIT 1":               "a b",
		"XREAD COUNT 2 STREAMS a b 0 0":          "a b",
		"XREADGROUP GROUP g c STREAMS a >":       "a",
		"SORT a BY w_* STORE b":                  "a b",
		"GEORADIUS a 1 2 3 m STORE b":            "a b",
		"MIGRATE h 1 a 0 5":                      "a",
		`MIGRATE h 1 "" 0 5 COPY KEYS a b`:       "a b",
		"SORT a BY STORE GET STORE STORE b":      "a b",
		"SORT a STORE GET STORE b":               "a b",
		"OBJECT ENCODING a":                      "a",
		"PING a":                                 "",
		"BLMPOP 0 2 a b LEFT":                    "a b",
		"GEORADIUSBYMEMBER a m 1 km STOREDIST d": "a d",
	} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(strings.Trim(word, `"`)))
		}
		var keys []string
		for i := range Known(args[0]).KeyPositions(args) {
			keys = append(keys, string(args[i]))
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: keys %q, want %q", line, got, want)
		}
	}
}

func TestAccess(t *testing.T) {
	for line, want := range map[string]Flags{
		"SET a 1":               Write,
		"SET a 1 PXAT 100":      Write,
		"SET a 1 EX 100":        Write | Clock,
		"SET a 1 NX":            Write | Read,
		"SET a 1 GET":           Write | Read,
		"SET a 1 KEEPTTL":       Write | Read,
		"SET a 1 nonsense":      Write,
		"INCR a":                Read | Write,
		"SORT a STORE b":        Read | Write,
		"SORT a BY STORE GET b": Read | Unbufferable | Whole,
		"BITFIELD a GET u8 0 OVERFLOW SAT GET u8 8": Read,
		"BITFIELD a GET u8 0 SET u8 8 1":            Read | Write,
		"GET a":                                     Read,
		"TTL a":                                     Read | Clock,
		"SPOP a":                                    Read | Write | Unbufferable,
		"HELLO 3":                                   Connection,
	} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		if got := Known(args[0]).Access(args); got != want {
			t.Errorf("%s: %b, want %b", line, got, want)
		}
	}
}

// TestOverlay holds an overlay against a map that is really changed.
func TestOverlay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	key := func() []byte { return []byte{byte('a' + rng.IntN(12))} }
	for range 300 {
		base, want := memory{}, memory{}
		for range rng.IntN(10) {
			k := key()
			_ = base.Set(k, k)
			_ = want.Set(k, k)
		}
		o := NewOverlay(context.Background(), base)
		for n := range rng.IntN(12) {
			k, v := key(), []byte(strconv.Itoa(n))
			switch rng.IntN(5) {
			case 0:
				to := key()
				o.Clear(k, to)
				_ = want.Clear(k, to)
			case 1, 2:
				o.Delete(k)
				_ = want.Delete(k)
			default:
				o.Set(k, v)
				_ = want.Set(k, v)
			}
		}
		sameContent(t, o, want)
		if err := o.Flush(base); err != nil {
			t.Fatal(err)
		}
		sameContent(t, base, want)
	}
}

func sameContent(t *testing.T, a, b Reader) {
	t.Helper()
	for from := byte('a'); from <= 'm'; from++ {
		if va, oka, _ := a.Get([]byte{from}); true {
			if vb, okb, _ := b.Get([]byte{from}); oka != okb || oka && string(va) != string(vb) {
				t.Fatalf("Get(%c): %q %v and %q %v", from, va, oka, vb, okb)
			}
		}
		for _, reverse := range []bool{false, true} {
			for _, most := range []int{1, 3, 100} {
				if x, y := scanned(a, from, reverse, most), scanned(b, from, reverse, most); x != y {
					t.Fatalf("Scan from %c, reverse %v, %d: %s and %s", from, reverse, most, x, y)
				}
			}
		}
	}
}

func scanned(r Reader, from byte, reverse bool, most int) string {
	var b strings.Builder
	_ = r.Scan([]byte{from}, []byte("k"), reverse, func(key, value []byte) bool {
		fmt.Fprintf(&b, "%s=%s ", key, value)
		most--
		return most > 0
	})
	return b.String()
}

func TestRecordKeys(t *testing.T) {
	for _, space := range []string{"", "s", "s\x00", "s\x00\xff", "state/guest"} {
		for _, name := range []string{"", "a", "\x00", "a\x00\x01b"} {
			k := forerun.Key{Space: space, Name: name}
			if got, ok := ParseRecordKey(RecordKey(k)); !ok || got != k {
				t.Errorf("%q comes back as %q", k, got)
			}
			from, to := RecordRange(space, "", "")
			if key := string(RecordKey(k)); key < string(from) || key >= string(to) {
				t.Errorf("%q is not in the range of its space", k)
			}
			from, to = RecordRange(space+"x", "", "")
			if key := string(RecordKey(k)); key >= string(from) && key < string(to) {
				t.Errorf("%q is in the range of another space", k)
			}
		}
	}
	if a, b := RecordKey(forerun.Key{Space: "s", Name: "\x00\x01x"}), RecordKey(forerun.Key{Space: "s\x00\x01", Name: "x"}); string(a) == string(b) {
		t.Error("two records share a key")
	}
}

func TestDamageIsNoticed(t *testing.T) {
	key := string(RecordKey(forerun.Key{Space: "space", Name: "a"}))
	for _, stored := range []string{"", "\x01", "\x09123456789", "\x0112345678\x01short"} {
		m := &machine{memory: memory{key: stored}}
		if _, err := m.run("GET", "a"); forerun.KindOf(err) != forerun.Internal || err == nil {
			t.Errorf("GET of the damaged %q: %v", stored, err)
		}
		if _, err := Decode([]byte(stored), m.now); err == nil {
			t.Errorf("%q is decoded", stored)
		}
	}
}

// TestExpiredSetsAreNotSubtracted: until they are swept their members are stored.
func TestExpiredSetsAreNotSubtracted(t *testing.T) {
	m := &machine{memory: memory{}, now: time.UnixMilli(1000)}
	for _, c := range [][]string{{"SADD", "a", "x", "y"}, {"SADD", "b", "x"}, {"PEXPIRE", "b", "10"}} {
		if _, err := m.run(c...); err != nil {
			t.Fatal(err)
		}
	}
	m.now = m.now.Add(time.Second)
	for _, c := range []struct {
		want string
		args []string
	}{
		{`("x" "y")`, []string{"SDIFF", "a", "b"}},
		{"[]", []string{"ZDIFF", "2", "b", "a"}},
		{`["x" "y"]`, []string{"ZDIFF", "2", "a", "b"}},
		{"2", []string{"SDIFFSTORE", "c", "a", "b"}},
	} {
		if reply, err := m.run(c.args...); err != nil || show(reply) != c.want {
			t.Errorf("%v: %s, %v; want %s", c.args, show(reply), err, c.want)
		}
	}
}
