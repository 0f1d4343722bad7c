package worker

import (
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// numbered is one of many actions.
func numbered(name string) *forerun.Action {
	a := action("import os\ndef main(args): return {'name': '" + name + "', 'env': os.environ['__OW_ACTION_NAME']}")
	a.Name.Entity = name
	return a
}

// awaitStats waits until the worker's figures are as wanted.
func (g *rig) awaitStats(what string, wanted func(Stats) bool) {
	g.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !wanted(g.Stats()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatalf("%s: %+v", what, g.Stats())
		}
	}
}

func TestSandboxesAreHeldReady(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Prewarm = 2 })
	if s := g.Stats(); s.Blank != 0 {
		t.Errorf("%d sandboxes for a language that nobody has used", s.Blank)
	}
	for i, name := range []string{"a", "b", "c"} {
		a := numbered(name)
		a.Limits.Memory, a.Limits.Logs = 128+i, 1
		if end := g.call(a, `{}`); string(end.Result) != `{"env":"/guest/`+name+`","name":"`+name+`"}` {
			t.Errorf("%s", end.Result)
		}
		g.awaitStats("two are ready", func(s Stats) bool { return s.Blank == 2 && s.Starting == 0 && len(g.blankSandboxes()) == 2 })
	}
	if s := g.Stats(); s.Prewarmed != 2 || s.ColdStarts != 3 || len(g.maker.started()) != 5 {
		t.Errorf("%+v, %d sandboxes", s, len(g.maker.started()))
	}
	if begun, now := g.starts(); begun != 7 || now != 0 {
		t.Errorf("%d starts, %d of them now; want those of 5 sandboxes, and of code in 2", begun, now)
	}
	if owner := g.maker.started()[0].owner; owner != "guest" {
		t.Errorf("the first is %q's", owner)
	}
	for i, p := range g.maker.started()[1:3] {
		if got := p.limits.Load(); got == nil || got.MemoryMiB != 129+i || got.Owner != "guest" || p.owner != "" {
			t.Errorf("sandbox %d got the limits %+v", i, got)
		}
	}
}

// blankSandboxes are those that wait for code.
func (g *rig) blankSandboxes() (sandboxes []*pooledSandbox) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.shelves {
		sandboxes = append(sandboxes, s.sandboxes...)
	}
	return sandboxes
}

func TestSandboxesHeldReadyMakeRoom(t *testing.T) {
	g, calls := newCallingRig(t, func(c *Config) { c.Prewarm, c.MaxSandboxes = 2, 3 })
	_, first := g.begin(caller("a"), `{"path":"/"}`)
	calls.next()
	g.awaitStats("two are ready", func(Stats) bool { return len(g.blankSandboxes()) == 2 })
	_, second := g.begin(caller("b"), `{"path":"/"}`) // takes one
	calls.next()
	other := caller("c")
	other.Exec.Kind = "python:default"
	_, third := g.begin(other, `{"path":"/"}`) // and the other
	calls.next()
	for range 3 {
		calls.answer <- "ok"
	}
	for _, h := range []*heard{first, second, third} {
		if end := g.wait(h); end.Status != forerun.Success {
			t.Errorf("%s", end.Result)
		}
	}
	if s := g.Stats(); s.Prewarmed != 2 || s.Evicted != 0 || s.Idle+s.Busy+s.Blank > 3 {
		t.Errorf("%+v", s)
	}
}

func TestSandboxWithoutCodeIsEvictedFirst(t *testing.T) {
	g := newNativeRig(t, func(c *Config) { c.Prewarm, c.MaxSandboxes = 1, 2 })
	g.call(numbered("a"), `{}`)
	g.awaitStats("one is ready", func(s Stats) bool { return s.Idle == 1 && len(g.blankSandboxes()) == 1 })
	if end := g.call(keptAction("", "answer = {'n': n}"), `{}`); string(end.Result) != `{"n":1}` {
		t.Errorf("%s", end.Result)
	}
	if s := g.Stats(); s.Evicted != 1 || len(g.blankSandboxes()) != 0 {
		t.Errorf("%+v", s)
	}
	if end := g.call(numbered("a"), `{}`); end.Status != forerun.Success {
		t.Errorf("%s", end.Result)
	}
	if s := g.Stats(); s.ColdStarts != 2 {
		t.Errorf("the warm sandbox was closed, not the one without code: %+v", s)
	}
}

func TestSandboxesHeldReadyGoWithTheirLanguage(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Prewarm, c.KeepAlive = 1, 20*time.Millisecond })
	g.call(numbered("a"), `{}`)
	g.awaitStats("everything is gone", func(s Stats) bool { return len(g.maker.started()) > 1 && s.Blank+s.Idle+s.Busy+s.Starting == 0 })
	if s := g.Stats(); s.MemoryMiB != 0 {
		t.Errorf("%+v", s)
	}
}

func TestSandboxWithoutCodeThatDies(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Prewarm = 1 })
	g.call(numbered("a"), `{}`)
	g.awaitStats("one is ready", func(s Stats) bool { return s.Idle == 1 && len(g.blankSandboxes()) == 1 })
	g.maker.started()[1].die()
	g.awaitStats("it is replaced or gone", func(Stats) bool { return len(g.maker.started()) > 2 || len(g.blankSandboxes()) == 0 })
	if end := g.call(numbered("b"), `{}`); end.Status != forerun.Success {
		t.Errorf("%s", end.Result)
	}
}

// TestSandboxWithoutCodeThatDiesAsItIsAdopted: its activation gets a sandbox that was not held ready, since another of those could die as well.
func TestSandboxWithoutCodeThatDiesAsItIsAdopted(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Prewarm, c.MaxSandboxes = 2, 3 })
	g.call(numbered("a"), `{}`)
	g.awaitStats("two are ready", func(s Stats) bool { return s.Idle == 1 && len(g.blankSandboxes()) == 2 })
	for _, p := range g.maker.started()[1:] {
		p.fragile.Store(true)
	}
	if end := g.call(numbered("b"), `{}`); end.Status != forerun.Success {
		t.Errorf("%s %q", end.Result, end.Logs)
	}
	g.awaitStats("nothing starts", func(s Stats) bool { return s.Starting == 0 && s.Busy == 0 })
	if s := g.Stats(); s.ColdStarts != 2 || s.Prewarmed != 1 || s.Idle != 2 {
		t.Errorf("%+v", s)
	}
	if end := g.call(numbered("a"), `{}`); end.Status != forerun.Success || g.Stats().ColdStarts != 2 {
		t.Errorf("another action's sandbox was closed: %s, %+v", end.Result, g.Stats())
	}
}

func TestLaunchedLanguageIsHeldReadyForItsUsualMemory(t *testing.T) {
	w := New(Config{Prewarm: 2, MemoryMiB: 1024})
	launched := &language{launched: true}
	s := w.shelf(launched)
	s.sandboxes = []*pooledSandbox{{}}
	a := action("")
	if w.blanksOf(launched) != 1 || w.blanksOf(&language{}) != 2 {
		t.Error("one process that serves many activations is enough")
	}
	if w.blankFor(&pool{language: launched, action: a}) == nil {
		t.Error("it does not fit an action of the usual memory")
	}
	a.Limits.Memory = 512
	if w.blankFor(&pool{language: launched, action: a}) != nil {
		t.Error("its process was told another memory limit")
	}
	if w.blankFor(&pool{language: &language{}, action: a}) != nil {
		t.Error("a language has another's")
	}
}
