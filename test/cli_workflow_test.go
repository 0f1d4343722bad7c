package test

import (
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestWorkflows: a project file says workflows itself, and names JavaScript compositions without an installation of composer.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	needNode(t)
	sh := newShell(t, start(t, server.Options{}))
	sh.save(t, map[string]string{
		"f.py": strings.TrimLeft(`
def double(args):
    return {'n': 2 * args['n']}

def large(args):
    return {'value': args['n'] > 10}

def square(args):
    return {'sq': args['value'] ** 2}

def span(args):
    return {'value': list(range(args['n']))}
`, "\n"),
		"order.js": "const composer = require('openwhisk-composer')\nmodule.exports = composer.seq('double', 'double')\n",
		"forerun.yaml": strings.TrimLeft(`
actions:
  double: { file: f.py, main: double }
  large: { file: f.py, main: large }
  square: { file: f.py, main: square }
  span: { file: f.py, main: span }
workflows:
  branch: [double, { if: large, then: [double, double], else: double }]
  fork: [{ parallel: [double, [double, double]] }]
  each: { steps: [span, { map: square }], annotations: { description: squares } }
compositions:
  order: order.js
`, "\n"),
	})
	sh.follow(t, []step{
		{"deploy", 0, "created    action   /_/branch\n", "ok: 8 created"},
		{"deploy", 0, "unchanged  action   /_/order\n", "ok: 0 created, 0 updated, 8 unchanged"},
		{"invoke branch -r -o jsonl -p n 1", 0, `={"n":4}` + "\n", ""},
		{"invoke branch -r -o jsonl -p n 6", 0, `={"n":48}` + "\n", ""},
		{"invoke fork -r -o jsonl -p n 1", 0, `={"value":[{"n":2},{"n":4}]}` + "\n", ""},
		{"invoke each -r -o jsonl -p n 3", 0, `={"value":[{"sq":0},{"sq":1},{"sq":4}]}` + "\n", ""},
		{"invoke order -r -o jsonl -p n 1", 0, `={"n":4}` + "\n", ""},
		{"action list -n", 0, "/guest/order   composition", ""},
		{"compose order.js --ast", 0, `"type": "seq"`, ""},
		{"compose f.py", 2, "", "cannot be read as a composition"},
	})
	sh.save(t, map[string]string{"forerun.yaml": "workflows:\n  wrong: [double, { map: square }]\n  lost: [double, doubel]\n"})
	sh.follow(t, []step{
		{"deploy --dry-run", 4, "created    action   /_/wrong\n", "action /_/lost: a step names the action doubel, which neither the project nor the server has: correct the name, or deploy the action first"},
		{"deploy", 4, "created    action   /_/wrong\n", "a step names the action doubel"},
		{"invoke wrong -r -o jsonl -p n 1", 5, "The input of map has no member value, but n: let the step before map return", ""},
	})
}
