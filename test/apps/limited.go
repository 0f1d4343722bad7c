package apps

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed late.py
var late string

// What can go beyond a limit, and how long it takes.
const (
	lateLimit = 2000 // ms; the function is loaded within it, too,
	lateSpare = 5    // for which it gets so many times what others took to begin
	slowTime  = 300  // ms, of a function that nobody waits for
	slowWait  = 10   // ms
)

// addLimited adds functions that go beyond a limit on some inputs, after they have written something, and programs with one of them
// in the middle; one function is slower than clients wait. A trigger fires one of the programs.
func (g *generator) addLimited() {
	write, after := []any{"redis", "p", "INCR", "{at}:n0"}, []any{"redis", "q", "RPUSH", "{at}:l0", "{k}"}
	loud, logs := script{write, {"log", "cut {k}"}, after}, 0
	if g.chance(2) {
		loud, logs = script{write, {"loop", 18, script{{"log", strings.Repeat("loud ", 12_000)}}}, after}, 1
	}
	g.limited("late", map[string]any{"exec": map[string]any{"kind": "python:3", "code": late}}, "timeout", lateLimit+lateSpare*int(g.options.Begins.Milliseconds()))
	g.limited("fat", g.document(inPython, script{write, {"if", "k", 2, script{{"grow", 256 << 20}}, script{}}, after}), "memory", 128)
	g.limited("loud", g.document(inPython, loud), "logs", logs)
	g.put(g.options.Prefix+"slow", g.document(g.language(3), script{write, {"sleep", slowTime}, after}))
	g.chains = append(g.chains, g.around("slow", exported(g.chain(g.action(g.options.Prefix+"slow"), g.function()))))
	trigger, rule := g.options.Prefix+"trigger", g.options.Prefix+"rule"
	g.setup = append(g.setup,
		Step{Method: "PUT", Path: "triggers/" + trigger + "?overwrite=true", Body: `{"parameters":[{"key":"k","value":1}]}`},
		Step{Method: "PUT", Path: "rules/" + rule + "?overwrite=true", Body: text(map[string]any{"trigger": "/_/" + trigger, "action": "/_/" + pick(g, g.names[g.functions:]...)})})
}

// limited adds a function with a limit, and a program around it.
func (g *generator) limited(name string, document map[string]any, limit string, value int) {
	document["limits"] = map[string]any{limit: value}
	g.put(g.options.Prefix+name, document)
	middle := g.action(g.options.Prefix + name)
	var around map[string]any
	switch g.IntN(4) {
	case 0:
		around = g.chain(g.function(), middle, g.function())
	case 1:
		around = g.composed(combinator{"type": "sequence", "components": []combinator{g.function(), {"type": "try", "body": middle, "handler": g.function()}, g.function()}})
	case 2:
		around = g.composed(combinator{"type": "finally", "body": combinator{"type": "sequence", "components": []combinator{g.function(), middle, g.function()}}, "finalizer": g.function()})
	default: // it is called
		around = g.document(inPython, script{
			{"redis", "r", "INCR", "{at}:n1"}, {"call", "s", g.options.Prefix + name, map[string]any{"at": "{at}", "k": map[string]any{"$": "k"}}}, {"redis", "t", "GET", "{at}:n0"},
		})
	}
	g.chains = append(g.chains, g.around(name, around))
}

// chain is a sequence of actions.
func (g *generator) chain(parts ...combinator) map[string]any {
	var components []any
	for _, part := range parts {
		components = append(components, part["name"])
	}
	return map[string]any{"exec": map[string]any{"kind": "sequence", "components": components}}
}

// around deploys a program with something limited in it.
func (g *generator) around(name string, document map[string]any) string {
	g.put(g.options.Prefix+"with-"+name, document)
	return g.options.Prefix + "with-" + name
}

// invokeLimited invokes one of them. For the slow one the client does not wait, and fetches the result later.
func (g *generator) invokeLimited(name string, k int) {
	s := Step{Method: "POST", Path: "actions/" + name + "?blocking=true", Body: fmt.Sprintf(`{"at":"%s%d","k":%d}`, g.client, g.IntN(2), k)}
	if strings.HasSuffix(name, "-slow") {
		s.Path, s.Await, s.Later = s.Path+fmt.Sprint("&timeout=", slowWait), true, true
	}
	g.add(s)
	if g.chance(2) {
		g.add(s) // once more, when it is known
	}
}

// fire fires the trigger.
func (g *generator) fire() {
	g.add(Step{Method: "POST", Path: "triggers/" + g.options.Prefix + "trigger", Body: g.input()})
}
