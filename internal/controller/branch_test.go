package controller

import (
	"encoding/json"
	"fmt"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// chooses deploys a composition with a branch on a function of its own, which gives what returns says.
func (t *town) chooses(returns func() map[string]any, around string) *forerun.Action {
	t.function("choose", func(*forerun.Run, map[string]any) (any, error) { return returns(), nil })
	t.function("yes", add("yes", true))
	t.function("no", add("no", true))
	document := `{"type":"if","test":{"type":"function","function":{"exec":{"kind":"nodejs:default","code":"x => x.right"}}},
		"consequent":{"type":"action","name":"/_/yes"},"alternate":{"type":"action","name":"/_/no"}}`
	return t.deploy("choose", forerun.Exec{Kind: "nodejs:default"},
		forerun.KeyValue{Key: "conductor", Value: json.RawMessage(fmt.Sprintf(around, document))},
		forerun.KeyValue{Key: "speculate", Value: json.RawMessage(`"branches"`)})
}

// TestBranchesOnFunctionsOfCompositions: the value of a composition's own function is in another place than an action's result.
func TestBranchesOnFunctionsOfCompositions(t *testing.T) {
	for name, c := range map[string]struct {
		params any
		want   string
	}{
		"true":        {map[string]any{"value": true, "more": 1}, `{"yes":true}`},
		"false":       {map[string]any{"value": false}, `{"no":true}`},
		"no object":   {true, `{"yes":true}`},
		"an array":    {[]int{}, `{"yes":true}`},
		"nothing":     {nil, `{"no":true}`},
		"not a value": {map[string]any{"Value": true}, `{"no":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			town := newAheadTown(t)
			choose := town.chooses(func() map[string]any { return map[string]any{"params": c.params, "variables": map[string]any{}} }, "%s")
			for i := range 3 {
				got, tally := town.invokeAhead(choose, `{}`)
				if got != c.want || tally.Squashed != 0 || (tally.Used == 1) != (i > 0) {
					t.Errorf("invocation %d gave %s, %+v", i+1, got, tally)
				}
			}
		})
	}
}

// TestBranchesOnFunctionsThatSetVariables: as those are not predicted, what is ahead of such a function never stands, and is left alone for most of the time.
func TestBranchesOnFunctionsThatSetVariables(t *testing.T) {
	town, n := newAheadTown(t), 0
	choose := town.chooses(func() map[string]any {
		n++
		return map[string]any{"params": true, "variables": map[string]any{"n": n}}
	}, `{"type":"let","declarations":{"n":0},"components":[%s]}`)
	squashed := 0
	for range 50 {
		got, tally := town.invokeAhead(choose, `{}`)
		if squashed += tally.Squashed; got != `{"yes":true}` {
			t.Errorf("it gave %s", got)
		}
	}
	if squashed == 0 || squashed > 12 {
		t.Errorf("in 50 invocations %d were squashed", squashed)
	}
}

// TestFailingFunctionsOfCompositions: that one failed is no way that a branch goes.
func TestFailingFunctionsOfCompositions(t *testing.T) {
	for name, returns := range map[string]map[string]any{
		"it threw":          {"outcome": "threw", "variables": map[string]any{}},
		"it gives an error": {"params": map[string]any{"error": "no"}, "variables": map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			town := newAheadTown(t)
			choose := town.chooses(func() map[string]any { return returns }, "%s")
			for range 3 {
				if got, tally := town.invokeAhead(choose, `{}`); tally.Early != 0 || got[:9] != `{"error":` {
					t.Errorf("it gave %s, %+v", got, tally)
				}
			}
		})
	}
}

// TestFunctionsOfACompositionAreToldApart: that one gives something else each time is not forgotten since another one does not.
func TestFunctionsOfACompositionAreToldApart(t *testing.T) {
	town, n := newAheadTown(t), 0
	town.function("mixed", func(_ *forerun.Run, input map[string]any) (any, error) {
		if input["code"] == "steady" {
			return map[string]any{"params": map[string]any{}}, nil
		}
		n++
		return map[string]any{"params": map[string]any{"n": n}}, nil
	})
	town.function("last", add("last", true))
	mixed := town.deploy("mixed", forerun.Exec{Kind: "nodejs:default"}, forerun.KeyValue{Key: "conductor", Value: json.RawMessage(
		`{"type":"sequence","components":[{"type":"function","function":{"exec":{"kind":"nodejs:default","code":"steady"}}},
			{"type":"function","function":{"exec":{"kind":"nodejs:default","code":"fickle"}}},{"type":"action","name":"/_/last"}]}`)})
	squashed := 0
	for range 10 {
		_, tally := town.invokeAhead(mixed, `{}`)
		squashed += tally.Squashed
	}
	if squashed != wrongTooOften {
		t.Errorf("in 10 invocations %d were squashed", squashed)
	}
}
