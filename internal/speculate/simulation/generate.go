package simulation

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// Case is what happens in a simulation, but for the order in which it happens.
type Case struct {
	Actions []*Action // each refers to those behind it only
	Rounds  []Round   // one after the other; what was learnt stays
	Order   uint64    // seed of the order
	Stormy  bool      // what others do comes often
	Large   bool      // records are: a column with one cannot grow where the server has no room
	Crowded bool      // several small invocations run at the same time
	Equal   bool      // equal executions wait for each other
	Paired  bool      // functions often call two others at once, and promotions often take long
	Poor    bool      // the store has no room now and then: for what was written ahead, or for a copy of what is to be read
}

// Action is an action with its name.
type Action struct {
	Name string
	oracle.Action
}

// Round is invocations, and what others do meanwhile.
type Round struct {
	Invocations []Invocation
	Others      []Other
}

// Invocation is what a client invokes.
type Invocation struct {
	Action string
	Input  int
	Mode   speculate.Mode
	Depth  int
}

// Other is something that happens in the course of a round.
type Other struct {
	What    Happening
	Command oracle.Command // of Touch
	Action  string         // of Change
	Number  int            // of Load: the depth; of GiveUp: which invocation
	Full    bool           // of Load: the server has no more room for columns
}

// Happening is the kind of something that happens.
type Happening byte

// The events beside the invocations.
const (
	Touch    Happening = iota // another client does a command
	Change                    // an action gets its next version
	Tick                      // the clock goes on
	Load                      // the depth, or the room for columns, changes
	Kill                      // a handler crashes
	Die                       // the worker does, with all handlers
	GiveUp                    // a client gives up
	Withdraw                  // a handler gives up a command
)

// maxCost bounds what one invocation does, so that the oracle finds its way, and smallCost what one of a crowd does.
const (
	maxCost   = 20
	smallCost = 5
)

// Generate makes the case of a seed.
func Generate(seed uint64) *Case {
	c := &Case{Order: seed}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	g.paired, g.detaches = g.IntN(6) == 0, seed%8 == 0
	c.Paired, c.Poor, c.Equal = g.paired, seed%5 == 2, seed%3 == 1
	if seed%5 == 1 {
		g.tells = rand.New(rand.NewPCG(seed, 4))
	}
	g.records = 1 + g.IntN(oracle.Records)
	g.strange, g.stormy, g.implicit = g.IntN(3) == 0, g.IntN(3) == 0, g.IntN(4) == 0
	if g.stormy || g.paired {
		g.records = 1 + g.IntN(2)
	}
	c.Stormy, c.Large = g.stormy, g.IntN(8) == 0
	g.most = maxCost
	if c.Crowded = g.IntN(5) == 0; c.Crowded {
		g.most = smallCost
	}
	for range 6 {
		if g.write(3 + g.IntN(4)); g.isWorthwhile() {
			break
		}
	}
	for _, a := range g.actions {
		c.Actions = append(c.Actions, a)
	}
	slices.SortFunc(c.Actions, func(a, b *Action) int { return strings.Compare(a.Name, b.Name) })
	entries := g.entries()
	for range 5 + g.IntN(9) {
		c.Rounds = append(c.Rounds, g.round(c, entries))
	}
	if c.Equal {
		g.equalize(c, rand.New(rand.NewPCG(seed, 5)))
	}
	return c
}

// equalize often has rounds in which a function that only reads is invoked several times at once, while others write: such executions are
// equal.
func (g *generator) equalize(c *Case, chance *rand.Rand) {
	readers := slices.DeleteFunc(slices.Clone(c.Actions), func(a *Action) bool { return !a.onlyReads() })
	if len(readers) == 0 || chance.IntN(2) == 0 {
		return
	}
	c.Crowded, c.Stormy = true, true
	for _, a := range readers {
		a.Cached = true
		for i := range a.Versions {
			a.Versions[i].Range = 6
		}
	}
	for i := range c.Rounds {
		in := Invocation{Action: readers[chance.IntN(len(readers))].Name, Input: 1, Mode: c.Rounds[i].Invocations[0].Mode, Depth: speculate.DefaultDepth}
		r := Round{Invocations: slices.Repeat([]Invocation{in}, 2+chance.IntN(2))}
		for range 1 + chance.IntN(3) {
			r.Others = append(r.Others, Other{Command: oracle.Command{Verb: oracle.Incr, A: chance.IntN(g.records)}})
		}
		c.Rounds[i] = r
	}
}

