package test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forerun.dev/forerun/internal/sandbox/sandboxtest"
	"forerun.dev/forerun/test/apps"
	"forerun.dev/forerun/test/compare"
	"forerun.dev/forerun/test/history"
	"forerun.dev/forerun/test/server"
)

// How much TestDifferential does without FORERUN_SOAK: so many applications, if a busy machine has begun them by then, or not done yet what
// the test is for.
const (
	differApps    = 4
	differTime    = 15 * time.Second
	differSteps   = 30 // of the only client of an application, or of all together
	differClients = 3  // at the same time, in every other application
)

// TestDifferential runs random applications on three servers: one runs nothing ahead, one whatever that costs, one as it usually does.
// What clients are answered, the records of activations, what is sent to the outside, and the state after each step must be the same.
// FORERUN_SEED repeats a run's first application.
func TestDifferential(t *testing.T) {
	needNode(t)
	outside := needOutside(t)
	seed, goOn, java := history.Seed(t), history.Soak(t), javaFunction(t)
	args := []string{"--egress-allow", outside.String() + "/32", "--memory", "8192", "--prewarm", "1"}
	plain := differing(t, outside, append(args, "--speculate", "off", "--cache", "off"))
	ahead := differing(t, outside, append(args, "--speculate", "all; least=0s; load=any"))
	usual := differing(t, outside, append(args, "--speculate", "all"))
	began, n := time.Now(), 0
	for ; n < differApps && (time.Since(began) < differTime || !hasSquashed(ahead)) || goOn(); n++ {
		d := &differential{t: t, seed: seed + uint64(n), sides: []*compare.Side{plain, ahead, usual}, java: java, apart: (seed+uint64(n))%2 == 1}
		d.run(fmt.Sprintf("a%d", n))
	}
	early, used, squashed := ahead.Tally()
	t.Logf("%d applications; ahead: %d; of these used: %d, squashed: %d", n, early, used, squashed)
	if !hasSquashed(ahead) {
		t.Error("nothing ran ahead, or all was right")
	}
	early, used, squashed = usual.Tally()
	t.Logf("ahead with the usual settings: %d; of these used: %d, squashed: %d", early, used, squashed)
	if early, _, _ = plain.Tally(); early > 0 {
		t.Errorf("%d ran ahead where that is off", early)
	}
}

// hasSquashed tells whether some of what ran ahead was right, and some was wrong.
func hasSquashed(s *compare.Side) bool {
	_, used, squashed := s.Tally()
	return used > 0 && squashed > 0
}

