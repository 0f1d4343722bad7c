package apps

import (
	"fmt"
	"slices"
)

// addPackage adds a package with functions, and a binding of it: what these are given by default is the package's, the binding's over
// it, and their own over both.
func (g *generator) addPackage() {
	g.pkg, g.binding = g.options.Prefix+"pkg", g.options.Prefix+"bound"
	for _, name := range []string{g.pkg, g.binding} {
		g.before = append(g.before, g.putPackage(name))
	}
	for i := range 2 {
		name := fmt.Sprint("/g", i)
		g.put(g.pkg+name, g.functionDocument(3))
		g.packaged = append(g.packaged, g.pkg+name, g.binding+name)
	}
}

// putPackage gives the package, or the binding, other parameters.
func (g *generator) putPackage(name string) Step {
	return Step{Method: "PUT", Path: "packages/" + name + "?overwrite=true", Body: text(g.defaults(name))}
}

// defaults is the package's document, or the binding's.
func (g *generator) defaults(name string) map[string]any {
	value := pick[any](g, "bound", 1.0, 2, nil, map[string]any{"deep": []any{1, "ü"}})
	document := map[string]any{"parameters": []any{map[string]any{"key": pick(g, "w", "x"), "value": value}}}
	if name == g.binding {
		document["binding"] = map[string]any{"namespace": "_", "name": g.pkg}
	}
	return document
}

// changePackage changes what packaged functions are given, or takes their binding away for a while.
func (g *generator) changePackage() {
	if g.chance(2) {
		g.add(g.putPackage(pick(g, g.pkg, g.binding)))
		return
	}
	g.request("DELETE", "packages/"+g.binding, nil)
	g.invoke()
	g.invoke()
	g.add(g.putPackage(g.binding))
}

// addCallers adds functions that call whatever there is, programs too, and where forks may be two at a time; and programs of all that.
func (g *generator) addCallers() {
	all := slices.Concat(g.names, g.packaged)
	var callers []string
	for i := range 2 {
		w := &writer{generator: g, index: g.functions}
		var s script
		for range 1 + g.IntN(3) {
			s = append(append(s, w.steps(w.IntN(2), 1)...), w.callAny(all)...)
		}
		name := fmt.Sprintf("%sc%d", g.options.Prefix, i)
		g.put(name, g.document(g.language(3), s))
		callers = append(callers, name)
	}
	g.names = append(g.names, callers...)
	g.nested = true
	for range 3 {
		g.addProgram()
	}
}

// callAny calls something, or two things with records of their own.
func (w *writer) callAny(all []string) script {
	call := func(at string) []any {
		return []any{pick(w.generator, all...), map[string]any{"at": at, "k": pick[any](w.generator, map[string]any{"$": "k"}, map[string]any{"$": "p"}, w.IntN(2))}}
	}
	if w.forks && w.chance(3) {
		return script{{"redis", "u", "INCR", "{at}:parts"}, {"both", w.out(), []any{call("{at}.q{u}"), call("{at}.r{u}")}}}
	}
	return script{append([]any{"call", w.out()}, call("{at}")...)}
}
