package flow

import (
	"encoding/json"
	"iter"
	"maps"
)

// frame is what opTry, opLet and opMask push and opExit pops; a fork pushes one of kind opStop, where its branch ends. Frames are immutable, so that a cursor stays what it was:
// setting a variable makes new ones.
type frame struct {
	kind  op
	catch int // of opTry
	vars  *vars
	below *frame
}

// vars are the variables of a let.
type vars struct{ values members }

// get returns the visible variable of that name, or nil if there is none.
func (f *frame) get(name string) json.RawMessage {
	if let := f.visible(name); let != nil {
		return let.vars.values[name]
	}
	return nil
}

// lets goes through the visible lets, the innermost first. Each mask on the way hides one let below it.
func (f *frame) lets() iter.Seq[*frame] {
	return func(yield func(*frame) bool) {
		hidden := 0
		for ; f != nil; f = f.below {
			switch {
			case f.kind == opMask:
				hidden++
			case f.kind == opLet && hidden > 0:
				hidden--
			case f.kind == opLet && !yield(f):
				return
			}
		}
	}
}

// variables are all visible variables.
func (f *frame) variables() members {
	all := make(members)
	for let := range f.lets() {
		for name, v := range let.vars.values {
			if all[name] == nil {
				all[name] = v
			}
		}
	}
	return all
}

// visible finds the innermost let with a variable of that name.
func (f *frame) visible(name string) *frame {
	for let := range f.lets() {
		if let.vars.values[name] != nil {
			return let
		}
	}
	return nil
}

// set returns the frames with the visible variables of those names changed.
func (f *frame) set(values members) *frame {
	changes := make(map[*frame]members) // by the let that has the variables
	for name, v := range values {
		let := f.visible(name)
		switch {
		case let == nil:
		case changes[let] == nil:
			changes[let] = members{name: v}
		default:
			changes[let][name] = v
		}
	}
	return f.replace(changes)
}

// replace returns the frames with changes in lets, all of which are among them.
func (f *frame) replace(changes map[*frame]members) *frame {
	if len(changes) == 0 {
		return f
	}
	changed := *f
	if values := changes[f]; values != nil {
		delete(changes, f)
		all := make(members, len(f.vars.values))
		maps.Copy(all, f.vars.values)
		maps.Copy(all, values)
		changed.vars = &vars{all}
	}
	changed.below = f.below.replace(changes)
	return &changed
}

// outside are the frames around the branch, at whose end an error is not caught; nil outside of all branches.
func (f *frame) outside() *frame {
	for f != nil && f.kind != opStop {
		f = f.below
	}
	return f
}
