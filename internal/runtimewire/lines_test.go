package runtimewire

import (
	"bytes"
	"encoding/json"
	"testing"
)

// lineOf is a whole line.
func lineOf(value []byte, loaded, run map[string]string) []byte {
	return append(appendMembers(appendMembers(appendValue(nil, value), loaded), run), "}\n"...)
}

func TestLine(t *testing.T) {
	got := string(lineOf([]byte("{\n\"a\": 1}"),
		map[string]string{"__OW_API_HOST": "h", "REDIS_URL": "r", "__OW_NAMESPACE": "1"}, map[string]string{"__OW_DEADLINE": "2", "__OW_API_KEY": "a\nb"}))
	if want := "{\"value\":{ \"a\": 1},\"api_host\":\"h\",\"namespace\":\"1\",\"api_key\":\"a\\nb\",\"deadline\":\"2\"}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Whatever JSON comes in, one line of JSON with the same value goes out.
func FuzzLine(f *testing.F) {
	f.Add([]byte("{\r\n\"a\": [1.50, \"\\n\"]}"), "x\ny")
	f.Add([]byte(`"\u2028"`), "\xff")
	f.Fuzz(func(t *testing.T, value []byte, variable string) {
		if !json.Valid(value) {
			return
		}
		line := lineOf(value, nil, map[string]string{"__OW_X": variable})
		if bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
			t.Fatalf("%q is not one line", line)
		}
		var run struct{ Value json.RawMessage }
		if err := json.Unmarshal(line, &run); err != nil {
			t.Fatal(err)
		}
		var want, got bytes.Buffer
		if json.Compact(&want, value) != nil || json.Compact(&got, run.Value) != nil || got.String() != want.String() {
			t.Errorf("the value %s became %s", &want, &got)
		}
	})
}
