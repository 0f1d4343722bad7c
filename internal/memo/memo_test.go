package memo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/test/history"
)

var _ speculate.Memo = (*Tenant)(nil)

func code(n int) forerun.Digest { return forerun.Digest{byte(n)} }

func input(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)) }

func rowOf(output string) *forerun.Row { return &forerun.Row{Output: json.RawMessage(output)} }

func TestRowsAreFoundByTenantCodeAndInput(t *testing.T) {
	table := New(Options{})
	a := table.Tenant("a")
	a.Learn(code(1), input(1), rowOf("1"))
	for _, c := range []struct {
		tenant string
		code   int
		input  string
		found  bool
	}{
		{"a", 1, `{"n":1}`, true},
		{"a", 1, `{"n":1.0}`, false}, // equal is equal bytes
		{"a", 1, `{"n": 1}`, false},
		{"a", 2, `{"n":1}`, false},
		{"b", 1, `{"n":1}`, false},
	} {
		if row := table.Tenant(c.tenant).Find(code(c.code), json.RawMessage(c.input)); (row != nil) != c.found {
			t.Errorf("%+v: %+v", c, row)
		}
	}
	a.Learn(code(1), input(1), rowOf("2"))
	if row := a.Find(code(1), input(1)); string(row.Output) != "2" {
		t.Errorf("the older row is found: %s", row.Output)
	}
	if s := table.Stats(); s.Hits != 2 || s.Misses != 4 || s.Rows != 1 || s.Bytes != int64(size(rowOf("2"))) || s.Evictions != 0 {
		t.Errorf("%+v", s)
	}
}

func TestRowsGoWithTheirTenant(t *testing.T) {
	table := New(Options{})
	a, b := table.Tenant("a"), table.Tenant("b")
	for n := range 10 {
		a.Learn(code(n%2), input(n), rowOf("x"))
		b.Learn(code(n%2), input(n), rowOf("x"))
	}
	table.Forget("b")
	table.Forget("nobody")
	b.Learn(code(1), input(1), rowOf("x"))
	if a.Find(code(0), input(0)) == nil || a.Find(code(1), input(1)) == nil || b.Find(code(1), input(1)) != nil || table.Tenant("b").Find(code(1), input(1)) != nil {
		t.Error("the wrong rows are left")
	}
	if s := table.Stats(); s.Rows != 10 || s.Evictions != 0 {
		t.Errorf("%+v", s)
	}
}

func TestLargeRowsAreNotKept(t *testing.T) {
	table := New(Options{})
	a := table.Tenant("a")
	large := rowOf(string(bytes.Repeat([]byte("x"), MaxRow)))
	a.Learn(code(1), input(1), rowOf("1"))
	a.Learn(code(1), input(1), large)
	many := rowOf("1")
	for n := range 20_000 {
		many.Reads = append(many.Reads, forerun.Seen{Key: forerun.Key{Space: "a", Name: fmt.Sprint(n)}})
	}
	a.Learn(code(1), input(2), many)
	if a.Find(code(1), input(1)) != nil || a.Find(code(1), input(2)) != nil {
		t.Error("a row of more than 1 MiB is kept, or what it replaced")
	}
	long := strings.Repeat("x", MaxRow)
	called := []forerun.Callee{{Action: "f", Input: json.RawMessage(long)}}
	for what, row := range map[string]*forerun.Row{
		"calls":            {Callees: called},
		"calls of a call":  {Below: called},
		"the name it read": {Reads: []forerun.Seen{{Key: forerun.Key{Name: long}}}},
	} {
		if a.Learn(code(1), input(3), row); a.Find(code(1), input(3)) != nil {
			t.Errorf("a row is kept with more than 1 MiB of %s", what)
		}
	}
	if s := table.Stats(); s.Rows != 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
}

// TestOthersRowsStay has one tenant learn all it can.
func TestOthersRowsStay(t *testing.T) {
	table := New(Options{Rows: 100})
	table.Tenant("a").Learn(code(1), input(1), rowOf("1"))
	for n := range 1000 {
		table.Tenant("b").Learn(code(1), input(n), rowOf("2"))
	}
	if table.Tenant("a").Find(code(1), input(1)) == nil {
		t.Error("another's rows have pushed the row out")
	}
	if s := table.Stats(); s.Rows != 101 || s.Evictions != 900 {
		t.Errorf("%+v", s)
	}
}

