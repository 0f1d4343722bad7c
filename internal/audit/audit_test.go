package audit

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, folder string, now *time.Time) *Log {
	t.Helper()
	l, err := Open(folder, func() time.Time { return *now }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func last(t *testing.T, l *Log, since time.Time, most int) []Entry {
	t.Helper()
	entries, err := l.Last(since, most)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestEntriesAreKept(t *testing.T) {
	now, folder := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), filepath.Join(t.TempDir(), "audit")
	l := open(t, folder, &now)
	for i := range 3 {
		l.Note(Entry{Who: "key k", Namespace: "ada", Action: "PUT", Object: fmt.Sprint("/", i), Status: 200})
		now = now.Add(time.Minute)
	}
	if err := os.WriteFile(filepath.Join(folder, "audit-0.jsonl"), []byte("{\"object\":\"/before\",\"time\":\"2026-01-02T03:00:00Z\"}\n{\"obj"), 0o600); err != nil {
		t.Fatal(err)
	}
	l = open(t, folder, &now) // the next server's
	l.Note(Entry{Who: Operator, Action: "DELETE", Object: strings.Repeat("x", 10_000), Status: 200})
	all := last(t, l, time.Time{}, 100)
	var objects []string
	for _, e := range all {
		objects = append(objects, e.Object[:min(10, len(e.Object))])
	}
	if got := fmt.Sprint(objects); got != "[/before /0 /1 /2 xxxxxxxxxx]" || len(all[4].Object) > maxField+3 || !all[1].Time.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("%s: %+v", got, all)
	}
	if got := last(t, l, now.Add(-2*time.Minute), 100); len(got) != 3 || got[0].Object != "/1" {
		t.Errorf("since two minutes: %+v", got)
	}
	if got := last(t, l, time.Time{}, 2); len(got) != 2 || got[0].Object != "/2" {
		t.Errorf("the last two: %+v", got)
	}
	info, err := os.Stat(filepath.Join(folder, current))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is for %v (%v)", info.Mode(), err)
	}
}

// TestFloodsAreCounted: entries that one source causes beyond its share are counted, and the entries of other sources are written.
func TestFloodsAreCounted(t *testing.T) {
	now := time.Now()
	l := open(t, t.TempDir(), &now)
	for range burstFails + 50 {
		l.Note(Entry{Who: Unknown, Action: Authenticate, Object: "/x", Status: 401})
	}
	for range burst + 7 {
		l.Note(Entry{Who: "key k", Namespace: "ada", Action: "PUT", Object: "/x", Status: 200})
	}
	l.Note(Entry{Who: "key b", Namespace: "bob", Action: "PUT", Object: "/bob", Status: 200})
	l.Note(Entry{Who: Operator, Action: "PUT", Object: "/admin", Status: 200})
	now = now.Add(2 * time.Second)
	l.Note(Entry{Who: Unknown, Action: Authenticate, Object: "/later", Status: 401})
	l.Note(Entry{Who: "key k", Namespace: "ada", Action: "PUT", Object: "/later", Status: 200})
	all := last(t, l, time.Time{}, 1<<20)
	if len(all) != burstFails+burst+4 || l.Failures() != burstFails+51 || l.Lost() != 0 {
		t.Fatalf("%d entries, %d failures, %d lost", len(all), l.Failures(), l.Lost())
	}
	if end := all[len(all)-4:]; end[0].Object != "/bob" || end[1].Object != "/admin" || end[2].LeftOut != 50 || end[3].LeftOut != 7 {
		t.Errorf("the last entries are %+v", end)
	}
}

func TestOldFilesGo(t *testing.T) {
	now, folder := time.Now(), t.TempDir()
	for i := range maxFiles + 3 {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("audit-2026010%02d.jsonl", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, current), make([]byte, fileSize), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, folder, &now)
	l.Note(Entry{Who: Operator, Object: "/new"})
	names, err := l.old()
	if err != nil || len(names) != maxFiles-1 || strings.Contains(names[0], "-202601000.") {
		t.Errorf("%d old files (%v), the first %v", len(names), err, names)
	}
	if info, err := os.Stat(filepath.Join(folder, current)); err != nil || info.Size() > 1000 {
		t.Errorf("the current file: %v, %v", info, err)
	}
}

func TestKeyOf(t *testing.T) {
	for uuid, want := range map[string]string{
		"23bc46b1-71f6-4ed5-8c54-816aa4f8c502": "key 23bc46b1-71f6-4ed5-8c54-816aa4f8c502", "": Unknown, "my secret password": Unknown,
		"23bc46b1-71f6-4ed5-8c54-816aa4f8c50X": Unknown, "00112233445566778899aabbccddeeff": "key 00112233445566778899aabbccddeeff",
	} {
		if got := KeyOf(uuid); got != want {
			t.Errorf("%q is told as %q", uuid, got)
		}
	}
}
