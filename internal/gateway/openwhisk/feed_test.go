package openwhisk

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// follower is a client of the feed.
type follower struct {
	t      *testing.T
	lines  *bufio.Scanner
	cancel func()
	id     string // of the last event
}

// followFeed connects to the feed over a real connection.
func (w *world) followFeed(t *testing.T, query string, last ...string) *follower {
	t.Helper()
	server := httptest.NewServer(w.door)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); server.Close() })
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+namespaces+"_/feed"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(w.auth.UUID, w.auth.Key)
	for _, id := range last {
		r.Header.Set("Last-Event-ID", id)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("the feed is answered %s, %s", answer.Status, kind)
	}
	return &follower{t: t, lines: bufio.NewScanner(answer.Body), cancel: cancel}
}

// next reads an event: its name, and its data.
func (f *follower) next() (event, data string) {
	f.t.Helper()
	for f.lines.Scan() {
		field, value, _ := strings.Cut(f.lines.Text(), ": ")
		switch {
		case field == "event":
			event = value
		case field == "data":
			data = value
		case field == "id":
			f.id = value
		case field == "" && event != "":
			return event, data
		}
	}
	f.t.Fatalf("the feed ended (%v)", f.lines.Err())
	return "", ""
}

// awaitEnd reads until the server ends the connection.
func (f *follower) awaitEnd() {
	for f.lines.Scan() {
	}
}

// TestFeed: the events have the members that are documented, also of a trigger.
func TestFeed(t *testing.T) {
	w := newWorld(t)
	w.deploy("hello", "echo")
	f := w.followFeed(t, "")
	w.must(w.request("POST", actions+"hello?blocking=true", `{}`))
	for _, want := range []struct{ event, names string }{
		{"begun", "activationId annotations name namespace publish start version"},
		{"line", "activationId line name number"},
		{"ended", "activationId annotations duration end name namespace publish start statusCode version"},
	} {
		event, data := f.next()
		if event != want.event || names(t, data) != want.names || member(t, data, "name") != `"hello"` {
			t.Errorf("%s %s; want %s with %s", event, data, want.event, want.names)
		}
		if event == "line" && (member(t, data, "number") != "0" || member(t, data, "line") != `"2026-11-21T00:00:00.000000000Z stdout: hello"`) {
			t.Errorf("the line is %s", data)
		}
	}
	w.must(w.request("PUT", namespaces+"_/triggers/bell", `{}`))
	w.must(w.request("PUT", namespaces+"_/rules/r", `{"trigger":"/_/bell","action":"/_/hello"}`))
	w.must(w.request("POST", namespaces+"_/triggers/bell", `{}`))
	told := make(map[string]int)
	for told["ended bell"] == 0 || told["ended hello"] == 0 {
		event, data := f.next()
		var of struct{ Name string }
		_ = json.Unmarshal([]byte(data), &of)
		told[event+" "+of.Name]++
	}
	if told["begun bell"] != 1 || told["line bell"] != 1 || told["line hello"] != 1 {
		t.Errorf("of a trigger: %v", told)
	}
}

