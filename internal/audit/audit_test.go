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
	info, err := os.Stat(l.streams[ofTenants].current())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is for %v (%v)", info.Mode(), err)
	}
}

// TestFloodsAreCounted: entries that one source causes beyond its share are counted, and the entries of other sources are written.
func TestFloodsAreCounted(t *testing.T) {
	now := time.Now()
	l := open(t, t.TempDir(), &now)
	fails := func(from string, n int) {
		for i := range n {
			l.Note(Entry{Who: Unknown, Action: Authenticate, Object: "/" + from, Peer: fmt.Sprint("127.0.0.1:", 40000+i), Forwarded: from})
		}
	}
	changes := func(namespace string, n int) {
		for range n {
			l.Note(Entry{Who: "key k", Namespace: namespace, Action: "PUT", Object: "/" + namespace})
		}
	}
	fails("a chosen one, 192.0.2.1", 70) // what the client says of itself is before what the proxy says
	fails("another, 192.0.2.1", 5)
	fails("192.0.2.2", 1)
	changes("ada", 1007)
	changes("bob", 1)
	l.Note(Entry{Who: Operator, Action: "PUT", Object: "/admin"})
	for i := range 200 {
		fails(fmt.Sprint("198.51.100.", i), 1)
	}
	count := make(map[string]int)
	for _, e := range last(t, l, time.Time{}, 1<<20) {
		count[e.Object[strings.LastIndex(e.Object, " ")+1:]]++
	}
	if count["192.0.2.1"] != 20 || count["/192.0.2.2"] != 1 || count["/ada"] != 1000 || count["/bob"] != 1 || count["/admin"] != 1 || l.Failures() != 276 || l.Lost() != 0 {
		t.Errorf("%v, %d failures, %d lost", count, l.Failures(), l.Lost())
	}
	now = now.Add(20 * time.Second)
	fails("192.0.2.1", 1)
	changes("ada", 1)
	end := last(t, l, now, 10)
	if len(end) != 2 || end[0].LeftOut+end[1].LeftOut != 7+55+200-79 { // 79 others were among the first 100 failures
		t.Errorf("the last entries are %+v", end)
	}
}

// TestOnlyTheLoopbackForwards: a peer elsewhere does not choose the address that its failures count for.
func TestOnlyTheLoopbackForwards(t *testing.T) {
	for peer, want := range map[string]string{
		"127.0.0.1:1": "192.0.2.2", "[::1]:1": "192.0.2.2", "192.0.2.9:1": "192.0.2.9", "[2001:db8::1]:1": "2001:db8::1", "junk": "junk",
	} {
		if got := addressOf(&Entry{Peer: peer, Forwarded: "192.0.2.1, 192.0.2.2"}); got != want {
			t.Errorf("a failure through %s counts for %s, want %s", peer, got, want)
		}
	}
	if got := addressOf(&Entry{Peer: "127.0.0.1:1"}); got != "127.0.0.1" {
		t.Errorf("a failure on the loopback counts for %s", got)
	}
}

// TestStrangersPushNothingOut: failures to authenticate take the place of older ones only, however many and large they are.
func TestStrangersPushNothingOut(t *testing.T) {
	now, folder := time.Now(), t.TempDir()
	l := open(t, folder, &now)
	l.Note(Entry{Who: "key k", Namespace: "ada", Action: "PUT", Object: "/before"})
	l.Note(Entry{Who: Operator, Action: "PUT", Object: "/before"})
	s := l.streams[ofFailures]
	s.most = 64 << 10
	junk := strings.Repeat("\x80\"", 4000)
	for i := range 2000 {
		now = now.Add(time.Second)
		l.Note(Entry{Who: Unknown, Action: Authenticate, Object: "/failed", Request: junk, Peer: "127.0.0.1:" + junk, Forwarded: fmt.Sprint(junk, ",", i)})
	}
	files, err := filepath.Glob(filepath.Join(folder, "failures*"))
	var size int64
	for _, file := range files {
		info, statErr := os.Stat(file)
		if statErr != nil {
			t.Fatal(statErr)
		}
		size += info.Size()
	}
	if err != nil || len(files) != s.files || size > int64(s.files)*s.most || len(l.sources.addresses) > maxAddresses {
		t.Errorf("%d files have %d bytes (%v), %d addresses are known", len(files), size, err, len(l.sources.addresses))
	}
	all := last(t, l, time.Time{}, 1<<20)
	if all[0].Object != "/before" || all[1].Object != "/before" {
		t.Errorf("the first entries are %+v", all[:2])
	}
}

func TestOldFilesGo(t *testing.T) {
	now, folder := time.Now(), t.TempDir()
	l := open(t, folder, &now)
	s := l.streams[ofOperator]
	for i := range s.files + 3 {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("operator-2026010%02d.jsonl", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "audit-20250101.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.size = fileSize
	l.Note(Entry{Who: Operator, Object: "/new"})
	names, err := s.old()
	if err != nil || len(names) != s.files-1 || strings.Contains(names[0], "-202601000.") {
		t.Errorf("%d old files (%v), the first %v", len(names), err, names)
	}
	if info, err := os.Stat(s.current()); err != nil || info.Size() > 1000 {
		t.Errorf("the current file: %v, %v", info, err)
	}
	if names, err := l.streams[ofTenants].old(); err != nil || len(names) != 1 {
		t.Errorf("of another class %v are left (%v)", names, err)
	}
}

// TestWritesResume: a rotation that cannot open the next file loses its entry, and the next entry opens it.
func TestWritesResume(t *testing.T) {
	now, folder := time.Now(), filepath.Join(t.TempDir(), "audit")
	l := open(t, folder, &now)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	l.streams[ofOperator].size = fileSize
	for range 2 {
		l.Note(Entry{Who: Operator, Object: "/lost"})
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	l.Note(Entry{Who: Operator, Object: "/kept"})
	if got := last(t, l, time.Time{}, 10); len(got) != 1 || got[0].Object != "/kept" || l.Lost() != 2 {
		t.Errorf("%+v, %d lost", got, l.Lost())
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