// TestPoisonedTableIsBounded has somebody invoke with inputs, actions and outputs that are never the same.
func TestPoisonedTableIsBounded(t *testing.T) {
	table := New(Options{Rows: 500, Bytes: 1 << 20})
	a := table.Tenant("a")
	for n := range 20_000 {
		row := rowOf(strings.Repeat("x", n%5000))
		row.Callees = make([]forerun.Callee, n%7)
		a.Learn(forerun.Digest{byte(n), byte(n >> 8), byte(n >> 16)}, input(n), row)
	}
	rows, bytes := 0, 0
	for _, of := range a.codes {
		for _, e := range of {
			rows, bytes = rows+1, bytes+size(e.row)
		}
	}
	if s := table.Stats(); rows == 0 || rows > 500 || bytes > 1<<20 || s.Rows != int64(rows) || s.Bytes != int64(bytes) || len(a.codes) > rows {
		t.Errorf("%d rows of %d bytes, by %d codes; %+v", rows, bytes, len(a.codes), s)
	}
}

// model is a tenant's part as a list, the one that was asked for last at its end.
type model struct {
	bound Options
	list  []modelRow
}

type modelRow struct {
	code, input int
	row         *forerun.Row
}

func (m *model) take(code, input int) *modelRow {
	for i, r := range m.list {
		if r.code == code && r.input == input {
			m.list = slices.Delete(m.list, i, i+1)
			return &r
		}
	}
	return nil
}

func (m *model) bytes() (n int) {
	for _, r := range m.list {
		n += size(r.row)
	}
	return n
}

func (m *model) learn(r modelRow) {
	m.take(r.code, r.input)
	if size(r.row) > m.bound.Bytes {
		return
	}
	for len(m.list) >= m.bound.Rows || m.bytes()+size(r.row) > m.bound.Bytes {
		m.list = m.list[1:]
	}
	m.list = append(m.list, r)
}

// TestTheOldestRowsGoFirst holds the table against a list.
func TestTheOldestRowsGoFirst(t *testing.T) {
	for seed, rng := range history.Rounds(t) {
		t.Logf("seed %d", seed)
		compareWithList(t, rng)
	}
}

func compareWithList(t *testing.T, rng *rand.Rand) {
	t.Helper()
	o := Options{Rows: 20, Bytes: 20_000}
	table, m := New(o), model{bound: o}
	tenant := table.Tenant("a")
	for range 20_000 {
		c, in := rng.IntN(4), rng.IntN(15)
		switch rng.IntN(40) {
		default:
			got, want := tenant.Find(code(c), input(in)), m.take(c, in)
			if want != nil {
				m.list = append(m.list, *want)
			}
			if (got != nil) != (want != nil) || want != nil && got != want.row {
				t.Fatalf("found %v, want %v", got, want)
			}
		case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
			row := rowOf(string(bytes.Repeat([]byte("x"), rng.IntN(3000))))
			if rng.IntN(50) == 0 {
				row = rowOf(string(bytes.Repeat([]byte("x"), 30_000)))
			}
			tenant.Learn(code(c), input(in), row)
			m.learn(modelRow{c, in, row})
		}
		if s := table.Stats(); s.Rows != int64(len(m.list)) || s.Bytes != int64(m.bytes()) {
			t.Fatalf("%+v, want %d rows of %d bytes", s, len(m.list), m.bytes())
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	table := New(Options{Rows: 50, Total: 30_000})
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := range 2000 {
				tenant := table.Tenant(fmt.Sprint(n % 3))
				tenant.Learn(code(n%5), input(n%100), rowOf(fmt.Sprint(n%5, n%100)))
				if row := tenant.Find(code(worker), input(n%70)); row != nil && string(row.Output) != fmt.Sprint(worker, n%70) {
					t.Errorf("found the row of another: %s", row.Output)
				}
				if n%500 == 200 {
					table.Forget("1")
				}
			}
		})
	}
	all.Wait()
	for n := range 3 {
		table.Forget(fmt.Sprint(n))
	}
	if s := table.Stats(); s.Rows != 0 || s.Bytes != 0 {
		t.Errorf("%+v is left", s)
	}
}

