package apps

import "fmt"

// addProgram adds a sequence or a composition of what there is.
func (g *generator) addProgram() {
	name := fmt.Sprintf("%sp%d", g.options.Prefix, len(g.names))
	g.left = 9
	if g.chance(3) {
		g.put(name, g.sequence())
	} else {
		g.put(name, g.composed(g.combinator(3)))
	}
	g.names = append(g.names, name)
}

func (g *generator) sequence() map[string]any {
	var components []string
	for range 2 + g.IntN(4) {
		components = append(components, "/_/"+g.part())
	}
	return exported(map[string]any{"exec": map[string]any{"kind": "sequence", "components": components}})
}

// part is the name of something that a program may consist of: mostly a function, or a program that was made before.
func (g *generator) part() string {
	g.left--
	if g.chance(8) {
		return pick(g, g.packaged...)
	}
	if len(g.names) > g.functions && (g.nested && g.chance(2) || g.chance(10)) {
		return pick(g, g.names[g.functions:]...)
	}
	return g.name(g.IntN(g.functions))
}

func exported(document map[string]any, annotations ...any) map[string]any {
	document["annotations"] = append(annotations, map[string]any{"key": "web-export", "value": true})
	return document
}

// composed is the action of a composition, as npm openwhisk-composer deploys it.
func (g *generator) composed(n combinator) map[string]any {
	return exported(map[string]any{"exec": map[string]any{"kind": "nodejs:default", "code": "// compiled"}}, map[string]any{"key": "conductor", "value": n})
}

// combinator is a node of a composition's document.
type combinator map[string]any

func (g *generator) action(name string) combinator {
	return combinator{"type": "action", "name": "/_/" + name}
}

// function is what loops repeat: no program, whose own loops would count the same turns.
func (g *generator) function() combinator { return g.action(g.name(g.IntN(g.functions))) }

func (g *generator) helper(name string) combinator { return g.action(helper(name)) }

func (g *generator) test() combinator { return g.helper(fmt.Sprint("test", g.IntN(2))) }

func (g *generator) several(n, depth int) []combinator {
	list := make([]combinator, n)
	for i := range list {
		list[i] = g.combinator(depth)
	}
	return list
}

// own are the components of a branch, with records of its own.
func (g *generator) own(i, depth int) combinator {
	return combinator{"type": "sequence", "components": append([]combinator{g.helper(fmt.Sprint("at", i))}, g.several(1+g.IntN(2), depth)...)}
}

func (g *generator) combinator(depth int) combinator {
	switch {
	case g.left <= 0:
		return combinator{"type": "empty"}
	case depth == 0:
		return g.action(g.part())
	}
	d := depth - 1
	switch g.IntN(24) {
	case 0, 1, 2, 3:
		return combinator{"type": "sequence", "components": g.several(2+g.IntN(3), d)}
	case 4, 5, 6:
		return g.branch("if", d)
	case 7:
		return g.branch("if_nosave", d)
	case 8, 9:
		return combinator{"type": pick(g, "while", "while_nosave"), "test": g.helper("test1"), "body": g.function()}
	case 10:
		return combinator{"type": pick(g, "dowhile", "dowhile_nosave"), "body": g.function(), "test": g.helper("test1")}
	case 11:
		return combinator{"type": "repeat", "count": 1 + g.IntN(3), "components": g.several(1, min(d, 1))}
	case 12:
		return combinator{"type": "retry", "count": 2, "components": g.several(1+g.IntN(2), min(d, 1))}
	case 13:
		return combinator{"type": "try", "body": combinator{"type": "sequence", "components": g.several(2, d)}, "handler": g.combinator(d)}
	case 14:
		return combinator{"type": "finally", "body": g.combinator(d), "finalizer": g.combinator(d)}
	case 15, 16:
		if !g.forks {
			break
		}
		return combinator{"type": "parallel", "components": []combinator{g.own(0, d), g.own(1, min(d, 1))}}
	case 17:
		if !g.forks {
			break
		}
		return combinator{"type": "sequence", "components": []combinator{g.helper("fan"), {"type": "map", "components": g.several(1+g.IntN(2), min(d, 1))}}}
	case 18:
		return combinator{"type": "let", "declarations": map[string]any{"n": g.IntN(3), "t": "let"}, "components": append([]combinator{g.inline()}, g.within(d)...)}
	case 19:
		return combinator{"type": pick(g, "merge", "retain", "retain_catch"), "components": g.several(1, d)}
	case 20:
		if !g.forks {
			break
		}
		return combinator{"type": "sequence", "components": []combinator{
			g.helper("apart"), {"type": "async", "components": []combinator{g.action(g.name(g.IntN(3))), g.action(g.name(g.IntN(3)))}}, g.helper("note"),
		}}
	case 21: // alone it would take from the others where they keep their records
		return combinator{"type": "merge", "components": []combinator{{"type": "literal", "value": map[string]any{"w": "literal", "k": g.IntN(3)}}}}
	case 22:
		return g.dynamic()
	}
	return g.action(g.part())
}

// within is what is in the reach of variables; half of it under a mask, and tells that it sees none.
func (g *generator) within(depth int) []combinator {
	parts := append([]combinator{inlined("p => Object.assign({}, p, {x: typeof n})")}, g.several(1, depth)...)
	if g.chance(2) {
		return []combinator{{"type": "mask", "components": parts}}
	}
	return parts
}

// branch is a choice; one of three has nothing to do if its test fails.
func (g *generator) branch(kind string, depth int) combinator {
	c := combinator{"type": kind, "test": g.test(), "consequent": g.combinator(depth)}
	if !g.chance(3) {
		c["alternate"] = g.combinator(depth)
	}
	return c
}

// dynamic names what is to run only when it is its turn.
func (g *generator) dynamic() combinator {
	code := fmt.Sprintf("p => ({type: 'action', name: '/_/%s', params: {at: p.at, k: p.k}})", g.part())
	return combinator{"type": "sequence", "components": []combinator{inlined(code), {"type": "dynamic"}}}
}

// inline is a function that is part of the composition, and sees its variables.
func (g *generator) inline() combinator {
	code := pick(g, "p => { n = n + 1; return Object.assign({}, p, {n, t}) }", "p => { t = t + p.at }", "p => p.k === 2 ? {error: 'inline'} : p", "({at, k}) => ({at, k, float: 1.0, n})")
	return inlined(code)
}

func inlined(code string) combinator {
	return combinator{"type": "function", "function": map[string]any{"exec": map[string]any{"kind": "nodejs:default", "code": code}}}
}

// addConductor adds a conductor action of OpenWhisk's protocol, which asks for three functions one after the other.
func (g *generator) addConductor() {
	code := fmt.Sprintf(`
def main(args):
    at, k, step = args.get("at"), args.get("k", 0), args.get("step", 0)
    if "error" in args or not isinstance(at, str):
        return {"error": {"conductor": args.get("error")}}
    names = %s
    if step == len(names):
        return {"params": {"at": at, "k": k, "p": args.get("p")}}
    return {"action": names[step], "params": {"at": at, "k": k}, "state": {"step": step + 1, "at": at, "k": k}}
`, text([]string{g.part(), g.part(), g.part()}))
	name := g.options.Prefix + "conductor"
	g.put(name, exported(map[string]any{"exec": map[string]any{"kind": "python:3", "code": code}}, map[string]any{"key": "conductor", "value": true}))
	g.names = append(g.names, name)
}
