package test

import (
	"testing"

	"forerun.dev/forerun/test/server"
)

// What two tenants deploy alike: a chain whose second function is skipped when its input is known, a composition that goes on with the
// branch that it took before, and functions whose outputs fill a table.
const (
	knownFirst = "import time\n\ndef main(args):\n    time.sleep(0.2)\n    return {'n': 4}\n"
	knownPure  = "def main(args):\n    return {'twice': 2 * args['n']}\n"
	knownTest  = "import time\n\ndef main(args):\n    time.sleep(0.2)\n    return {'value': True}\n"
	knownFat   = "def main(args):\n    return {'n': args['n'], 'fat': 'x' * 900_000}\n"
	knownIf    = `{"type":"if","test":{"type":"action","name":"/_/test"},"consequent":{"type":"action","name":"/_/last"},"alternate":{"type":"action","name":"/_/fat"}}`
)

// TestTenantsTablesAreApart: what is known of a tenant's functions predicts and skips nothing of another's with the same names and the
// same code, and does not push out what is known of those, however much it is.
func TestTenantsTablesAreApart(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--speculate", "all; least=0s; load=any"}})
	ada, bob := newKnown(t, s, "ada"), newKnown(t, s, "bob")
	for _, k := range []*known{ada, bob} { // bob, when ada is known
		k.must(false, false)
		k.must(true, true)
	}
	for n := 0; gauge(t, s, "forerun_cache_evictions_total") == "0"; n++ {
		if n == 200 {
			t.Fatal("200 rows of 900 KB have pushed out nothing")
		}
		invoke(t, ada.Client, "fill", map[string]int{"n": n})
	}
	ada.must(false, true)
	bob.must(true, true)
}

// known is a tenant of whose programs something is known, or not.
type known struct {
	*testing.T
	*server.Client
	n int // of the last invocation
}

func newKnown(t *testing.T, s *server.Server, name string) *known {
	t.Helper()
	c := as(t, s, operate(t, s, "create", name))
	putPython(t, c, map[string]string{"first": knownFirst, "test": knownTest, "last": knownPure, "fat": knownFat})
	put(t, c, "pure", map[string]any{
		"exec":        map[string]string{"kind": "python:3", "code": knownPure},
		"annotations": []any{map[string]any{"key": "pure-function", "value": true}},
	})
	for sequence, parts := range map[string][]string{"chain": {"first", "pure"}, "fill": {"fat", "last"}} {
		if err := c.PutSequence(t.Context(), sequence, parts...); err != nil {
			t.Fatal(err)
		}
	}
	putComposition(t, c, "branch", knownIf)
	return &known{T: t, Client: c, n: 4}
}

// must invokes both programs, and checks whether the table of known outputs and the predictor of branches had to do with it.
func (k *known) must(output, branch bool) {
	k.Helper()
	if early, skipped := k.ahead("chain", 4, 8); skipped == 1 != output || early > 0 {
		k.Errorf("%s, chain: early %d, skipped %d; known: %v", k.Auth[:8], early, skipped, output)
	}
	var early, skipped int
	for range guesses(branch) {
		k.n++ // so that what the test gives is not known by its input
		if early, skipped = k.ahead("branch", k.n, 2*k.n); early > 0 || skipped > 0 {
			break
		}
	}
	if early == 1 != branch || skipped > 0 {
		k.Errorf("%s, branch: early %d, skipped %d; known: %v", k.Auth[:8], early, skipped, branch)
	}
}

// guesses is how often is looked whether something runs ahead: once where nothing may, and else more often, as on a busy machine it is late
// now and then.
func guesses(some bool) int {
	if some {
		return 20
	}
	return 1
}

// ahead invokes a program, and tells how much of it ran ahead and how much was skipped.
func (k *known) ahead(program string, n, twice int) (early, skipped int) {
	k.Helper()
	var result struct{ Twice int }
	r := invoke(k.T, k.Client, program, map[string]int{"n": n})
	if decode(k.T, r.Response.Result, &result); result.Twice != twice {
		k.Errorf("%s of %d gave %s", program, n, r.Response.Result)
	}
	tally := traceOf(k.T, k.Client, r.ActivationID).Trace.Tally
	if tally == nil {
		return 0, 0
	}
	return tally.Early, tally.Skipped
}