// differing starts a server for the test, and what is around it.
func differing(t *testing.T, outside netip.Addr, args []string) *compare.Side {
	t.Helper()
	side, err := compare.NewSide(start(t, server.Options{Redis: true, Args: args}), outside.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(side.Close)
	return side
}

// differential is one application on all servers.
type differential struct {
	t     *testing.T
	seed  uint64
	sides []*compare.Side // the one that does not run ahead first
	java  string          // Function.java, compiled
	apart bool            // several clients, each with records of its own
	app   *apps.App
}

func (d *differential) run(prefix string) {
	d.app = apps.Generate(d.seed, apps.Options{Prefix: prefix, Begins: d.begin(prefix), Packages: os.DirFS("../sdk/python"), Java: d.java, Apart: d.apart})
	d.all("deploying", func(s *compare.Side) (string, error) { return "", s.Put(d.t.Context(), d.app) })
	defer func() { // of the next application nothing is seen of this
		d.all("clearing", func(s *compare.Side) (string, error) {
			s.Outside.Take("")
			_, err := s.Records(context.WithoutCancel(d.t.Context()), nil, true)
			return "", cmp.Or(err, s.State.FlushDB(context.WithoutCancel(d.t.Context())).Err())
		})
	}()
	if !d.apart {
		d.alone(d.app.Steps(d.seed, "a", differSteps))
		return
	}
	var clients sync.WaitGroup
	for i := range differClients {
		clients.Go(func() {
			client := string(rune('a' + i))
			d.together(client, d.app.Steps(d.seed+uint64(i)<<32, client, differSteps/differClients))
		})
	}
	clients.Wait()
	d.all("all records", func(s *compare.Side) (string, error) { return s.Records(d.t.Context(), nil, true) })
}

// begin has a function begin on all servers, and returns how long that took on the slowest: on a busy machine it takes seconds.
func (d *differential) begin(prefix string) (slowest time.Duration) {
	var mu sync.Mutex // guards slowest
	d.all("a function", func(s *compare.Side) (string, error) {
		if err := s.Client.PutPython(d.t.Context(), prefix+"begin", "def main(args): return args"); err != nil {
			return "", err
		}
		began := time.Now()
		answer, err := s.Do(d.t.Context(), apps.Step{Method: http.MethodPost, Path: "actions/" + prefix + "begin?blocking=true", Body: "{}"})
		mu.Lock()
		defer mu.Unlock()
		slowest = max(slowest, time.Since(began))
		return answer.Text, err
	})
	return slowest
}

// alone takes the steps of the only client and compares all after each.
func (d *differential) alone(steps []apps.Step) {
	for n, step := range steps {
		if !d.all(fmt.Sprintf("step %d, %v", n, step), func(s *compare.Side) (string, error) { return d.observe(s, step) }) {
			return
		}
	}
}

func (d *differential) observe(s *compare.Side, step apps.Step) (string, error) {
	answer, err := s.Do(d.t.Context(), step)
	if err != nil {
		return "", err
	}
	records, err := s.Records(d.t.Context(), answer.IDs, d.app.Forks)
	if err != nil {
		return "", fmt.Errorf("%w, after %s", err, answer.Text)
	}
	sent := s.Outside.Take("")
	if d.app.Forks { // the order of each place's stays
		slices.SortStableFunc(sent, func(a, b string) int {
			at, _, _ := strings.Cut(a, "!")
			other, _, _ := strings.Cut(b, "!")
			return cmp.Compare(at, other)
		})
	}
	state, err := s.Dump(d.t.Context(), "")
	return fmt.Sprintf("%s\n%s\nsent %q\n%s", answer.Text, records, sent, state), err
}

// together takes the steps of one of several clients.
func (d *differential) together(client string, steps []apps.Step) {
	for n, step := range steps {
		if d.t.Failed() || !d.all(fmt.Sprintf("client %s, step %d, %v", client, n, step), func(s *compare.Side) (string, error) {
			answer, err := s.Do(d.t.Context(), step)
			if err == nil && step.Await && answer.Status == http.StatusAccepted { // the client's next step uses the same records
				err = s.Await(d.t.Context(), answer.IDs[0])
			}
			return answer.Text, err
		}) {
			return
		}
	}
}

// all does something to all servers at the same time, and tells whether what was seen is equal. It fails the test if not.
func (d *differential) all(what string, do func(*compare.Side) (string, error)) bool {
	seen, errs := make([]string, len(d.sides)), make([]error, len(d.sides))
	var sides sync.WaitGroup
	for i, s := range d.sides {
		sides.Go(func() { seen[i], errs[i] = do(s) })
	}
	sides.Wait()
	equal := true
	for i, s := range d.sides {
		switch with := s.Server.Options.Args[len(s.Server.Options.Args)-1]; {
		case errs[i] != nil:
			d.t.Errorf("seed %d, %s: the server with %s: %v", d.seed, what, with, errs[i])
			equal = false
		case errs[0] == nil && seen[i] != seen[0]:
			d.t.Errorf("seed %d, %s, the server with %s:\n%s", d.seed, what, with, compare.Difference(seen[0], seen[i]))
			equal = false
		}
	}
	return equal
}

// javaFunction is the function in Java of applications, or nothing on a machine without a JDK.
func javaFunction(t *testing.T) string {
	t.Helper()
	if whyNoJava() != "" {
		return ""
	}
	return theFunction.get(t, func(folder string) ([]byte, string, error) { return compileJava(folder, "apps/Function.java") })
}

var theFunction built

// needOutside is the address in this network that counts as outside.
func needOutside(t *testing.T) netip.Addr {
	t.Helper()
	a := sandboxtest.Outside()
	if !a.IsValid() {
		t.Skip("the tests have no network namespace of their own")
	}
	return a
}
