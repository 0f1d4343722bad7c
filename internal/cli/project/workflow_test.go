package project

import (
	"strings"
	"testing"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// TestWorkflows: workflows become the documents that composer would write.
func TestWorkflows(t *testing.T) {
	p, err := load(t, map[string]string{"a.py": "", FileName: `
packages:
  shop:
    actions: { price: { file: a.py } }
    workflows:
      offer:
        steps: [price, { map: [notify, log] }]
        web: true
workflows:
  checkout:
    - validate
    - parallel: [shop/price, [stock, /other/reserve]]
    - if: in-stock
      then: [pay, ship]
      else: { if: wait, then: later }
`})
	if err != nil {
		t.Fatal(err)
	}
	entities, err := p.Entities(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, e := range entities {
		if body, ok := e.Body.(*whisk.ActionPut); ok {
			got[e.Name.String()] = string(forerun.Lookup(body.Annotations, "conductor"))
		}
	}
	action := func(name string) string { return `{"type":"action","name":"` + name + `"}` }
	seq := func(parts ...string) string {
		return `{"type":"sequence","components":[` + strings.Join(parts, ",") + `]}`
	}
	for name, want := range map[string]string{
		"/_/shop/offer": seq(action("/_/shop/price"), `{"type":"map","components":[`+seq(action("/_/notify"), action("/_/log"))+`],"needs":"value"}`),
		"/_/checkout": seq(action("/_/validate"),
			`{"type":"parallel","components":[`+action("/_/shop/price")+","+seq(action("/_/stock"), action("/other/reserve"))+`]}`,
			`{"type":"if","test":`+action("/_/in-stock")+`,"consequent":`+seq(action("/_/pay"), action("/_/ship"))+
				`,"alternate":{"type":"if","test":`+action("/_/wait")+`,"consequent":`+action("/_/later")+`}}`),
	} {
		if got[name] != want {
			t.Errorf("%s: got  %s\nwant %s", name, got[name], want)
		}
	}
}

// TestWorkflowProblems: what is wrong with a workflow is told with its place.
func TestWorkflowProblems(t *testing.T) {
	for text, want := range map[string]string{
		"[]":                             "2:6: workflows.w must have at least 1 element.",
		"[a, 5]":                         "2:10: workflows.w[1] must be a string or a list or an object, not a number.",
		"[{parallel: []}]":               "workflows.w[0].parallel must have at least 1 element.",
		"[{fork: [a]}]":                  "2:8: workflows.w[0].fork is not known; known are else, if, map, parallel, then.",
		"[a, {}]":                        "2:10: workflows.w[1]: a step is an action, a list of steps, or an object with one of parallel, map and if",
		"[a, {map: b, parallel: [c]}]":   "2:11: workflows.w[1]: a step is",
		"[{if: a}]":                      "2:8: workflows.w[0]: if needs then",
		"[{if: args.n > 20, then: a}]":   "2:12: workflows.w[0].if: if names an action, whose result's member value decides; it takes no expression: ",
		"[a, [{map: b, else: c}]]":       "workflows.w[1][0]: then and else need if",
		"{steps: [a, {map: [b, '/x']}]}": "2:28: workflows.w.steps[1].map[1]: name: \"/x\" is not a name",
		"[a, w]":                         "2:6: workflows.w: the workflow runs itself (w > w): take it out of its own steps",
		"[a, {if: b, then: [{map: w}]}]": "the workflow runs itself",
		"[v]\n  v: [{parallel: [u]}]\nsequences:\n  u: [w]": "the sequence runs itself (u > w > v > u)",
		"{web: true}": `workflows.w lacks "steps"`,
	} {
		p, err := load(t, map[string]string{FileName: "workflows:\n  w: " + text + "\n"})
		if err == nil {
			_, err = p.Entities(func(string) string { return "" })
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
