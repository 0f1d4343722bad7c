package worker

import (
	"fmt"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// servedBefore is a Python function that answers how many activations its process has served before, and then does what it is told.
const servedBefore = `
import os, signal, subprocess, threading, time
served = 0
def main(a):
    global served
    served += 1
    exec(a.get("do", ""))
    return {"before": served - 1, "env": os.environ["__OW_ACTIVATION_ID"] != os.environ.get("LAST")}
`

func TestKeptPythonServesOn(t *testing.T) {
	g := newNativeRig(t, single)
	a := keep(action(servedBefore))
	for before := range 3 {
		g.expect(a, `{"do":"os.environ['LAST'] = ''"}`, fmt.Sprintf(`{"before":%d,"env":true}`, before))
	}
	forked := fresh(action(servedBefore))
	for range 2 {
		g.expect(forked, `{}`, `{"before":0,"env":true}`)
	}
}

// TestProcessorTimeIsTold: of what computes, in a process of its own or one that is kept, and hardly any of what waits.
func TestProcessorTimeIsTold(t *testing.T) {
	g := newNativeRig(t, single)
	works := action("import time\ndef main(a):\n    end = time.process_time() + 0.02\n    while time.process_time() < end: pass\n    return {}\n")
	waits := action("import time\ndef main(a):\n    time.sleep(0.02)\n    return {}\n")
	for name, a := range map[string]*forerun.Action{"forked": fresh(works), "kept": action(works.Exec.Code), "waits": waits} {
		var told time.Duration
		for end := time.Now().Add(2 * time.Minute); told == 0 && time.Now().Before(end); { // it is measured now and then
			told = g.call(a, `{}`).CPU
		}
		if (told >= 20*time.Millisecond) != (name != "waits") {
			t.Errorf("%s: %v", name, told)
		}
	}
}

// TestKeptPythonInAFolderThatIsGone: its working directory may be gone with the files of its activation.
func TestKeptPythonInAFolderThatIsGone(t *testing.T) {
	g := newNativeRig(t, single)
	a := keep(action(servedBefore))
	g.expect(a, `{"do":"os.mkdir('/tmp/x'); os.chdir('/tmp/x'); os.getcwd()"}`, `{"before":0,"env":true}`)
	g.expect(a, `{"do":"assert os.getcwd() == '/action'; os.chdir('/tmp')"}`, `{"before":1,"env":true}`)
	g.expect(a, `{"do":"assert os.getcwd() == '/tmp'"}`, `{"before":2,"env":true}`)
}

// TestKeptPythonThatGoesOn: a process in which something would run between two activations serves no other, and neither does one
// that failed to answer; what else an activation does leaves it at its work.
func TestKeptPythonThatGoesOn(t *testing.T) {
	g := newNativeRig(t, single)
	a := keep(action(servedBefore))
	for _, c := range []struct {
		do   string
		ends bool
	}{
		{do: "threading.Thread(target=time.sleep, args=(100,)).start()", ends: true},
		{do: "signal.alarm(100)", ends: true},
		{do: "subprocess.Popen(['sleep', '100'])"},
		{do: "subprocess.run(['true'])"},
		{do: "os.fork() or os._exit(0)"},
		{do: "os.fork()"}, // the child comes back from the function, too
		{do: "1 / 0"},
		{do: "raise SystemExit(1)"},
	} {
		t.Run(c.do, func(t *testing.T) {
			g.t = t
			g.call(a, `{"do":"os._exit(1)"}`)
			g.expect(a, `{}`, `{"before":0,"env":true}`)
			g.call(a, fmt.Sprintf(`{"do":%q}`, c.do))
			want := 2
			if c.ends {
				want = 0
			}
			g.expect(a, `{}`, fmt.Sprintf(`{"before":%d,"env":true}`, want))
			g.expect(a, `{}`, fmt.Sprintf(`{"before":%d,"env":true}`, want+1))
		})
	}
	if stats := g.Stats(); stats.ColdStarts != 1 {
		t.Errorf("%d sandboxes were started", stats.ColdStarts)
	}
}