// onlyReads tells whether an action is a function that reads records, and does nothing else.
func (a *Action) onlyReads() bool {
	for _, code := range a.Versions {
		if code.Program != nil || code.Counts || len(code.Script) == 0 || slices.ContainsFunc(code.Script, func(in oracle.Instruction) bool {
			return in.Step != oracle.Do || in.Command.Verb != oracle.Get && in.Command.Verb != oracle.MGet
		}) {
			return false
		}
	}
	return true
}

// write writes n actions.
func (g *generator) write(n int) {
	g.costs, g.pure = make([]int, n), nil
	g.counters(n)
	for i := n - 1; i >= 0; i-- {
		a := g.action(i, n)
		g.add(a)
		if a.Pure {
			g.pure = append(g.pure, i)
		}
	}
}

// isWorthwhile tells whether enough happens in one of the actions, and not too much.
func (g *generator) isWorthwhile() bool {
	return slices.ContainsFunc(g.costs, func(cost int) bool { return cost > g.most/3 && cost <= g.most })
}

// isOneLine tells whether no action does two things at once, and none writes what it does not name.
func (c *Case) isOneLine() bool {
	for _, a := range c.Actions {
		for _, code := range a.Versions {
			if slices.ContainsFunc(code.Script, func(in oracle.Instruction) bool {
				return in.Step == oracle.Both || in.Step == oracle.Send || in.Step == oracle.Post || in.Command.Verb == oracle.Wipe
			}) {
				return false
			}
			switch p := code.Program.(type) {
			case *Program:
				if slices.ContainsFunc(p.Lines, func(l Line) bool { return l.What == Fork || l.What == Map || l.What == Detach }) {
					return false
				}
			case *Composition:
				if p.Root.forks() {
					return false
				}
			}
		}
	}
	return true
}

// entries picks the actions that clients invoke: those in which most happens.
func (g *generator) entries() []int {
	var entries []int
	for i, cost := range g.costs {
		if g.strange {
			cost += cost / 3
		}
		if cost <= g.most && cost > 0 {
			entries = append(entries, i)
		}
	}
	slices.SortStableFunc(entries, func(i, j int) int { return g.costs[j] - g.costs[i] })
	if len(entries) == 0 {
		entries = []int{len(g.costs) - 1}
	}
	return entries[:min(len(entries), 1+g.IntN(2))]
}

type generator struct {
	*rand.Rand
	records  int
	stormy   bool // others write often
	implicit bool // functions read, and call others
	strange  bool // crashes, clients that give up, new code
	paired   bool // functions call two others at once
	detaches bool // programs begin what nobody waits for
	most     int  // what an invocation may cost
	costs    []int
	actions  map[string]*Action
	pure     []int      // of the actions, those said to be pure
	counted  int        // the cost of a turn of a loop that counts
	tells    *rand.Rand // which calls are told their callees' ids; nil: none
}

func (g *generator) add(a *Action) { g.actions[a.Name] = a }

// counters makes the two functions by which loops count.
func (g *generator) counters(n int) {
	g.actions = make(map[string]*Action)
	for _, name := range []string{"less", "more"} {
		code := oracle.Code{Counts: true, Truth: name == "more", Range: 1}
		if g.IntN(3) == 0 {
			code.Script = g.script(n-1, n, false, &g.counted)[:1]
		}
		g.add(&Action{Name: name, Action: oracle.Action{Versions: []oracle.Code{code}, Cached: g.IntN(2) == 0}})
	}
}

func name(i int) string { return "f" + strconv.Itoa(i) }

// later picks an action behind one, and adds its cost.
func (g *generator) later(i, n int, cost *int) string {
	if g.strange && g.IntN(40) == 0 {
		return "nobody"
	}
	j := i + 1 + g.IntN(n-i-1)
	*cost += max(1, g.costs[j])
	return name(j)
}

func (g *generator) action(i, n int) *Action {
	a := &Action{Name: name(i)}
	versions := 1
	if g.strange && g.IntN(3) == 0 {
		versions = 2
	}
	composed := i < n-1 && g.IntN(10) < 6
	if g.implicit {
		composed = i == 0 || i < n-1 && g.IntN(5) == 0
	}
	truth, width := g.IntN(3) == 0, []int{1, 1, 2, 6}[g.IntN(4)]
	pure := !composed && g.IntN(6) == 0
	for range versions {
		code, cost := oracle.Code{Truth: truth, Range: width}, 0
		if composed {
			if g.IntN(2) == 0 {
				code.Program = g.document(i, n, &cost)
			} else {
				code.Program = g.program(i, n, &cost)
			}
		}
		if pure { // nothing else makes new code of it differ
			code.Range = 1 + g.IntN(4)
		}
		if !composed || g.IntN(4) == 0 {
			code.Script = g.script(i, n, pure, &cost)
		}
		a.Versions = append(a.Versions, code)
		g.costs[i] = max(g.costs[i], cost)
	}
	a.Pure, a.Cached, a.Alone = pure, g.IntN(2) == 0, g.IntN(12) == 0
	return a
}

