package simulation

import (
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// saidEvent writes an event for people.
type saidEvent struct{ speculate.Event }

func (s saidEvent) String() string {
	switch e := s.Event.(type) {
	case speculate.Resolved:
		return fmt.Sprintf("slot %d is a function", e.Slot)
	case speculate.Entered:
		return fmt.Sprintf("slot %d is a program", e.Slot)
	case speculate.Output:
		return fmt.Sprintf("slot %d returned %s", e.Slot, e.Result.Value)
	case speculate.Failed:
		return fmt.Sprintf("slot %d failed: %s", e.Slot, e.Result.Value)
	case speculate.Read:
		return fmt.Sprintf("slot %d asks (%d) %v", e.Slot, e.Op, e.Command)
	case speculate.Write:
		return fmt.Sprintf("slot %d asks (%d) %v", e.Slot, e.Op, e.Command)
	case speculate.Hold:
		return fmt.Sprintf("slot %d asks (%d) for what cannot be undone", e.Slot, e.Op)
	case speculate.Call:
		return fmt.Sprintf("slot %d calls (%d) %s on %s", e.Slot, e.Op, e.Action, e.Input)
	}
	return fmt.Sprintf("%s %+v", kindOf(s.Event), s.Event)
}

// saidAction writes an action for people.
type saidAction struct{ speculate.Action }

func (s saidAction) String() string {
	switch a := s.Action.(type) {
	case speculate.Resolve:
		return fmt.Sprintf("slot %d: resolve %s on %s (in %d, called by %d)", a.Slot, a.Action, a.Input, a.Parent, a.Caller)
	case speculate.Launch:
		if a.Speculative {
			return fmt.Sprintf("slot %d: launch %s ahead: %s", a.Slot, a.Action, a.Why)
		}
		return fmt.Sprintf("slot %d: launch %s", a.Slot, a.Action)
	case speculate.Reply:
		switch {
		case a.Direct:
			return fmt.Sprintf("slot %d: do (%d) in the store", a.Slot, a.Op)
		case a.Data != nil:
			return fmt.Sprintf("slot %d: reply (%d) %v", a.Slot, a.Op, a.Data)
		}
		return fmt.Sprintf("slot %d: the call (%d) gave %s", a.Slot, a.Op, a.Result.Value)
	case speculate.Squash:
		return fmt.Sprintf("slot %d: squash: %s", a.Slot, a.Cause)
	case speculate.Check:
		return fmt.Sprintf("slot %d: check %v, the code of %d actions", a.Slot, a.Row.Keys(), len(a.Row.Below))
	case speculate.Skip:
		return fmt.Sprintf("slot %d: skip, with %s: %v", a.Slot, a.Result.Value, a.Why)
	case speculate.Commit:
		return fmt.Sprintf("slot %d: commit %s", a.Slot, a.Result.Value)
	case speculate.Finish:
		return fmt.Sprintf("finish: %s", a.Result.Value)
	case speculate.Learn:
		if a.Lesson != nil && a.Lesson.Row != nil {
			return fmt.Sprintf("slot %d: learn %+v", a.Slot, *a.Lesson.Row)
		}
		return fmt.Sprintf("slot %d: learn", a.Slot)
	}
	return fmt.Sprintf("%T %+v", s.Action, s.Action)
}

// String tells what is in a case.
func (c *Case) String() string {
	var b strings.Builder
	for _, a := range c.Actions {
		fmt.Fprintf(&b, "%s", a.Name)
		for _, trait := range []struct {
			is   bool
			name string
		}{{a.Pure, "pure"}, {a.Cached, "cached"}, {a.Alone, "alone"}} {
			if trait.is {
				fmt.Fprintf(&b, ", %s", trait.name)
			}
		}
		for _, code := range a.Versions {
			sayCode(&b, code)
		}
	}
	if c.Large {
		b.WriteString("records are large\n")
	}
	if c.Crowded {
		b.WriteString("invocations come one soon after the other\n")
	}
	if c.Equal {
		b.WriteString("equal executions wait for each other\n")
	}
	if c.Poor {
		b.WriteString("the store has no room now and then\n")
	}
	for i, r := range c.Rounds {
		fmt.Fprintf(&b, "round %d:", i+1)
		for _, in := range r.Invocations {
			fmt.Fprintf(&b, " %s(%d) %v depth %d;", in.Action, in.Input, in.Mode, in.Depth)
		}
		for _, o := range r.Others {
			fmt.Fprintf(&b, " %v;", o)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func sayCode(b *strings.Builder, code oracle.Code) {
	if code.Truth {
		b.WriteString(", true or false")
	}
	b.WriteString(":\n")
	for _, in := range code.Script {
		fmt.Fprintf(b, "    %v\n", in)
	}
	if c, ok := code.Program.(*Composition); ok {
		fmt.Fprintf(b, "    %s\n", c.Root.document())
	}
	p, ok := code.Program.(*Program)
	if !ok {
		return
	}
	for i, l := range p.Lines {
		if l.What != Jump || l.To != i+1 {
			fmt.Fprintf(b, "    line %d: %v\n", i, l)
		}
	}
}

func (o Other) String() string {
	switch o.What {
	case Touch:
		return o.Command.String()
	case Change:
		return "new code for " + o.Action
	case Tick:
		return "tick"
	case Load:
		if o.Full {
			return fmt.Sprintf("depth %d, no more room for columns", o.Number)
		}
		return fmt.Sprintf("depth %d", o.Number)
	case Kill:
		return "a handler crashes"
	case Die:
		return "the worker dies"
	case Withdraw:
		return "a handler gives up a command"
	}
	return fmt.Sprintf("invocation %d is given up", o.Number)
}
