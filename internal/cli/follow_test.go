package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

// scripted is a server whose feed tells something else at each connection. After the last one it ends the follower.
type scripted struct {
	feeds   [][]string        // events, by connection
	lists   []string          // activations that are listed at each connection
	records map[string]string // by id
	end     func()
	at      atomic.Int64 // connections
	asked   string       // the last event of the client, at its last connection
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = r.Header.Get("Last-Event-ID")
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/_/")
	id, isRecord := strings.CutPrefix(path, "activations/")
	switch {
	case isRecord:
		fmt.Fprint(w, s.records[id])
	case path == "activations":
		fmt.Fprint(w, s.lists[min(int(s.at.Load()), len(s.lists))-1])
	case s.feeds == nil:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":"The requested resource could not be found."}`)
	case int(s.at.Load()) == len(s.feeds):
		s.end()
		<-r.Context().Done()
	default:
		events := s.feeds[s.at.Load()]
		s.at.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": hello\n\n"+strings.Join(events, ""))
	}
}

// TestWatch: a watcher shows each event once over connections, and asks for what came after the last one.
func TestWatch(t *testing.T) {
	const runs, ends = "11111111111111111111111111111111", "22222222222222222222222222222222"
	begun := "id: 5\nevent: begun\ndata: {\"activationId\":\"" + runs + "\",\"name\":\"a\"}\n\n"
	s := &scripted{feeds: [][]string{
		{begun, lineOf(runs, 0, "one"), "id: 7\n" + endOf(ends, 0)},
		{endOf(ends, 0), begun, lineOf(runs, 0, "one"), lineOf(runs, 1, "two"), "event: gap\ndata: {}\n\n", "id: 8\n" + endOf(runs, 1)},
	}}
	server := httptest.NewServer(s)
	defer server.Close()
	client, err := whisk.New(whisk.Options{Host: server.URL, Auth: testKey})
	if err != nil {
		t.Fatal(err)
	}
	var out, said buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.end = cancel
	w := &watcher{app: &app{output: asText}, cmd: cmd, client: client, namespace: "_", running: make(map[string]int), over: make(map[string]bool)}
	if err := w.watch(ctx); err != nil {
		t.Error(err)
	}
	want := "begun  " + runs + " a\nline   " + runs + " a 2026-01-02T03:04:05.000000000Z stdout: one\nended  " + ends + " a success in 0 ms\n" +
		"line   " + runs + " a 2026-01-02T03:04:05.000000000Z stdout: two\ngap    more has ended than the feed tells: forerun activation list\n" +
		"ended  " + runs + " a application error in 0 ms\n"
	if out.String() != want {
		t.Errorf("it showed\n%s", out.String())
	}
	if s.asked != "8" || len(w.running) != 0 {
		t.Errorf("it asked for what came after %q, and follows %v", s.asked, w.running)
	}
}

func lineOf(id string, number int, text string) string {
	return fmt.Sprintf("event: line\ndata: {\"activationId\":%q,\"name\":\"a\",\"number\":%d,\"line\":\"2026-01-02T03:04:05.000000000Z stdout: %s\"}\n\n:\n\n", id, number, text)
}

func endOf(id string, status int) string {
	return fmt.Sprintf("event: ended\ndata: {\"activationId\":%q,\"name\":\"a\",\"start\":1,\"end\":2,\"statusCode\":%d}\n\n", id, status)
}

func recordOf(id string, success bool, texts ...string) string {
	var logs []string
	for _, text := range texts {
		logs = append(logs, `"2026-01-02T03:04:05.000000000Z stdout: `+text+`"`)
	}
	return fmt.Sprintf(`{"activationId":%q,"name":"a","start":1,"end":2,"logs":[%s],"response":{"status":"application error","success":%t,"result":{"error":"why"}}}`,
		id, strings.Join(logs, ","), success)
}

// TestFollowAgain: a follower whose connection ends shows each line once all the same: of what went on, of what ended meanwhile, and of what
// ended before it came.
func TestFollowAgain(t *testing.T) {
	const runs, ends, fails, before = "11111111111111111111111111111111", "22222222222222222222222222222222", "33333333333333333333333333333333", "44444444444444444444444444444444"
	s := &scripted{
		feeds: [][]string{
			{lineOf(runs, 0, "runs 0"), lineOf(ends, 0, "ends 0"), lineOf(fails, 0, "fails 0"), lineOf(fails, 1, "fails 1"), lineOf(before, 0, "before 0"), endOf(before, 0)},
			{lineOf(runs, 0, "runs 0"), lineOf(runs, 1, "runs 1"), lineOf(fails, 0, "fails 0"), endOf(fails, 1), lineOf(ends, 0, "ends 0"), endOf(ends, 0), endOf(runs, 0)},
		},
		lists:   []string{"[" + recordOf(before, true) + "]", "[" + recordOf(before, true) + "," + recordOf(ends, true) + "]"},
		records: map[string]string{before: recordOf(before, true, "before 0"), ends: recordOf(ends, true, "ends 0", "ends 1"), fails: recordOf(fails, false, "fails 0", "fails 1", "fails 2")},
	}
	stdout, stderr := follow(t, s)
	want := []string{"before 0", "runs 0", "ends 0", "fails 0", "fails 1", "ends 1", "runs 1", "fails 2"}
	if got := strings.Join(strings.Fields(strings.ReplaceAll(stdout, "a ", "")), " "); got != strings.Join(want, " ") {
		t.Errorf("it showed\n%s", stdout)
	}
	if strings.Count(stderr, "a failed (application error") != 1 || strings.Count(stderr, "trying again") != 2 {
		t.Errorf("it said\n%s", stderr)
	}
}

// follow follows what a server says until that ends it.
func follow(t *testing.T, s *scripted) (stdout, stderr string) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	client, err := whisk.New(whisk.Options{Host: server.URL, Auth: testKey})
	if err != nil {
		t.Fatal(err)
	}
	var out, said buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	a := &app{output: asText}
	f, err := a.newFollower(cmd, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.strip = true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.end = cancel
	if err := f.follow(ctx); err != nil {
		t.Error(err)
	}
	return out.String(), said.String()
}