func (g *generator) script(i, n int, pure bool, cost *int) []oracle.Instruction {
	var script []oracle.Instruction
	reader := g.IntN(3) == 0 // and no more than that
	for range 1 + g.IntN(4) {
		switch k := g.IntN(20); {
		case pure && k < 14 && len(g.pure) > 0:
			j := g.pure[g.IntN(len(g.pure))]
			*cost += max(1, g.costs[j])
			script = append(script, oracle.Instruction{Step: oracle.Call, Action: name(j), Own: k < 7})
		case pure || k == 0:
			script = append(script, oracle.Instruction{Step: oracle.SkipIf})
		case g.implicit && k > 11 && i < n-1:
			in := g.call(i, n, cost)
			in.Own = true
			script = append(script, in)
		case (reader || g.implicit) && k < 14:
			*cost++
			script = append(script, oracle.Instruction{Command: oracle.Command{Verb: oracle.Get, A: g.IntN(g.records)}})
		case k == 1:
			script = append(script, oracle.Instruction{Step: oracle.FailIf, Command: oracle.Command{A: g.IntN(4)}})
		case k < 7 && i < n-1:
			if g.IntN(3) == 0 {
				*cost++
				script = append(script, oracle.Instruction{Command: oracle.Command{Verb: oracle.Get, A: g.IntN(g.records)}})
			}
			script = append(script, g.call(i, n, cost))
		case k == 7 && g.IntN(3) == 0:
			*cost += 3
			script = append(script, oracle.Instruction{Step: oracle.Post, Command: g.command(g.strange)})
		default:
			*cost++
			script = append(script, oracle.Instruction{Command: g.command(g.strange || g.IntN(3) == 0)})
		}
	}
	return script
}

func (g *generator) call(i, n int, cost *int) oracle.Instruction {
	before := *cost
	in := oracle.Instruction{Step: oracle.Call, Action: g.later(i, n, cost), Own: g.IntN(4) > 0}
	in.Told = g.tells != nil && g.tells.IntN(3) == 0
	k := g.IntN(8)
	if g.paired && k > 2 {
		k, in.Own = 0, true
	}
	switch k {
	case 0:
		in.Step, in.Other = oracle.Both, g.later(i, n, cost)
		*cost += *cost - before // what runs side by side is harder to explain
	case 1:
		in.Step = oracle.Send
		*cost += 2 * (*cost - before)
	}
	return in
}

// command is one of a function; a bold one may be one that cannot be buffered.
func (g *generator) command(bold bool) oracle.Command {
	c := oracle.Command{A: g.IntN(g.records), B: g.IntN(g.records)}
	common := []oracle.Verb{oracle.Get, oracle.Get, oracle.Get, oracle.Set, oracle.Incr, oracle.Incr, oracle.Push, oracle.Pop, oracle.Del, oracle.MGet, oracle.MSet, oracle.SetNX, oracle.Copy, oracle.Look}
	rare := []oracle.Verb{oracle.Effect, oracle.Effect, oracle.Sum, oracle.Wipe, oracle.Clock}
	if bold && g.IntN(5) == 0 {
		c.Verb = rare[g.IntN(len(rare))]
		return c
	}
	if g.paired { // records come and go
		common = append(common, oracle.Incr, oracle.Del, oracle.Del, oracle.Del, oracle.Pop)
	}
	c.Verb = common[g.IntN(len(common))]
	return c
}

func (g *generator) program(i, n int, cost *int) *Program {
	p := &Program{}
	g.block(p, i, n, 0, cost)
	return p.compile()
}

func (p *Program) add(l Line) int {
	p.Lines = append(p.Lines, l)
	return len(p.Lines) - 1
}

// block writes a few lines.
func (g *generator) block(p *Program, i, n, depth int, cost *int) {
	for range 1 + g.IntN(3-min(depth, 2)) {
		k := g.IntN(16)
		if depth >= 2 {
			k = g.IntN(6)
		}
		switch {
		case k == 13 || g.detaches && k > 6:
			g.detach(p, i, n, depth, cost)
		case k < 5:
			p.add(Line{What: Run, Action: g.later(i, n, cost)})
		case k == 5 && g.IntN(2) == 0:
			*cost++
			p.add(Line{What: Own})
		case k == 5:
			p.add(Line{What: Bring, Action: g.later(i, n, cost)})
		case k < 9:
			g.choice(p, i, n, depth, cost)
		case k < 11:
			g.loop(p, i, n, depth, cost)
		case k < 13:
			g.fork(p, i, n, depth, cost)
		default:
			g.try(p, i, n, depth, cost)
		}
	}
}

