package flow

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// fork stops where branches begin. Each sees the variables around, on frames of its own: what it sets is seen by itself.
func (w *walk) fork(r *row, at int) forerun.Stop {
	stop := forerun.Stop{Cursor: cursor{at, w.stack}, Join: true}
	marked := &frame{kind: opStop, below: w.stack} // an error ends the branch, not what is around it
	begin := func(row int, value json.RawMessage) {
		branch := walk{program: w.program, at: row, value: value, stack: marked}
		stop.Fork = append(stop.Fork, branch.run())
	}
	if r.op == opParallel {
		for _, row := range r.forks {
			begin(row, w.value)
		}
		return stop
	}
	var elements []json.RawMessage
	_ = json.Unmarshal(memberOf(w.value, "value"), &elements) // composer takes what is no array for an empty one
	for _, element := range elements {
		if !isObject(element) {
			element = object("value", element)
		}
		begin(at+1, element)
	}
	return stop
}

// Join makes the branches' values the elements of one: {"value": [...]}. An error of a branch is the value of that branch.
func (p *Program) Join(at forerun.Cursor, branches []forerun.Result) forerun.Stop {
	values := make([]json.RawMessage, len(branches))
	for i, b := range branches {
		values[i] = b.Value
	}
	list, err := json.Marshal(values)
	c := at.(cursor)
	w := walk{program: p, at: p.rows[c.at].to, value: object("value", list), stack: c.stack}
	if err != nil {
		w.fail("The branches' values are not JSON: " + err.Error())
	}
	return w.run()
}
