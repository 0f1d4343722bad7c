package simulation

import (
	"slices"
	"time"

	"forerun.dev/forerun/internal/speculate/oracle"
)

// tries is in how many orders a smaller case is played before it is held for good.
const tries = 40

// longest is for how long a smaller case is looked for, about.
const longest = 20 * time.Second

// Shrink looks for a smaller case with a problem.
func (c *Case) Shrink() *Case {
	for until := time.Now().Add(longest); time.Now().Before(until); {
		smaller := c.smaller()
		if smaller == nil {
			break
		}
		c = smaller
	}
	return c
}

// smaller returns a case with one thing less that still has a problem, or nil.
func (c *Case) smaller() *Case {
	for i := 0; ; i++ {
		d, ok := c.without(i)
		if !ok {
			return nil
		}
		if d == nil {
			continue
		}
		for range tries {
			if d.Play(nil, false).Problem != nil {
				return d
			}
			d.Order++
		}
	}
}

// parts is how many things can be left out of a case.
func (c *Case) parts() (n int) {
	for i := 0; ; i++ {
		d, ok := c.without(i)
		switch {
		case !ok:
			return n
		case d != nil:
			n++
		}
	}
}

// clone copies what without changes.
func (c *Case) clone() *Case {
	d := &Case{Order: c.Order, Stormy: c.Stormy, Large: c.Large, Crowded: c.Crowded, Paired: c.Paired, Poor: c.Poor, Rounds: slices.Clone(c.Rounds)}
	for i := range d.Rounds {
		d.Rounds[i].Invocations = slices.Clone(d.Rounds[i].Invocations)
		d.Rounds[i].Others = slices.Clone(d.Rounds[i].Others)
	}
	for _, a := range c.Actions {
		b := *a
		b.Versions = slices.Clone(a.Versions)
		for i := range b.Versions {
			code := &b.Versions[i]
			code.Script = slices.Clone(code.Script)
			switch p := code.Program.(type) {
			case *Program:
				code.Program = (&Program{Lines: slices.Clone(p.Lines)}).compile()
			case *Composition:
				code.Program = &Composition{Program: p.Program, Root: p.Root.clone()}
			}
		}
		d.Actions = append(d.Actions, &b)
	}
	return d
}

// without returns the case without its i-th part; nil: that part cannot be left out; ok is false if there are not so many.
func (c *Case) without(i int) (d *Case, ok bool) {
	d = c.clone()
	if i < len(d.Rounds) {
		d.Rounds = slices.Delete(d.Rounds, i, i+1)
		return d, true
	}
	i -= len(d.Rounds)
	for n := range d.Rounds {
		r := &d.Rounds[n]
		if i < len(r.Invocations) {
			r.Invocations = slices.Delete(r.Invocations, i, i+1)
			if len(r.Invocations) == 0 {
				return nil, true
			}
			r.Others = slices.DeleteFunc(r.Others, func(o Other) bool { return o.What == GiveUp && o.Number >= len(r.Invocations) })
			return d, true
		}
		i -= len(r.Invocations)
		if i < len(r.Others) {
			r.Others = slices.Delete(r.Others, i, i+1)
			return d, true
		}
		i -= len(r.Others)
	}
	for _, a := range d.Actions {
		for n := range a.Versions {
			if without(&a.Versions[n], &i) {
				return d, true
			}
		}
		if a.without(&i) {
			return d, true
		}
	}
	return nil, false
}

// without leaves out the i-th instruction or line, or counts i down.
func without(code *oracle.Code, i *int) bool {
	if *i < len(code.Script) {
		code.Script = slices.Delete(code.Script, *i, *i+1)
		return true
	}
	*i -= len(code.Script)
	if c, ok := code.Program.(*Composition); ok {
		if c.Root.without(i) {
			code.Program = compose(c.Root)
			return true
		}
		return false
	}
	p, ok := code.Program.(*Program)
	if !ok {
		return false
	}
	for n, l := range p.Lines {
		if l.What == Stop || l.What == Jump && l.To == n+1 {
			continue
		}
		if *i == 0 {
			to := n + 1
			if l.What == Fork || l.What == Map {
				to = l.To
			}
			p.Lines[n] = Line{What: Jump, To: to}
			p.compile()
			return true
		}
		*i--
	}
	return false
}

// without leaves out the i-th annotation, or counts i down.
func (a *Action) without(i *int) bool {
	for _, trait := range []*bool{&a.Pure, &a.Cached, &a.Alone} {
		if !*trait {
			continue
		}
		if *i == 0 {
			*trait = false
			return true
		}
		*i--
	}
	return false
}
