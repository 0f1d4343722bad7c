package workloads

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// What Table I says of Alibaba's applications, on average: functions, callees of a function that calls, depth, and
// milliseconds in all, which the functions share.
const (
	alibabaFunctions = 17.6
	alibabaCallees   = 3.4
	alibabaDepth     = 5
	alibabaTime      = 387.2

	besides = 2 // milliseconds, about what a function takes besides what it waits for: its start, its state, its calls
)

// alibaba makes an application like those of Alibaba's traces, of which neither code nor data are known: a tree of calls with
// the figures of Table I, whose functions take the time that it says, a third more or less as chance has it, and leave out a part of
// their calls for one request in ten.
func alibaba(seed uint64, outside string) *Application {
	random := rand.New(rand.NewPCG(seed, 0xa11baba))
	a := &Application{Slug: fmt.Sprintf("alibaba%d", seed), Name: fmt.Sprintf("Alibaba %d", seed), Suite: "Alibaba", Entry: "f0", About: "Calls as in production", Calls: map[string][]string{}}
	callees := tree(random, int(alibabaFunctions-2.4+float64(seed)*0.8+0.5)) // the seeds 1 to 5 have the average
	var code strings.Builder
	code.WriteString(outside)
	for f := range callees {
		name := fmt.Sprintf("f%d", f)
		a.Functions = append(a.Functions, name)
		wait := int((alibabaTime/alibabaFunctions - besides) * (2 + 2*random.Float64()) / 3)
		fmt.Fprintf(&code, "\n\ndef %s(args):\n    found = ask(f\"wait/%d/%s/%s/{args['from']}-{args['to']}\")\n", name, wait, a.Slug, name)
		code.WriteString("    total = found + len(state.get(f\"world:route:{args['from']}:{args['to']}\"))\n")
		for i, callee := range callees[f] {
			a.Calls[name] = append(a.Calls[name], fmt.Sprintf("f%d", callee))
			indent := "    "
			if i == len(callees[f])-1 && i > 0 { // the branch
				code.WriteString("    if not state.sismember(\"alibaba:blocked\", args[\"user\"]):\n")
				indent = "        "
			}
			fmt.Fprintf(&code, "%stotal += call(\"%s-f%d\", args)[\"total\"]\n", indent, a.Slug, callee)
		}
		code.WriteString("    return {\"total\": total}\n")
	}
	a.code = code.String()
	return a
}

// tree draws which functions each of n calls: as many as Table I says on average, and no deeper than it says. A first line
// of calls reaches the depth.
func tree(random *rand.Rand, n int) [][]int {
	callees, depth := make([][]int, n), make([]int, n)
	var callers []int // functions that may get more callees
	add := func(caller, f int) {
		callees[caller] = append(callees[caller], f)
		depth[f] = depth[caller] + 1
	}
	for f := 1; f < alibabaDepth; f++ {
		add(f-1, f)
		callers = append(callers, f-1)
	}
	for f := alibabaDepth; f < n; f++ {
		caller := callers[random.IntN(len(callers))]
		if float64(f)/float64(len(callers)) > alibabaCallees { // so many that another one must call
			if other := random.IntN(f); depth[other] < alibabaDepth-1 && len(callees[other]) == 0 {
				caller = other
				callers = append(callers, other)
			}
		}
		add(caller, f)
	}
	return callees
}