func (g *generator) choice(p *Program, i, n, depth int, cost *int) {
	test := p.add(Line{What: Test, Action: g.later(i, n, cost)})
	g.block(p, i, n, depth+1, cost)
	jump := p.add(Line{What: Jump})
	p.Lines[test].To = len(p.Lines)
	if g.IntN(2) == 0 {
		g.block(p, i, n, depth+1, cost)
	}
	p.Lines[jump].To = len(p.Lines)
}

func (g *generator) loop(p *Program, i, n, depth int, cost *int) {
	times, once := 1+g.IntN(2), 0
	test := p.add(Line{What: Test, Action: g.later(i, n, &once)})
	g.block(p, i, n, depth+1, &once)
	p.add(Line{What: Loop, To: test, Times: times})
	p.Lines[test].To = len(p.Lines)
	*cost += once * (times + 1)
}

func (g *generator) fork(p *Program, i, n, depth int, cost *int) {
	fork, branches := p.add(Line{What: Fork}), 2
	if g.IntN(3) == 0 {
		p.Lines[fork].What, branches = Map, 1
	}
	for range branches {
		p.Lines[fork].Starts = append(p.Lines[fork].Starts, len(p.Lines))
		before := *cost
		g.block(p, i, n, depth+1, cost)
		*cost += *cost - before // what runs side by side is harder to explain
		p.add(Line{What: Stop})
	}
	p.Lines[fork].To = len(p.Lines)
}

func (g *generator) detach(p *Program, i, n, depth int, cost *int) {
	detach := p.add(Line{What: Detach})
	jump := p.add(Line{What: Jump})
	p.Lines[detach].Starts = []int{len(p.Lines)}
	g.block(p, i, n, depth+1, cost)
	p.add(Line{What: Stop})
	p.Lines[jump].To = len(p.Lines)
}

func (g *generator) try(p *Program, i, n, depth int, cost *int) {
	try := p.add(Line{What: Try})
	g.block(p, i, n, depth+1, cost)
	p.add(Line{What: Done})
	jump := p.add(Line{What: Jump})
	p.Lines[try].To = len(p.Lines)
	g.block(p, i, n, depth+1, cost)
	p.Lines[jump].To = len(p.Lines)
}

func (g *generator) round(c *Case, entries []int) Round {
	var r Round
	cost := 0
	if g.strange {
		cost = 4
	}
	invocations := 1 + g.IntN(5)/3
	if c.Crowded {
		invocations = 3 + g.IntN(2)
	}
	for range invocations {
		i := entries[g.IntN(len(entries))]
		if cost += g.costs[i]; cost > maxCost*2/3 && len(r.Invocations) > 0 {
			break
		}
		in := Invocation{Action: name(i), Input: g.IntN(4) / 3, Mode: speculate.All, Depth: speculate.DefaultDepth}
		switch g.IntN(10) {
		case 0:
			in.Mode = speculate.Off
		case 1, 2:
			in.Mode = speculate.Branches
		case 3:
			in.Depth = g.IntN(3)
		}
		r.Invocations = append(r.Invocations, in)
	}
	others := 4
	if g.stormy {
		others = 9
	}
	for range g.IntN(others) {
		r.Others = append(r.Others, g.other(c, len(r.Invocations)))
	}
	return r
}

func (g *generator) other(c *Case, invocations int) Other {
	k := g.IntN(20)
	if !g.strange && k > 1 {
		k = 10
	}
	switch k {
	case 0:
		return Other{What: Tick}
	case 1:
		return Other{What: Load, Number: g.IntN(4), Full: g.IntN(2) == 0}
	case 2, 3:
		return Other{What: Kill}
	case 4:
		return Other{What: Die}
	case 5:
		return Other{What: GiveUp, Number: g.IntN(invocations)}
	case 9, 11:
		return Other{What: Withdraw}
	case 6, 7, 8:
		var several []string
		for _, a := range c.Actions {
			if len(a.Versions) > 1 {
				several = append(several, a.Name)
			}
		}
		if len(several) > 0 {
			return Other{What: Change, Action: several[g.IntN(len(several))]}
		}
	}
	return Other{Command: g.command(false)}
}
