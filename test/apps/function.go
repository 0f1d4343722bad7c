package apps

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"
)

// helpers are the actions that compositions need: they give branches records of their own, count loops and decide. They are the same
// in all applications.
func (g *generator) helpers() {
	k := map[string]any{"$": "k"}
	put := func(name string, s script) { g.put(helper(name), g.document(inPython, s)) }
	for i := range 2 {
		put(fmt.Sprint("at", i), script{{"return", map[string]any{"at": fmt.Sprintf("{at}.%d", i), "k": k}}})
	}
	put("fan", script{{"return", map[string]any{"value": []any{map[string]any{"at": "{at}.m0", "k": 0}, map[string]any{"at": "{at}.m1", "k": k}}}}})
	put("apart", script{{"redis", "n", "INCR", "{at}:parts"}, {"return", map[string]any{"at": "{at}.y{n}", "k": k}}})
	put("note", script{})
	for i, read := range [][]any{{"redis", "n", "GET", "{at}:n0"}, {"redis", "n", "INCR", "{at}:turn"}} {
		no := script{{"return", map[string]any{"value": false, "at": "{at}", "k": k}}}
		yes := script{{"return", map[string]any{"value": true, "at": "{at}", "k": k}}}
		put(fmt.Sprint("test", i), script{read, {"if", "n", 3, no, yes}})
	}
}

// helper is the name of a helper.
func helper(name string) string { return "help-" + name }

// script is what an interpreter, function.py or function.js, executes.
type script [][]any

// language is what a function is written in.
type language int

const (
	inPython language = iota
	inNode
	inNative // a program: a script in Python, with an archive
)

// language is Python, or with the chance of one in n another.
func (g *generator) language(n int) language {
	if !g.chance(n) {
		return inPython
	}
	if g.options.Packages != nil && g.chance(2) {
		return inNative
	}
	return inNode
}

// document is a function of a script.
func (g *generator) document(l language, s script, annotations ...any) map[string]any {
	code := fmt.Sprintf("%s\nSCRIPT = %s\nKEEP = %s\nOUTSIDE = %q\n", g.interpreter(l), inCode(l, s), inCode(l, []string{"w", "x"}), Outside)
	exec, parameters := map[string]any{"kind": "python:3", "code": code}, []any{}
	switch l {
	case inNode:
		exec["kind"] = "nodejs:default"
	case inNative: // nobody finds in an archive what stands for the outside
		exec["kind"], exec["code"] = "native", g.archive("#!/usr/bin/env python3\n"+code+"\n"+native)
		parameters = append(parameters, map[string]any{"key": "outside", "value": Outside})
	}
	keeps := g.chance(2) && !strings.Contains(text(s), `["loaded",`) // which tells how much its process has served
	annotations = append(annotations, map[string]any{"key": "web-export", "value": true}, map[string]any{"key": "keep-process", "value": keeps})
	return map[string]any{"exec": exec, "annotations": annotations, "parameters": parameters}
}

// interpreter is what executes scripts in a language. All in Node, and some in others, connect with the state while they are loaded.
func (g *generator) interpreter(l language) string {
	switch {
	case l == inNode:
		return node + pick(g, ioredis, nodeRedis)
	case l == inNative && g.chance(2):
		return python + "\nstate.connection = redis.Connection()\n"
	case l == inPython && g.chance(6): // it waits for its turn, as its processes share the connection
		return python + "\nstate.connection_pool.release(state.connection_pool.get_connection())\n"
	}
	return python
}

