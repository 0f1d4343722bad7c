package flow

import "encoding/json"

// builtin is one of the functions that composer's own lowering writes into a composition. Each is named for the
// JavaScript that it stands for; `undefined` as a result leaves the value as it is.
type builtin byte

const (
	saveParams       builtin = iota // args => { params = args }
	loadParams                      // () => params
	packParamsResult                // result => ({ params, result })
	packResult                      // result => ({ result })
	unpackResult                    // ({ params, result }) => ({ params, result: result.result })
	packParams                      // params => ({ params })
	pickParams                      // ({ params }) => params
	pickResult                      // ({ result }) => result
	countDown                       // () => count-- > 0
	failedAndCount                  // ({ result }) => result.error !== undefined && count-- > 0
	assignResult                    // ({ params, result }) => Object.assign(params, result)
)

// apply runs a builtin on the value and the variables.
func (w *walk) apply(r *row) {
	in := membersOf(w.value)
	switch r.builtin {
	case saveParams:
		w.stack = w.stack.set(members{"params": w.value})
	case loadParams:
		w.value = w.stack.get("params")
	case packParamsResult:
		w.value = members{"params": w.stack.get("params"), "result": w.value}.object()
	case packResult:
		w.value = object("result", w.value)
	case packParams:
		w.value = object("params", w.value)
	case pickParams:
		w.pick(in["params"])
	case pickResult:
		w.pick(in["result"])
	case unpackResult:
		w.unpackResult(in)
	case countDown:
		w.value = w.countDown()
	case failedAndCount:
		w.value = json.RawMessage("false")
		if memberOf(in["result"], "error") != nil {
			w.value = w.countDown()
		}
	case assignResult:
		w.value = in.assigned()
	}
	w.check()
}

// pick makes v the value; undefined leaves it.
func (w *walk) pick(v json.RawMessage) {
	if v != nil {
		w.value = v
	}
}

// unpackResult takes the wrapping off that retain_catch put around what its body gave.
func (w *walk) unpackResult(in members) {
	out := members{"params": in["params"]}
	if inner := memberOf(in["result"], "result"); inner != nil {
		out["result"] = inner
	}
	w.value = out.object()
}

// countDown tells whether count was over 0, and makes it one less.
func (w *walk) countDown() json.RawMessage {
	count := number(w.stack.get("count"))
	less, _ := json.Marshal(count - 1) // a JSON number is finite, and so is one less
	w.stack = w.stack.set(members{"count": less})
	more, _ := json.Marshal(count > 0)
	return more
}

// assigned lays the members of the result over those of the parameters.
func (m members) assigned() json.RawMessage {
	merged := membersOf(m["params"])
	for name, v := range membersOf(m["result"]) {
		merged[name] = v
	}
	return merged.object()
}
