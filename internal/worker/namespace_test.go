package worker

import (
	"context"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// callOf is call for a tenant.
func (g *rig) callOf(namespace string, a *forerun.Action) string {
	g.t.Helper()
	h := newHeard()
	g.Run(&forerun.Run{Activation: forerun.NewActivationID(time.Now()), Action: a, Input: []byte(`{}`), Namespace: namespace, Events: h})
	return string(g.wait(h).Result)
}

// TestEndNamespace: no process that has served a tenant serves one of the same name afterwards, and others' go on.
func TestEndNamespace(t *testing.T) {
	g := newRig(t, nil)
	a := keep(action(servedBefore))
	made := 0
	for _, before := range []string{"0", "1"} {
		for i, namespace := range []string{"ada", "bob"} {
			if got := g.callOf(namespace, a); got != `{"before":`+before+`,"env":true}` {
				t.Fatalf("%s: %s, not %s", namespace, got, before)
			}
			// The next call finds this sandbox idle. Otherwise it may get another one, which has served nothing.
			made = max(made, i+1)
			g.awaitStats("they are clean", func(s Stats) bool { return s.Idle == made })
		}
	}
	g.EndNamespace("ada")
	if pids := g.maker.started()[0].pids(); len(pids) > 0 {
		t.Errorf("of ada's are left %v", pids)
	}
	for namespace, want := range map[string]string{"ada": `{"before":0,"env":true}`, "bob": `{"before":2,"env":true}`} {
		if got := g.callOf(namespace, a); got != want {
			t.Errorf("%s: %s, not %s", namespace, got, want)
		}
	}
}

// TestEndNamespaceOfWhatIsSquashed: a handler that still works or loads when its activation has been given up is gone, too, however long
// that would take.
func TestEndNamespaceOfWhatIsSquashed(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		state  sandboxState
	}{
		"working": {"import time\ndef main(args): time.sleep(1000)", sandboxBusy},
		"loading": {"import time\ntime.sleep(1000)", sandboxStarting},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, nil)
			r, h := g.begin(keep(action(c.source)), `{}`)
			if c.state == sandboxBusy {
				g.begun(h)
			} else {
				until(t, func() bool { return len(g.maker.started()) == 1 }, "no sandbox is made")
			}
			if n := len(g.sandboxes(c.state)); n != 1 {
				t.Fatalf("%d sandboxes are as they are to be", n)
			}
			g.Squash(r.Activation)
			gone := make(chan bool, 1)
			go func() {
				g.EndNamespace("guest")
				gone <- true
			}()
			await(t, gone, "the namespace's sandboxes do not end")
			if pids := g.maker.started()[0].pids(); len(pids) > 0 {
				t.Errorf("%v are left", pids)
			}
			if len(g.pools) > 0 || len(g.tenants) > 0 || len(h.ended) > 0 {
				t.Errorf("%d pools and %d tenants are on the books, and %d activations ended", len(g.pools), len(g.tenants), len(h.ended))
			}
		})
	}
}

// TestEndsAsItIsReady: a sandbox that is to end as its code has been loaded is off the books once.
func TestEndsAsItIsReady(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	b := &pooledSandbox{stopped: stopped, state: sandboxStarting, since: time.Now()}
	p := &pool{tenant: new(tenant), sandboxes: []*pooledSandbox{b}, starting: 1}
	w := &Worker{sandboxes: 1, starting: 1, pools: map[poolKey]*pool{{}: p}}
	b.w = w
	b.owner.Store(p)
	stop()
	if r, idle := w.next(b); r != nil || idle || w.starting != 0 || p.starting != 0 || w.sandboxes != 0 {
		t.Errorf("run %v, idle %v, %d starting, %d of the pool, %d in all", r, idle, w.starting, p.starting, w.sandboxes)
	}
}
