package speculate

import (
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// describe writes an action for people.
func describe(a Action) string {
	switch a := a.(type) {
	case Resolve:
		return fmt.Sprintf("resolve %d: %s(%s)%s", a.Slot, a.Action, a.Input, place(a.Parent, a.Caller, a.Op))
	case Launch:
		how := fmt.Sprintf("launch %d: %s(%s)%s", a.Slot, a.Action, a.Input, place(a.Parent, a.Caller, a.Op))
		if a.Speculative {
			how += ", speculative: " + a.Why.String()
		} else if a.Why != nil {
			how += ", in its turn: " + a.Why.String()
		}
		if a.Cached != nil {
			how += fmt.Sprintf(", %s: %v", a.Cached.Outcome, a.Cached.Why)
		}
		return how
	case Check:
		return fmt.Sprintf("check %d: %s", a.Slot, strings.TrimPrefix(keyNames(a.Row.Keys())+codeBelow(a.Row.Below), ", "))
	case Await:
		text := fmt.Sprintf("slot %d may wait for another one", a.Slot)
		if a.Before > 0 {
			text += fmt.Sprintf(", if it is before %d", a.Before)
		}
		if a.First {
			text += ", or others for it"
		}
		return text
	case Yield:
		return fmt.Sprintf("others do not wait for slot %d any more", a.Slot)
	case Skip:
		return fmt.Sprintf("skip %d: %s, %s", a.Slot, a.Result.Value, a.Why)
	case Attach:
		return fmt.Sprintf("attach %d to operation %d of %d", a.Slot, a.Op, a.Caller)
	case Fetch:
		return fmt.Sprintf("fetch for %d, operation %d: %s", a.Slot, a.Op, keyNames(a.Keys))
	case Reply:
		return fmt.Sprintf("reply to %d, operation %d: %s", a.Slot, a.Op, replied(a))
	case Stall:
		return fmt.Sprintf("stall %d, operation %d: %s", a.Slot, a.Op, a.Why)
	case Promote:
		past := ""
		if len(a.Past) > 0 {
			past = fmt.Sprintf(" past %d", a.Past)
		}
		return fmt.Sprintf("promote %d%s: expect%s, apply %s", a.Slots, past, seenNames(a.Expect), a.Commands)
	case Commit:
		return fmt.Sprintf("commit %d: %s %s", a.Slot, a.Result.Status, a.Result.Value)
	case Learn:
		return fmt.Sprintf("learn from %d%s", a.Slot, taught(a.Lesson))
	case Blame:
		if a.Others {
			return fmt.Sprintf("blame others for %s", a.Key.Name)
		}
		return fmt.Sprintf("blame the producer of %s", a.Key.Name)
	case Squash:
		return fmt.Sprintf("squash %d: %s", a.Slot, a.Cause)
	case Rehearsed:
		if a.Disturbed {
			return fmt.Sprintf("rehearsed: disturbed, %v", a.Why)
		}
		if a.Row == nil {
			return fmt.Sprintf("rehearsed: nothing, %v", a.Why)
		}
		return "rehearsed" + taught(&Lesson{Row: a.Row})
	case Finish:
		return fmt.Sprintf("finish: %s %s", a.Result.Status, a.Result.Value)
	}
	return fmt.Sprintf("%T %+v", a, a)
}

func place(parent, caller SlotID, op OpID) (where string) {
	if parent != None {
		where += fmt.Sprintf(" in the program of %d", parent)
	}
	switch {
	case caller != None && op != 0:
		where += fmt.Sprintf(" called by %d as its operation %d", caller, op)
	case caller != None:
		where += fmt.Sprintf(" expected of %d", caller)
	}
	return where
}

func replied(a Reply) string {
	switch {
	case a.Direct:
		return "from the store"
	case a.Data != nil:
		return fmt.Sprint(a.Data)
	}
	return fmt.Sprintf("%s %s", a.Result.Status, a.Result.Value)
}

func taught(l *Lesson) (text string) {
	if l == nil {
		return ""
	}
	if r := l.Row; r != nil {
		text += ": row"
		if r.Exact {
			text += " exact"
		}
		if r.Effects {
			text += " with effects"
		}
		if r.Hosts {
			text += " with reads of the outside"
		}
		text += seenNames(r.Reads)
		if !r.Until.IsZero() {
			text += fmt.Sprintf(", until %d s", r.Until.Unix())
		}
		for _, c := range r.Callees {
			text += fmt.Sprintf(", calls %s(%s)", c.Action, c.Input)
			if c.Told {
				text += " and may be told its id"
			}
		}
	}
	if o := l.Outcome; o != nil {
		text += fmt.Sprintf(", branch at %d goes to %d with %s", o.Branch.Place, o.Next, o.Value)
	}
	return text
}

// codeBelow names the actions whose code a row rests on.
func codeBelow(callees []forerun.Callee) (text string) {
	for i, c := range callees {
		if i == 0 {
			text = ", the code of"
		}
		text += " " + c.Action
	}
	return text
}

func keyNames(keys []forerun.Key) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return strings.Join(names, " ")
}

func seenNames(reads []forerun.Seen) (text string) {
	for _, s := range reads {
		text += fmt.Sprintf(" %s@%d", s.Key.Name, s.Version)
	}
	if text == "" {
		return " nothing"
	}
	return text
}

func (l Later) String() string { return l.Why.String() }
