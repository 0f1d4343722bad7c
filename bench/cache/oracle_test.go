package cache

import (
	"math/rand/v2"
	"testing"
)

// TestOracleFollowsReads: a call is a hit while what it and its callees read has not been written, and a call with writes never is.
func TestOracleFollowsReads(t *testing.T) {
	o := newOracle()
	read := called("read", 1, records("a"), called("below", 1, records("b")))
	write := func(record string) *call { return called("caller", 1, nil, writing("write", record, records(record))) }
	for i, step := range []struct {
		call         *call
		calls, hits  int
		whatHappened string
	}{
		{read, 2, 0, "nothing is known"},
		{read, 1, 1, "all is known"},
		{called("read", 2, records("a"), called("below", 1, records("b"))), 2, 1, "another input, with a known callee"},
		{write("c"), 2, 0, "a write is executed"},
		{write("c"), 2, 0, "and again, with its caller"},
		{read, 1, 1, "another record was written"},
		{write("b"), 2, 0, "a record of the callee is written"},
		{read, 2, 0, "both are stale"},
		{read, 1, 1, "both are known again"},
		{write("a"), 2, 0, "a record of the caller is written"},
		{read, 2, 1, "the callee is known still"},
	} {
		calls, hits := o.calls, o.hits
		o.play(step.call)
		if o.calls-calls != step.calls || o.hits-hits != step.hits {
			t.Errorf("%d, %s: %d calls and %d hits, not %d and %d", i, step.whatHappened, o.calls-calls, o.hits-hits, step.calls, step.hits)
		}
	}
}

// TestRequestsHaveThePapersActivations: the applications have as many activations as in table II of HashCache's paper.
func TestRequestsHaveThePapersActivations(t *testing.T) {
	want := map[string]int{
		"GetTickts": 17, "QueryOrd": 2, "CalRef": 2, "PresvTickt": 31, "CancOrd": 4, "GetContact": 1, "PayOrd": 3,
		"Search": 5, "Reco": 3, "Reserve": 2, "User": 1,
		"regression": 1, "transform": 1, "tree": 1, "rule_match": 1, "Prediction": 3, "SetCompute": 3,
	}
	found := 0
	for _, read := range suites() {
		s, err := read(true)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 1))
		for _, a := range s.apps {
			var asked []ask
			if err := a.draw(random)(func(a ask) ([]byte, error) {
				asked = append(asked, a)
				return []byte(`{"orders":[{"number":1}]}`), nil
			}); err != nil {
				t.Fatal(err)
			}
			o, last := newOracle(), asked[len(asked)-1]
			for _, c := range last.calls([]byte(`{"orders":[{"number":1}]}`)) {
				o.play(c)
			}
			if last.app != a.name || o.calls != want[a.name] || o.hits != 0 {
				t.Errorf("%s: the last request is for %s, with %d activations and %d hits, not %d", a.name, last.app, o.calls, o.hits, want[a.name])
			}
			found++
		}
	}
	if found != len(want) {
		t.Errorf("%d applications, not %d", found, len(want))
	}
}
