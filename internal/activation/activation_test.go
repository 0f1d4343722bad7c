package activation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/embedded"
)

func open(t *testing.T) *Log {
	t.Helper()
	store, err := embedded.Open("activations", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return Open(store, false)
}

// day is when the records of the tests begin.
var day = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// record makes the record number n: of the action, started n milliseconds into the day.
func record(n int, namespace, action string) *forerun.Activation {
	name, err := forerun.ParseName(action, namespace)
	if err != nil {
		panic(err)
	}
	start := day.Add(time.Duration(n) * time.Millisecond)
	return &forerun.Activation{
		ID: forerun.ActivationID(fmt.Sprintf("%032x", n)), Namespace: namespace, Action: name, Version: "0.0.1", Subject: "ada",
		Start: start, End: start.Add(time.Second), Duration: time.Second, Status: forerun.ApplicationError,
		Result: json.RawMessage(`{"error":"<&>","n":1.0}`), Logs: []string{"a line"},
		Annotations: []forerun.KeyValue{{Key: "kind", Value: json.RawMessage(`"python:3"`)}},
		Timeline:    forerun.Timeline{Queued: start},
	}
}

func put(t *testing.T, l *Log, records ...*forerun.Activation) {
	t.Helper()
	if err := l.Put(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

func TestRecordComesBackAsItWasPut(t *testing.T) {
	l := open(t)
	want := record(7, "guest", "pkg/hello")
	put(t, l, want, record(8, "guest", "other"))
	got, err := l.Get(t.Context(), "guest", want.ID)
	if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got\n%+v, %v\nwant\n%+v", got, err, want)
	}
	for _, namespace := range []string{"gues", "other"} {
		if _, err := l.Get(t.Context(), namespace, want.ID); forerun.KindOf(err) != forerun.NotFound {
			t.Errorf("in %s: %v", namespace, err)
		}
	}
}

func TestList(t *testing.T) {
	l := open(t)
	for n := range 10 {
		r := record(n, "guest", []string{"a", "p/a"}[n%2])
		if n%3 == 0 {
			r.Result = json.RawMessage(`{"long":"` + strings.Repeat("x", largeRecord) + `"}`)
		}
		put(t, l, r, record(100+n, "guest2", "a"))
	}
	at := func(n int) time.Time { return day.Add(time.Duration(n) * time.Millisecond) }
	for _, test := range []struct {
		query Query
		want  string
	}{
		{Query{Limit: 3}, "9 8 7"},
		{Query{Limit: 3, Skip: 2}, "7 6 5"},
		{Query{Limit: 3, Skip: 9}, "0"},
		{Query{Limit: 3, Skip: 20}, ""},
		{Query{Limit: 30, Name: "a"}, "8 6 4 2 0"},
		{Query{Limit: 2, Name: "p/a", Skip: 1}, "7 5"},
		{Query{Limit: 30, Name: "p"}, ""},
		{Query{Limit: 30, Since: at(7)}, "9 8 7"},
		{Query{Limit: 30, Upto: at(2)}, "2 1 0"},
		{Query{Limit: 30, Since: at(3), Upto: at(5).Add(900 * time.Microsecond)}, "5 4 3"},
		{Query{Limit: 30, Since: at(3), Upto: at(5), Name: "a"}, "4"},
		{Query{Limit: 30, Since: time.UnixMilli(-5), Upto: time.UnixMilli(1 << 60)}, "9 8 7 6 5 4 3 2 1 0"},
		{Query{Limit: 30, Since: time.UnixMilli(1 << 60)}, ""},
	} {
		summaries, err := l.List(t.Context(), "guest", test.query)
		if err != nil {
			t.Fatal(err)
		}
		for docs, records := range map[bool][]*forerun.Activation{false: summaries, true: whole(t, l, "guest", test.query)} {
			if got := numbers(t, records); got != test.want {
				t.Errorf("%+v: %q, want %q", test.query, got, test.want)
			}
			for _, r := range records {
				if whole := r.Result != nil && r.Logs != nil && !r.Timeline.Queued.IsZero(); whole != docs || r.Status != forerun.ApplicationError || r.Annotations == nil {
					t.Errorf("docs=%v shows %+v", docs, r)
				}
			}
		}
	}
}

// whole reads the whole records of a query.
func whole(t *testing.T, l *Log, namespace string, q Query) (records []*forerun.Activation) {
	t.Helper()
	for r, err := range l.Whole(t.Context(), namespace, q) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

func numbers(t *testing.T, records []*forerun.Activation) string {
	t.Helper()
	var list []string
	for _, r := range records {
		var n int
		if _, err := fmt.Sscanf(string(r.ID), "%x", &n); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(n))
	}
	return strings.Join(list, " ")
}

func TestCount(t *testing.T) {
	l := open(t)
	for n := range 5 {
		put(t, l, record(n, "guest", []string{"a", "b"}[n%2]))
	}
	for want, query := range map[int]Query{5: {}, 3: {Name: "a"}, 2: {Skip: 3}, 0: {Skip: 9}, 1: {Since: day.Add(4 * time.Millisecond)}} {
		if got, err := l.Count(t.Context(), "guest", query); err != nil || got != want {
			t.Errorf("%+v: %d, %v", query, got, err)
		}
	}
}
