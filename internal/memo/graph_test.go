package memo

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func recordKey(name string) forerun.Key { return forerun.Key{Space: "space", Name: name} }

// reading is a row that read records.
func reading(output string, records ...string) *forerun.Row {
	row := &forerun.Row{Output: json.RawMessage(output), Exact: true}
	for _, name := range records {
		row.Reads = append(row.Reads, forerun.Seen{Key: recordKey(name), Version: 1})
	}
	return row
}

// TestMarks: a row that was confirmed is current until one of its records is written, or something is deployed.
func TestMarks(t *testing.T) {
	table := New(Options{})
	a := table.Tenant("a")
	row := reading("1", "x", "y")
	a.Learn(code(1), input(1), row)
	if a.IsCurrent(row, 7) {
		t.Error("a row is current that was not confirmed")
	}
	a.Confirm(row, a.Mark(row), 7)
	table.Written(recordKey("z"))
	table.Written(forerun.Key{Space: "another", Name: "x"})
	if !a.IsCurrent(row, 7) || a.IsCurrent(row, 8) {
		t.Error("a row that was confirmed is not current, or is current beside other code")
	}
	for _, name := range []string{"x", "y"} {
		before := a.Mark(row)
		table.Written(recordKey(name))
		if a.IsCurrent(row, 7) {
			t.Errorf("%s was written, and the row is current", name)
		}
		if a.Confirm(row, before, 7); a.IsCurrent(row, 7) {
			t.Errorf("%s was written behind the mark of which the row was confirmed, and the row is current", name)
		}
		if a.Confirm(row, a.Mark(row), 7); !a.IsCurrent(row, 7) {
			t.Error("a row that was confirmed again is not current")
		}
	}
	mark := a.Mark(row)
	again := reading("1", "x", "y")
	a.Learn(code(1), input(1), again)
	a.Confirm(row, mark, 7)
	if a.IsCurrent(row, 7) || a.IsCurrent(again, 7) || a.Mark(row).known {
		t.Error("a row is current that was replaced, or the one that replaced it")
	}
}

// TestStaleRowsGoFirst: rows whose records were written since go before rows that were not asked for longer. A row that was confirmed again does
// not.
func TestStaleRowsGoFirst(t *testing.T) {
	table := New(Options{Rows: 6})
	a := table.Tenant("a")
	var rows []*forerun.Row
	for n := range 6 {
		rows = append(rows, reading("1", fmt.Sprint("r", n%3), "all"))
		a.Learn(code(1), input(n), rows[n])
	}
	table.Written(recordKey("r2")) // rows 2 and 5
	a.Confirm(rows[2], a.Mark(rows[2]), 0)
	stale := func() (list []int) {
		for _, kept := range a.Kept() {
			if kept.Stale {
				list = append(list, slices.Index(rows, kept.Row))
			}
		}
		return list
	}
	if is := stale(); !slices.Equal(is, []int{5}) {
		t.Errorf("%d are stale", is)
	}
	a.Learn(code(2), input(0), rowOf("1"))
	a.Learn(code(2), input(1), rowOf("1"))
	for n, row := range rows {
		if gone := a.Look(code(1), input(n)) != row; gone != (n == 0 || n == 5) {
			t.Errorf("row %d is gone: %v", n, gone)
		}
	}
	table.Written(recordKey("all"))
	if is := stale(); len(is) != 4 {
		t.Errorf("%d are stale", is)
	}
	if a.Look(code(1), input(1)) == nil {
		t.Error("a stale row does not predict")
	}
}

