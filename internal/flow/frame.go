package flow

import (
	"encoding/json"
	"iter"
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

// set returns the frames with the visible variable of that name changed.
func (f *frame) set(name string, value json.RawMessage) *frame {
	return f.replace(f.visible(name), name, value)
}

func (f *frame) replace(let *frame, name string, value json.RawMessage) *frame {
	if let == nil || f == nil {
		return f
	}
	changed := *f
	if f != let {
		changed.below = f.below.replace(let, name, value)
		return &changed
	}
	values := members{name: value}
	for other, v := range f.vars.values {
		if other != name {
			values[other] = v
		}
	}
	changed.vars = &vars{values}
	return &changed
}

// outside are the frames around the branch, at whose end an error is not caught; nil outside of all branches.
func (f *frame) outside() *frame {
	for f != nil && f.kind != opStop {
		f = f.below
	}
	return f
}
