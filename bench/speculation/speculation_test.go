package speculation

import (
	"bytes"
	"math"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestRoundsThatWereDisturbedDoNotCount(t *testing.T) {
	of := func(cpu, stolen time.Duration) *result {
		return &result{ms: make([]float64, 10), took: time.Second, cpu: cpu, stolen: stolen}
	}
	const cpu = 100 * time.Millisecond
	for name, c := range map[string]struct {
		round
		want string
	}{
		"nothing was":                  {round{"off": of(cpu, 0), "all": of(3*cpu, 0), again: of(cpu*11/10, 0)}, "^$"},
		"it is not known":              {round{"off": of(0, 0), "all": of(cpu, 0), again: of(0, 0)}, "^$"},
		"there is one baseline":        {round{"off": of(cpu, 0), "all": of(3*cpu, 0)}, "^$"},
		"neighbours had a part":        {round{"off": of(cpu, 0), "all": of(cpu, time.Duration(runtime.NumCPU())*cpu), again: of(cpu, 0)}, `had 10% .*\(all\)`},
		"the machine went slower then": {round{"off": of(cpu, 0), "all": of(cpu, 0), again: of(cpu*12/10, 0)}, "took 10.0 ms of the processors one time, and 12.0 ms the other"},
		"the machine went faster then": {round{"off": of(cpu, 0), "all": of(cpu, 0), again: of(cpu*8/10, 0)}, "took 10.0 ms of the processors one time, and 8.0 ms the other"},
	} {
		if got := c.disturbed(); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestBaselineIsTakenTwice: where the baseline was measured before and behind the other modes both count.
func TestBaselineIsTakenTwice(t *testing.T) {
	m := sooner()
	l := m.loads[0]
	for i := range l.mode[again].ms {
		l.mode[again].ms[i] = 60
	}
	if up := l.speedup("all").Value; up != 5 {
		t.Errorf("40 and 60 ms beside 10: %v times as fast", up)
	}
	if noise := l.speedup(again).Value; math.Abs(noise-40./60) > 1e-9 {
		t.Errorf("the baseline is %v beside itself", noise)
	}
	if tail := l.tail(); math.Abs(tail-100*(1-10./60)) > 1e-9 {
		t.Errorf("p99 is lower by %v", tail)
	}
}

func TestEffectiveThroughputIsWithinTheObjective(t *testing.T) {
	m := &measured{alone: 10, served: []served{
		{1, map[string]float64{"off": 100}, map[string]float64{"off": 10}},
		{2, map[string]float64{"off": 150}, map[string]float64{"off": 13}},
		{4, map[string]float64{"off": 180}, map[string]float64{"off": 22}},
	}}
	if got := m.effective("off"); got != 150 {
		t.Errorf("got %v", got)
	}
}

// loads of an application whose answers come four times sooner.
func sooner() *measured {
	m := &measured{subject: &subject{slug: "login", suite: "FaaSChain"}, bounds: bounds{8, 5}, alone: 40}
	for _, share := range []float64{0.2, 0.5, 0.8} {
		l := &loaded{share: share, rate: 10, mode: make(map[string]*result)}
		for mode, ms := range map[string]float64{"off": 40, "branches": 20, "all": 10, again: 40, naiveBranches: 25, naive: 16} {
			r := &result{took: time.Second, cpu: time.Second}
			for range 20 {
				r.ms = append(r.ms, ms)
			}
			l.mode[mode] = r
		}
		m.loads = append(m.loads, l)
	}
	m.naive = m.loads[0]
	m.served = []served{{1, map[string]float64{"off": 25, "all": 100}, map[string]float64{"off": 40, "all": 10}}}
	return m
}

func TestReport(t *testing.T) {
	b := &bench{measured: []*measured{sooner()}, ratios: []ratio{{hits()[1], "tree", 0.86, 4, 1.2}, {hits()[1], "FaaSChain, fresh mistakes", 0.9, 4, 1.05}}}
	b.out, b.files = t.TempDir(), true
	b.hitRows(b.ratios[0], 0.02)
	if err := b.finish(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"speedup", "breakdown", "tail", "throughput", "hits", "cost"} {
		text, err := os.ReadFile(b.out + "/speculation-" + name + ".svg")
		if err != nil || !strings.Contains(string(text), "<svg") || !strings.Contains(string(text), "paper") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var table bytes.Buffer
	if err := b.report.Table(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`login at 20% +speedup, 20 requests, 10.0/s +4 x +4 to 4 `, `login at 20% +share of Amdahl's bound, effects in their turn .* 0.8 +- +5 .*>=0.8 +met`,
		`login at 20% +share of Amdahl's bound, all functions at once .* 0.5 +- +8 +- +- +- *\n`, `login at 50% +share of Amdahl's bound, effects in their turn .* 0.8 +- +5 +- +- +- *\n`,
		`all applications, low load +mean speedup +4 x .* >=4.6 +MISSED`, `all applications, low load +p99 lower by +75 % .*>=58.7 +met`,
		`FaaSChain, low load +mean speedup, branches; squash=sandbox .* +1.6 x .* 2.9 `, `FaaSChain, low load +mean speedup, all; squash=sandbox .* +2.5 x .* 3.9 `,
		`FaaSChain, high load +mean speedup +4 x .* 4.9 `, `all applications, mean of all loads +mean speedup +4 x .* 4.6 `,
		`FaaSChain, mean of all loads +p99 lower by +75 % .* 62 `, `FaaSChain +most answers within .*, beside the baseline's +4 x .* 4.1 `,
		`all applications +most answers within .*, beside the baseline's +4 x .* 3.9 +>=3.9 +met`,
		`all applications, high load +lowest upper end of a speedup's interval: login +4 x .*>=0.97 +met`,
		`hit rate 90%, in effect 86.0%: tree +processor time beside the baseline's +1.2 x .* 1.03 +<=1.1 +MISSED`, `login +most answers within 80 ms +100 1/s +- +25 +4 `,
	} {
		if !regexp.MustCompile(want).MatchString(table.String()) {
			t.Errorf("no row like %q in\n%s", want, table.String())
		}
	}
}

func TestBenchmarksAreRead(t *testing.T) {
	got := readBenchmarks("goos: linux\nBenchmarkSquash/Python-2 \t 20\t 216874121 ns/op\t 800 p50-plain-us\t 1.2e+03 p50-squash-to-ready-us\nBenchmarkMemory \t 1\t 8.5 MB-after-1M\nPASS\n")
	if len(got) != 2 || got[0].name != "BenchmarkSquash/Python" || got[1].name != "BenchmarkMemory" {
		t.Fatalf("got %+v", got)
	}
	if ready, plain, none := got[0].value("p50-squash-to-ready-us"), got[0].value("p50-plain-us"), got[1].value("p50-plain-us"); ready != 1200 || plain != 800 || !math.IsNaN(none) {
		t.Errorf("got %v, %v and %v", ready, plain, none)
	}
}

func TestMachineRows(t *testing.T) {
	b := new(bench)
	b.machineRow(benchmark{"BenchmarkStep/known", map[string]float64{"events/cpu-s": 999_000}})
	b.machineRow(benchmark{"BenchmarkMemory", map[string]float64{"MB-after-1M": 100, "MB-after-10M": 106}})
	b.machineRow(benchmark{"BenchmarkMemory", map[string]float64{"MB-after-1M": 100, "MB-after-10M": 106.1}})
	for i, want := range []bool{false, true, false} {
		if got, ok := b.report.Rows[i].Meets(); !ok || got != want {
			t.Errorf("%+v: %v, %v", b.report.Rows[i], got, ok)
		}
	}
}
