package openwhisk

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// counted deploys an action that counts its activations and returns how many there were; it begins when may is closed.
func (w *world) counted(name string, may <-chan struct{}) *atomic.Int32 {
	w.t.Helper()
	n := new(atomic.Int32)
	w.functions[name] = func(*forerun.Run) forerun.RunEnd {
		count := n.Add(1)
		<-may
		return forerun.RunEnd{Result: []byte(fmt.Sprintf(`{"n":%d}`, count))}
	}
	w.deploy(name, name)
	return n
}

func open() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

const once = "Idempotency-Key"

func TestRepeatAttachesToTheFirst(t *testing.T) {
	w := newWorld(t)
	n := w.counted("one", open())
	other := w.counted("two", open())
	first := w.request("POST", actions+"one?blocking=true", `{"a":1,"b":2}`, once, "k")
	id := first.header.Get("X-Openwhisk-Activation-Id")
	for _, path := range []string{"one?blocking=true", "one?blocking=true&result=true", "one"} {
		r := w.request("POST", actions+path, ` {"b":2, "a":1}`, once, "k")
		if got := r.header.Get("X-Openwhisk-Activation-Id"); got != id {
			t.Errorf("%s: activation %s, not %s", path, got, id)
		}
		want := map[string]string{"one?blocking=true": first.body, "one?blocking=true&result=true": `{"n":1}`, "one": `{"activationId":"` + id + `"}`}[path]
		if r.body != want {
			t.Errorf("%s: %d %s, want %s", path, r.status, r.body, want)
		}
	}
	if r := w.request("POST", actions+"one?blocking=true", `{"a":1,"b":3}`, once, "k"); r.status != 422 || !strings.Contains(r.body, "another payload") {
		t.Errorf("another payload: %d %s", r.status, r.body)
	}
	if r := w.request("POST", actions+"one?blocking=true&result=true", `{"a":1,"b":2}`, once, "K"); r.body != `{"n":2}` {
		t.Errorf("another key: %s", r.body)
	}
	if r := w.request("POST", actions+"two?blocking=true&result=true", `{"a":1,"b":2}`, once, "k"); r.body != `{"n":1}` {
		t.Errorf("another action: %s", r.body)
	}
	if w.request("DELETE", actions+"one", ""); n.Load() != 2 || other.Load() != 1 {
		t.Errorf("the actions ran %d and %d times", n.Load(), other.Load())
	}
	if r := w.request("POST", actions+"one?blocking=true", `{"a":1,"b":2}`, once, "k"); r.body != first.body {
		t.Errorf("of a deleted action: %d %s", r.status, r.body)
	}
	if r := w.request("POST", actions+"one?blocking=true", `{"a":1,"b":2}`, once, "new"); r.status != 404 {
		t.Errorf("a new request for a deleted action: %d %s", r.status, r.body)
	}
	for _, key := range []string{" ", strings.Repeat("x", 256)} {
		if r := w.request("POST", actions+"two", `{}`, once, key); r.status != 400 {
			t.Errorf("the key %q: %d %s", key, r.status, r.body)
		}
	}
}

func TestRepeatWaitsForTheFirst(t *testing.T) {
	w := newWorld(t)
	may := make(chan struct{})
	n := w.counted("slow", may)
	first := w.request("POST", actions+"slow", `{}`, once, "k")
	if first.status != 202 {
		t.Fatalf("%d %s", first.status, first.body)
	}
	if r := w.request("POST", actions+"slow?blocking=true&timeout=1", `{}`, once, "k"); r.status != 202 || r.body != first.body {
		t.Errorf("while it runs: %d %s", r.status, r.body)
	}
	var waiting sync.WaitGroup
	replies := make([]reply, 20)
	for i := range replies {
		waiting.Go(func() { replies[i] = w.request("POST", actions+"slow?blocking=true&result=true", `{}`, once, "k") })
	}
	close(may)
	waiting.Wait()
	for _, r := range replies {
		if r.status != 200 || r.body != `{"n":1}` {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if n.Load() != 1 {
		t.Errorf("it ran %d times", n.Load())
	}
	w.isIdle()
}

// TestRepeatsAtOnce makes one request many times at the same moment.
func TestRepeatsAtOnce(t *testing.T) {
	w := newWorld(t)
	n := w.counted("one", open())
	for round := range 10 {
		var waiting sync.WaitGroup
		replies := make([]reply, 20)
		for i := range replies {
			waiting.Go(func() { replies[i] = w.request("POST", actions+"one?blocking=true", `{}`, once, fmt.Sprint(round)) })
		}
		waiting.Wait()
		for _, r := range replies {
			if r.status != 200 || r.body != replies[0].body {
				t.Fatalf("%d %s and %s", r.status, r.body, replies[0].body)
			}
		}
	}
	if n.Load() != 10 {
		t.Errorf("it ran %d times, not 10", n.Load())
	}
	w.isIdle()
}

// isIdle checks that no invocation is remembered as under way.
func (w *world) isIdle() {
	w.t.Helper()
	w.api.once.Range(func(id, _ any) bool {
		w.t.Errorf("activation %v is still under way", id)
		return true
	})
}