// TestReaders: the rows of a record are found by it, for their tenant alone.
func TestReaders(t *testing.T) {
	table := New(Options{})
	a, b := table.Tenant("a"), table.Tenant("b")
	one, two, others := reading("1", "x"), reading("2", "x", "y"), reading("3", "x")
	a.Learn(code(1), input(1), one)
	a.Learn(code(1), input(2), two)
	b.Learn(code(1), input(1), others)
	b.Confirm(others, b.Mark(others), 0)
	find := func(m *Tenant, name string, want ...*forerun.Row) {
		t.Helper()
		got := m.Readers(name)
		if len(got) != len(want) || slices.ContainsFunc(want, func(r *forerun.Row) bool { return !slices.Contains(got, r) }) {
			t.Errorf("%s was read by %v", name, got)
		}
	}
	find(a, "x", one, two)
	find(a, "y", two)
	find(a, "z")
	if n := a.Drop([]*forerun.Row{two, two, others}); n != 1 {
		t.Errorf("%d are dropped", n)
	}
	find(a, "x", one)
	find(a, "y")
	find(b, "x", others)
	if table.Forget("a"); len(table.spaces["space"]) != 1 {
		t.Error("a tenant that is gone is still told of writes, or another is not")
	}
	if table.Written(recordKey("x")); b.IsCurrent(others, 0) {
		t.Error("a write is not seen by a tenant that is left")
	}
	if table.Forget("b"); len(table.spaces) != 0 {
		t.Error("a space is left without tenants")
	}
}

// TestRecordsTakeRoom: a record counts among the bytes as long as a row reads it, once.
func TestRecordsTakeRoom(t *testing.T) {
	table := New(Options{})
	a := table.Tenant("a")
	one, two := reading("1", "x", "y"), reading("2", "y")
	a.Learn(code(1), input(1), one)
	a.Learn(code(1), input(2), two)
	want := size(one) + size(two) + recordSize(recordKey("x")) + recordSize(recordKey("y"))
	if got := table.Stats().Bytes; got != int64(want) {
		t.Errorf("%d bytes, not %d", got, want)
	}
	a.Drop([]*forerun.Row{one})
	if got := table.Stats().Bytes; got != int64(size(two)+recordSize(recordKey("y"))) {
		t.Errorf("%d bytes, when one is dropped", got)
	}
	a.Drop([]*forerun.Row{two})
	if got := table.Stats().Bytes; got != 0 || len(a.spaces["space"].records) != 0 || len(a.entries) != 0 {
		t.Errorf("%d bytes are left, %d records, %d rows", got, len(a.spaces["space"].records), len(a.entries))
	}
}

// TestWritesBesideRows has records written while rows come and go. A row that is confirmed behind the last write is current.
func TestWritesBesideRows(t *testing.T) {
	table := New(Options{Rows: 30, Total: 100_000})
	var all sync.WaitGroup
	over := make(chan struct{})
	for range 2 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
					table.Written(recordKey(fmt.Sprint(n % 20)))
				}
			}
		})
	}
	var tenants sync.WaitGroup
	for worker := range 3 {
		tenants.Go(func() {
			for n := range 3000 {
				a := table.Tenant(fmt.Sprint(n % 2))
				row := reading("1", fmt.Sprint(n%20), fmt.Sprint(20+n%7))
				a.Learn(code(worker), input(n%50), row)
				a.Confirm(row, a.Mark(row), 0)
				a.IsCurrent(row, 0)
				switch n % 100 {
				case 0:
					a.Drop(a.Readers("3"))
				case 1:
					a.Kept()
				case 2:
					table.Forget("1")
				}
			}
		})
	}
	tenants.Wait()
	close(over)
	all.Wait()
	for n := range 2 {
		a := table.Tenant(fmt.Sprint(n))
		for _, kept := range a.Kept() {
			if a.Confirm(kept.Row, a.Mark(kept.Row), 0); !a.IsCurrent(kept.Row, 0) {
				t.Error("a row that was confirmed is not current")
			}
		}
		table.Forget(fmt.Sprint(n))
	}
	if s := table.Stats(); s.Rows != 0 || s.Bytes != 0 || len(table.spaces) != 0 {
		t.Errorf("%+v is left", s)
	}
}

// BenchmarkWritten marks a record that 5,000 rows read, and one that none reads.
func BenchmarkWritten(b *testing.B) {
	table := New(Options{})
	a := table.Tenant("a")
	for n := range DefaultRows {
		a.Learn(code(n%10), input(n), reading("1", "hot"))
	}
	for _, name := range []string{"hot", "other"} {
		b.Run(name, func(b *testing.B) {
			key := recordKey(name)
			for b.Loop() {
				table.Written(key)
			}
		})
	}
}