// TestFeedOfAnAction: the query narrows the feed down as it does a list.
func TestFeedOfAnAction(t *testing.T) {
	w := newWorld(t)
	w.pack("p", `{}`)
	for _, name := range []string{"hello", "p/hello", "other"} {
		w.deploy(name, "echo")
	}
	all, plain, packaged := w.followFeed(t, ""), w.followFeed(t, "?name=hello"), w.followFeed(t, "?name=p/hello")
	for _, name := range []string{"other", "p/hello", "hello"} {
		w.must(w.request("POST", actions+name+"?blocking=true", `{}`))
	}
	ids := make(map[string]string) // by the order in which they begin
	for _, name := range []string{"other", "p/hello", "hello"} {
		_, data := all.next()
		ids[name] = member(t, data, "activationId")
		all.next()
		all.next()
	}
	for name, f := range map[string]*follower{"hello": plain, "p/hello": packaged} {
		if event, data := f.next(); event != "begun" || member(t, data, "activationId") != ids[name] {
			t.Errorf("the feed of %s begins with %s %s", name, event, data)
		}
	}
	for query, status := range map[string]int{"?name=a/b/c": 400, "?limit=3": 400} {
		if r := w.request("GET", namespaces+"_/feed"+query, ""); r.status != status {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}

// TestFeedResumes: a client that connects again is told what ended while it was away, the parts of a workflow among it, and that there was more.
func TestFeedResumes(t *testing.T) {
	w := newWorld(t)
	w.deploy("hello", "echo")
	w.must(w.request("PUT", actions+"chain", `{"exec":{"kind":"sequence","components":["/_/hello","/_/hello"]}}`))
	f := w.followFeed(t, "")
	w.must(w.request("POST", actions+"hello?blocking=true", `{}`))
	for event := ""; event != "ended"; {
		event, _ = f.next()
	}
	last := f.id
	f.cancel()
	for w.feed.Listens("guest") { // until the handler has seen it
		time.Sleep(time.Millisecond)
	}
	w.must(w.request("POST", actions+"chain?blocking=true", `{}`))
	f = w.followFeed(t, "", last)
	told := make(map[string]string) // what each activation is
	for range 4 {                   // the last minute is told once more: the first one among it
		event, data := f.next()
		told[member(t, data, "activationId")] = event + " " + member(t, data, "name")
	}
	if got := slices.Sorted(maps.Values(told)); !slices.Equal(got, []string{`ended "chain"`, `ended "hello"`, `ended "hello"`, `ended "hello"`}) {
		t.Errorf("it was told %q", got)
	}
	w.must(w.request("POST", actions+"hello?blocking=true", `{}`))
	if event, data := f.next(); event != "begun" {
		t.Errorf("and then %s %s", event, data)
	}
	if event, data := w.followFeed(t, "", "1000").next(); event != "gap" || f.id < last {
		t.Errorf("after a long time: %s %s, and ids go from %s to %s", event, data, last, f.id)
	}
	for _, bad := range []string{"x", "-1"} {
		if r := w.request("GET", namespaces+"_/feed", "", "Last-Event-ID", bad); r.status != 400 {
			t.Errorf("Last-Event-ID %s: %d %s", bad, r.status, r.body)
		}
	}
}

// TestFeedResumesWithParts: the parts of a workflow that ended meanwhile are told with it, also those that began in the same millisecond.
func TestFeedResumesWithParts(t *testing.T) {
	w, now := newWorld(t), time.Now()
	wf, inner, part := forerun.ActivationID(strings.Repeat("c", 32)), forerun.ActivationID(strings.Repeat("b", 32)), forerun.ActivationID(strings.Repeat("a", 32))
	for _, x := range []forerun.Activation{{ID: wf, End: now}, {ID: inner, Cause: wf}, {ID: part, Cause: inner}} {
		x.Namespace, x.Action, x.Start = "guest", forerun.Name{Namespace: "guest", Entity: "x"}, now.Add(-10*time.Minute)
		if x.End.IsZero() {
			x.End = x.Start.Add(time.Second)
		}
		if err := w.api.Activations.Put(t.Context(), &x); err != nil {
			t.Fatal(err)
		}
	}
	m, err := w.api.missedSince(t.Context(), "guest", "", now.Add(-2*time.Minute))
	if err != nil || len(m.ended) != 3 || !m.told[part] || m.some {
		t.Errorf("it is told %v (%v)", m.told, err)
	}
}

// TestFeedOfOthers: a tenant cannot follow another tenant's feed, and a function cannot follow its own.
func TestFeedOfOthers(t *testing.T) {
	w := newWorld(t)
	if r := w.request("GET", namespaces+"ada/feed", ""); r.status != http.StatusForbidden {
		t.Errorf("another namespace's: %d %s", r.status, r.body)
	}
	if r := w.request("GET", namespaces+"_/feed", "", "Authorization", ""); r.status != http.StatusUnauthorized {
		t.Errorf("without a key: %d %s", r.status, r.body)
	}
	w.functions["follows"] = func(run *forerun.Run) forerun.RunEnd {
		return forerun.RunEnd{Result: json.RawMessage(w.as(run).request("GET", namespaces+"_/feed", "").body)}
	}
	w.deploy("follows", "follows", "provide-api-key", "true")
	if r := w.request("POST", actions+"follows?blocking=true&result=true", `{}`); !strings.Contains(r.body, "A function cannot follow the feed") {
		t.Errorf("a function: %s", r.body)
	}
	if w.feed.Listens("guest") || w.feed.Listens("ada") {
		t.Error("one of them listens")
	}
}

// TestFeedEnds: with its client, with its key, with its tenant and with the server.
func TestFeedEnds(t *testing.T) {
	for name, end := range map[string]func(*world, *follower){
		"client gone": func(_ *world, f *follower) { f.cancel() },
		"key rotated": func(w *world, _ *follower) {
			if _, err := w.api.Registry.RotateKeys(t.Context(), "guest"); err != nil {
				t.Error(err)
			}
		},
		"server stops": func(w *world, _ *follower) { w.feed.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deploy("hello", "echo")
			f := w.followFeed(t, "")
			w.must(w.request("POST", actions+"hello?blocking=true", `{}`))
			f.next()
			end(w, f)
			f.awaitEnd()
			for w.feed.Listens("guest") && name != "server stops" { // until the handler has seen it
				time.Sleep(time.Millisecond)
			}
		})
	}
	w := newWorld(t)
	w.feed.Close()
	if r := w.request("GET", namespaces+"_/feed", ""); r.status != http.StatusServiceUnavailable {
		t.Errorf("when the server stops: %d %s", r.status, r.body)
	}
}
