package flow

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// oracleCase is one line of testdata/oracle/cases.jsonl: what the conductor of npm openwhisk-composer did with a random
// composition. generate.js beside it makes them.
type oracleCase struct {
	AST    json.RawMessage
	Input  json.RawMessage
	Calls  []oracleCall
	Result json.RawMessage
}

type oracleCall struct {
	Name   string
	Params json.RawMessage
}

// TestOracle walks each composition as the conductor did: the same actions on the same inputs, and the same result.
func TestOracle(t *testing.T) {
	data, err := os.ReadFile("testdata/oracle/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var c oracleCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(n+1), func(t *testing.T) { c.check(t) })
	}
	if n < 300 {
		t.Errorf("only %d cases", n)
	}
}

func (c *oracleCase) check(t *testing.T) {
	p, err := compileComposition(c.AST)
	if err != nil {
		t.Fatal(err)
	}
	stop := p.Start(c.Input)
	for i, call := range c.Calls {
		if stop.End {
			t.Fatalf("ended with %s before call %d, %s(%s)\n%s", stop.Result.Value, i+1, call.Name, call.Params, c.AST)
		}
		if stop.Action != call.Name || !equal(stop.Input, call.Params) {
			t.Fatalf("call %d is %s(%s); the conductor made %s(%s)\n%s", i+1, stop.Action, stop.Input, call.Name, call.Params, c.AST)
		}
		stop = p.Resume(stop.Cursor, answer(i+1, stop.Action, stop.Input))
	}
	if !stop.End || !equal(stop.Result.Value, c.Result) {
		t.Errorf("ended with %s, next %s; the conductor with %s\n%s", stop.Result.Value, stop.Action, c.Result, c.AST)
	}
}

// answer is what the n-th call of a run answers, as in generate.js.
func answer(n int, name string, params json.RawMessage) forerun.Result {
	with := func(key string, value any) json.RawMessage {
		m := maps.Clone(membersOf(params))
		m[key], _ = json.Marshal(value)
		return m.object()
	}
	value := params
	switch name {
	case "/_/put":
		value = with(fmt.Sprintf("k%d", n%3), n)
	case "/_/test":
		value = members{"value": json.RawMessage(fmt.Sprint(n%2 == 0)), "seen": params}.object()
	case "/_/flip":
		value = with("value", n%3 != 0)
	case "/_/fail":
		if n%2 == 0 {
			return forerun.Result{Status: forerun.ApplicationError, Value: json.RawMessage(fmt.Sprintf(`{"error":"failed %d","detail":%s}`, n, params))}
		}
	case "/_/prepare":
		if n%4 != 3 {
			value = members{"type": json.RawMessage(`"action"`), "name": json.RawMessage(`"/_/put"`), "params": params}.object()
		}
	}
	return forerun.Result{Value: value}
}

func equal(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