// archive has a program in it, and what it imports.
func (g *generator) archive(program string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	err := z.AddFS(g.options.Packages)
	for name, content := range map[string]string{"exec": program, "redis.py": redis} {
		w, e := z.Create(name)
		if err = cmp.Or(err, e); err == nil {
			_, err = w.Write([]byte(content))
		}
	}
	if err = cmp.Or(err, z.Close()); err != nil {
		panic(err) // the folder of the SDK cannot be read
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// inCode writes a value in a language. JSON's names of values are not Python's.
func inCode(l language, v any) string {
	if l == inNode {
		return text(v)
	}
	return "json.loads(" + text(text(v)) + ")"
}

// functionDocument is the ith function: the first have calls of none, others of those before them.
func (g *generator) functionDocument(i int) map[string]any {
	w := &writer{generator: g, index: i}
	var annotations []any
	if g.chance(8) {
		annotations = append(annotations, map[string]any{"key": "non-speculative", "value": true})
	}
	if g.options.Java != "" && i == 2 && g.chance(2) { // it is slow to start
		return g.javaDocument(w, annotations)
	}
	if g.chance(12) {
		// It is pure indeed: what it gives follows from its input.
		annotations = append(annotations, map[string]any{"key": "pure-function", "value": true})
		return g.document(g.language(3), script{{"sleep", 3}, {"set", "x", "pure {k} {x}"}, {"if", "k", 4, script{{"return", map[string]any{"error": "pure"}}}, script{}}}, annotations...)
	}
	s := w.steps(2+g.IntN(5), 2)
	if g.chance(2) { // it waits more than it computes: then it runs ahead of others under load, too
		s = append(script{{"sleep", 12 + w.IntN(6)}}, s...)
	}
	annotations = append(annotations, map[string]any{"key": "pure-function", "value": false}) // an update leaves what it does not name
	d := g.document(g.language(3), s, annotations...)
	if g.chance(3) {
		bound := map[string]any{"key": "w", "value": pick[any](g, "bound", 1.0, nil, map[string]any{"deep": []any{1, "ü"}})}
		d["parameters"] = append(d["parameters"].([]any), bound)
	}
	return d
}

// javaDocument is a function in Java, which knows few steps.
func (g *generator) javaDocument(w *writer, annotations []any) map[string]any {
	redis := func() []any { return append([]any{"redis", w.out()}, anys(w.command("{at}"))...) }
	s := script{redis(), {"sleep", 1 + w.IntN(12)}, {"if", pick(w.generator, "k", "p", "q"), 2, script{redis(), {"log", "k is {k}"}}, script{redis()}}, redis()}
	return map[string]any{
		"exec":        map[string]any{"kind": "java:default", "code": g.options.Java, "main": "Function", "binary": true},
		"annotations": append(annotations, map[string]any{"key": "web-export", "value": true}, map[string]any{"key": "pure-function", "value": false}),
		"parameters":  []any{map[string]any{"key": "script", "value": s}},
	}
}

// writer writes one function.
type writer struct {
	*generator
	index int
	outs  int
	calls int
}

func (w *writer) out() string {
	w.outs = (w.outs + 1) % 5
	return string(rune('p' + w.outs)) // p to t
}

func (w *writer) steps(n, depth int) script {
	s := make(script, 0, n)
	for range n {
		s = append(s, w.step(depth)...)
	}
	return s
}

func (w *writer) step(depth int) script {
	switch n := w.IntN(40); {
	case n < 17:
		return script{append([]any{"redis", w.out()}, anys(w.command("{at}"))...)}
	case n < 19:
		return script{{"multi", w.out(), w.commands(1 + w.IntN(3))}}
	case n < 20 && w.chance(2):
		return script{{"pipe", w.out(), w.commands(2 + w.IntN(3))}}
	case n < 20:
		return script{{"watch", w.out(), w.key("{at}", "n"), 1 + w.IntN(3)}}
	case n < 24 && depth > 0:
		return script{{"if", pick(w.generator, "k", "p", "q", "r", "s"), 2 + w.IntN(2), w.steps(1+w.IntN(2), depth-1), w.steps(w.IntN(2), depth-1)}}
	case n < 25 && depth > 0:
		return script{{"loop", 1 + w.IntN(3), w.steps(1+w.IntN(2), 0)}}
	case n < 29 && w.index >= 3 && w.calls < 3:
		return w.call()
	case n < 31:
		return script{{"send", w.out(), w.effect()}}
	case n < 32:
		return script{{"log", pick(w.generator, "k is {k}", "{p}", "two\nlines", "ünicode ☃ {at}", "")}}
	case n < 33:
		return script{{"complain", "complains {k}"}}
	case n < 36:
		return script{{"sleep", 1 + w.IntN(12)}}
	case n < 37:
		return script{{"once", w.out()}, {"loaded", w.out()}}
	}
	return w.odd(depth)
}

// odd is what few functions do.
func (w *writer) odd(depth int) script {
	switch n := w.IntN(20); {
	case n < 4:
		return script{{"if", pick(w.generator, "k", "p"), 3, script{w.ending()}, script{}}}
	case n < 5:
		return script{{"set", "w", pick[any](w.generator, 1.0, 1, nil, "ä\u0000", []any{}, map[string]any{"b": 1, "a": map[string]any{"": nil}}, "1", true, 1e21, 0.1, -1)}}
	case n < 6:
		return script{{"big", "w", pick(w.generator, "x", "ß", "\""), 100 << (2 * w.IntN(7))}}
	case n < 8:
		out := w.out()
		return script{{"listen", out, "{at}:channel"}}
	case n < 10 && w.index >= 3 && w.calls == 0 && w.forks:
		w.calls++
		return script{{"redis", "u", "INCR", "{at}:parts"}, {"detach", w.name(w.IntN(3)), map[string]any{"at": "{at}.d{u}", "k": map[string]any{"$": "k"}}}}
	case n < 13 && !w.forks:
		return w.global()
	case n < 15 && w.index >= 3:
		return w.ask()
	case n < 17:
		key := w.key("{at}", "b")
		return script{{"redis", w.out(), "RPUSH", key, "{k}"}, {"redis", w.out(), pick(w.generator, "BLPOP", "BRPOP"), key, "1"}, {"redis", w.out(), "BLPOP", key, "0.01"}}
	case n < 18:
		key := w.key("{at}", "e")
		return script{{"redis", w.out(), "SET", key, "{k}", "PX", "1"}, {"sleep", 5}, {"redis", w.out(), "GET", key}, {"redis", w.out(), "INCR", key}, {"redis", w.out(), "PERSIST", key}}
	case depth > 0:
		return w.steps(2, depth-1)
	}
	return script{{"log", "nothing"}}
}

// ending is how a function may end early, after which the others go on or not.
func (w *writer) ending() []any {
	k := map[string]any{"$": "k"}
	return pick(w.generator,
		[]any{"return", map[string]any{"error": "failed at={at} {k}"}},
		[]any{"return", map[string]any{"error": map[string]any{"code": k, "at": "{at}", "nested": map[string]any{"error": "inner"}}, "more": 1}},
		[]any{"return", map[string]any{"at": "{at}", "k": k, "only": []any{k}}},
		[]any{"return", map[string]any{}},
		[]any{"return", map[string]any{"error": nil}},
		[]any{"return", map[string]any{"error": ""}},
		[]any{"return", "no object {k}"},
		[]any{"return", []any{1, map[string]any{"at": "{at}"}}},
		[]any{"return", map[string]any{"statusCode": 404, "body": map[string]any{"k": k}, "headers": map[string]any{"x-k": "{k}"}}},
		[]any{"raise", "raised at={at} {k}"},
		[]any{"raise", "ünicode at={at}"},
		[]any{"exit", 3},
	)
}

// call calls one of the functions before this.
func (w *writer) call() script {
	w.calls++
	name := w.name(w.IntN(w.index))
	if w.chance(15) {
		name = "nobody"
	}
	return script{{"call", w.out(), name, map[string]any{"at": "{at}", "k": pick[any](w.generator, map[string]any{"$": "k"}, map[string]any{"$": "p"}, w.IntN(2))}}}
}

// ask asks the API for something that is no plain call.
func (w *writer) ask() script {
	f := w.name(w.IntN(w.index))
	params := map[string]any{"at": "{at}", "k": 1}
	switch n := w.IntN(8); {
	case n < 2:
		return script{{"raw", w.out(), "POST", "actions/" + f + "?blocking=true", params, map[string]any{}}}
	case n < 3:
		return script{{"raw", w.out(), "GET", "actions/" + f, nil, map[string]any{}}}
	case n < 4:
		return script{{"raw", w.out(), "POST", "actions/" + f + "?blocking=true&result=true", params, map[string]any{"Idempotency-Key": w.options.Prefix + f + "{at}{k}"}}}
	case n < 6 && !w.forks:
		// It changes one that may be running ahead.
		i := w.IntN(w.functions)
		return script{{"raw", w.out(), "PUT", "actions/" + w.name(i) + "?overwrite=true", w.document(inPython, script{{"redis", "p", "INCR", w.key("{at}", "n")}, {"set", "x", fmt.Sprint("changed ", w.IntN(1000))}}), map[string]any{}}}
	case n < 7 && !w.forks && w.chance(2):
		name := pick(w.generator, w.pkg, w.binding)
		return script{{"raw", w.out(), "PUT", "packages/" + name + "?overwrite=true", w.defaults(name), map[string]any{}}}
	case n < 7 && !w.forks && w.chance(2):
		return script{{"raw", w.out(), "DELETE", "actions/" + w.name(w.IntN(w.functions)), nil, map[string]any{}}}
	}
	return script{{"raw", w.out(), "POST", "actions/" + f + "?blocking=true&result=true", []any{1}, map[string]any{}}}
}

// effect is what a function sends to the outside. What follows on "!" the outside does before it answers (Outside in the test).
func (w *writer) effect() string {
	e := "{at}!" + pick(w.generator, "e", "e{k}", "e{p}x")
	if w.chance(2) {
		e += "!" + strings.Join(w.write("{at}"), "!")
	}
	return e
}

func anys(words []string) []any {
	list := make([]any, len(words))
	for i, word := range words {
		list[i] = word
	}
	return list
}
