package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// sleepers are functions that stay if they get an argument.
func sleepers(b *testing.B) map[string]*forerun.Action {
	node := action("exports.main = a => a.stay ? new Promise(() => setTimeout(() => 0, 1e8)) : {}")
	node.Exec.Kind = "nodejs:default"
	return map[string]*forerun.Action{
		"Python": action("import time\ndef main(args):\n  if args.get('stay'): time.sleep(100)\n  return {}\n"),
		"Node":   node,
		"native": compiled(b),
	}
}

// compiled is the native function of the other benchmarks.
func compiled(b *testing.B) *forerun.Action {
	program := filepath.Join(b.TempDir(), "native")
	build := exec.Command("go", "build", "-o", program, "./native")
	build.Dir, build.Env = "../../bench", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	code, err := os.ReadFile(program)
	if err != nil {
		b.Fatal(err)
	}
	a := action("")
	a.Exec = forerun.Exec{Kind: "native", Code: encode(string(code)), Binary: true}
	return a
}

// BenchmarkSquash squashes running handlers: how long until the next activation has begun in the same sandbox, and has
// ended, beside how long one takes otherwise. Between squashes there is time for a spare, as there is between those of a server.
func BenchmarkSquash(b *testing.B) {
	for name, a := range sleepers(b) {
		b.Run(name, func(b *testing.B) {
			g := newNativeRig(b, single)
			g.call(a, `{}`)
			wait := `{"stay":true,"wait":100000}`
			var ready, after, plain []time.Duration
			for b.Loop() {
				begin := time.Now()
				g.call(a, `{}`)
				plain = append(plain, time.Since(begin))
				r, h := g.ahead(a, wait)
				g.begun(h)
				time.Sleep(beforeSquash)
				begin = time.Now()
				g.Squash(r.Activation)
				_, h = g.begin(a, `{}`)
				g.begun(h)
				ready = append(ready, time.Since(begin))
				g.wait(h)
				after = append(after, time.Since(begin))
				time.Sleep(betweenSquashes)
			}
			slices.Sort(ready)
			slices.Sort(after)
			slices.Sort(plain)
			b.ReportMetric(float64(plain[len(plain)/2].Microseconds()), "p50-plain-us")
			b.ReportMetric(float64(ready[len(ready)/2].Microseconds()), "p50-squash-to-ready-us")
			b.ReportMetric(float64(after[len(after)/2].Microseconds()), "p50-squash-and-next-us")
			b.ReportMetric(float64(after[len(after)*99/100].Microseconds()), "p99-squash-and-next-us")
		})
	}
}

// A function runs for a while before it is found out that it should not, and squashes of one sandbox are apart.
const (
	beforeSquash    = 5 * time.Millisecond
	betweenSquashes = 100 * time.Millisecond
)