// TestAllTogetherAreBounded has many tenants learn. Who has less than an equal part loses nothing for the others, nor does who comes last.
func TestAllTogetherAreBounded(t *testing.T) {
	one := size(rowOf("1"))
	table := New(Options{Total: 100 * one})
	table.Tenant("little").Learn(code(1), input(1), rowOf("1"))
	for n := range 90 {
		table.Tenant("much").Learn(code(1), input(n), rowOf("1"))
	}
	for n := range 10 {
		table.Tenant("more").Learn(code(1), input(n), rowOf("1"))
	}
	if s := table.Stats(); s.Rows != 100 || s.Evictions != 1 || table.Tenant("much").Find(code(1), input(0)) != nil || table.Tenant("much").Find(code(1), input(1)) == nil {
		t.Errorf("not just the oldest row of who has most is gone: %+v", s)
	}
	for n := range 10_000 {
		table.Tenant(fmt.Sprint(n%4)).Learn(code(1), input(n), rowOf("1"))
		if s := table.Stats(); s.Bytes > int64(100*one) {
			t.Fatalf("%+v", s)
		}
	}
	if table.Tenant("little").Find(code(1), input(1)) == nil || table.Tenant("more").Find(code(1), input(0)) == nil {
		t.Error("rows of who has little are gone")
	}
	for _, name := range []string{"0", "1", "2", "3", "much"} {
		if n := table.Tenant(name).rows; n < 17 || n > 18 {
			t.Errorf("%s has %d rows of 100, beside 11 of who has less", name, n)
		}
	}
}

// TestDeletedTenantsTakeNoRoom: what is gone is neither counted nor looked for.
func TestDeletedTenantsTakeNoRoom(t *testing.T) {
	one := size(rowOf("1"))
	table := New(Options{Total: 10 * one})
	for n := range 10 {
		table.Tenant(fmt.Sprint(n)).Learn(code(1), input(n), rowOf("1"))
	}
	for n := range 5 {
		table.Forget(fmt.Sprint(n))
	}
	for n := range 5 {
		table.Tenant("last").Learn(code(1), input(n), rowOf("1"))
	}
	if s := table.Stats(); s.Rows != 10 || s.Evictions != 0 {
		t.Errorf("%+v", s)
	}
	table.Tenant("last").Learn(code(1), input(5), rowOf("1"))
	if s := table.Stats(); s.Rows != 10 || s.Evictions != 1 || len(table.ranks.heap) != 6 || table.Tenant("last").rows != 5 {
		t.Errorf("%+v, %d tenants", s, len(table.ranks.heap))
	}
}

// BenchmarkFind looks for one of 5,000 rows, of inputs of 200 bytes.
func BenchmarkFind(b *testing.B) {
	tenant := New(Options{}).Tenant("a")
	inputs := make([]json.RawMessage, DefaultRows)
	for n := range inputs {
		inputs[n] = json.RawMessage(fmt.Sprintf(`{"n":%d,"text":"%0182d"}`, n, n))
		tenant.Learn(code(n%10), inputs[n], rowOf("1"))
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if tenant.Find(code(n%10), inputs[n%DefaultRows]) == nil {
			b.Fatal("not found")
		}
	}
}

// TestRowsGoWithTheirHomes: rows that rest on deployments that are gone are dropped, and only these.
func TestRowsGoWithTheirHomes(t *testing.T) {
	table := New(Options{})
	a := table.Tenant("a")
	f, g := forerun.Home{Action: "/ns/f", Code: code(1)}, forerun.Home{Action: "/ns/g", Code: code(2)}
	for n := range 3 {
		row := rowOf("x")
		row.Home = f
		if n == 0 {
			row.Below = []forerun.Callee{{Action: g.Action, Code: g.Code}, {Code: code(3)}}
		}
		a.Learn(code(1), input(n), row)
	}
	if homes := a.Homes(); len(homes) != 2 || !slices.Contains(homes, f) || !slices.Contains(homes, g) {
		t.Errorf("the rows rest on %v", homes)
	}
	if n := a.DropOf(map[forerun.Home]bool{g: true}); n != 1 || a.Find(code(1), input(0)) != nil || a.Find(code(1), input(1)) == nil {
		t.Errorf("%d rows are dropped", n)
	}
	if homes := a.Homes(); !slices.Equal(homes, []forerun.Home{f}) {
		t.Errorf("then they rest on %v", homes)
	}
	if a.DropOf(map[forerun.Home]bool{f: true}); table.Stats().Rows != 0 || len(a.Homes()) != 0 {
		t.Errorf("%+v are left, on %v", table.Stats(), a.Homes())
	}
}
