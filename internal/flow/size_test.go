package flow

import (
	"encoding/json"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// TestProgramsAreBounded compiles documents of almost a megabyte, which is what an annotation may have: what takes much more when it is compiled
// is refused before it does, and what a program says that it takes it does take, about.
func TestProgramsAreBounded(t *testing.T) {
	const most = 1 << 20
	nested := strings.Repeat(`{"type":"if_nosave","test":{"type":"empty"},"consequent":`, 90)
	for name, c := range map[string]struct {
		begin, part, end string
		fits             bool
	}{
		"actions":      {`{"type":"sequence","components":[`, `{"type":"action","name":"/_/a"},`, `{"type":"empty"}]}`, true},
		"retries":      {`{"type":"sequence","components":[`, `{"type":"retry","count":1},`, `{"type":"empty"}]}`, false},
		"choices":      {`{"type":"sequence","components":[`, `{"type":"if","test":{"type":"empty"}},`, `{"type":"empty"}]}`, false},
		"variables":    {`{"type":"sequence","components":[`, `{"type":"let","declarations":{}},`, `{"type":"empty"}]}`, false},
		"declarations": {`{"type":"let","declarations":{`, `"NUMBER":1,`, `"a":1}}`, true},
		"deep places":  {nested + `{"type":"sequence","components":[`, `{"type":"dynamic"},`, `{"type":"empty"}]}` + strings.Repeat("}", 90), false},
		"one literal":  {`{"type":"literal","value":"`, "x", `"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			document := append(make(json.RawMessage, 0, most), c.begin...)
			for n := 100_000; len(document)+len(c.part)+len(c.end) < most; n++ {
				document = append(document, strings.Replace(c.part, "NUMBER", strconv.Itoa(n), 1)...)
			}
			document = append(document, c.end...)
			before := heap()
			p, err := compileComposition(document)
			took := heap() - before
			if (err == nil) != c.fits || err != nil && (forerun.KindOf(err) != forerun.Invalid || !strings.Contains(err.Error(), "more than 8 MiB")) {
				t.Fatalf("%v", err)
			}
			if p != nil && (took > 2*p.Size()+1<<20 || took < p.Size()/4) {
				t.Errorf("it says that it takes %d bytes, and takes %d", p.Size(), took)
			}
			runtime.KeepAlive(document)
			runtime.KeepAlive(p)
		})
	}
}

// heap is how many bytes are in use.
func heap() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
