package openwhisk

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// many is a list of so many keys.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"key":"%x","value":%d}`, i, i)
	}
	return "[" + b.String()[1:] + "]"
}

// allocated is how many bytes f takes from the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyKeysTakeLittle: a list was copied for each of its keys, and the store of annotations for each that is new.
func TestManyKeysTakeLittle(t *testing.T) {
	const n, each = 4000, 2000 // bytes
	data := []byte(many(n))
	var list keyValues
	if bytes := allocated(func() {
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
	}); bytes > n*each || len(list) != n {
		t.Errorf("%d keys take %d bytes", len(list), bytes)
	}
	put := actionPut{Annotations: &list, DelAnnotations: []string{"0", "exec"}}
	old := keyValues{{Key: "0", Value: []byte("1")}, {Key: "1", Value: []byte("2")}, {Key: "own", Value: []byte("3")}}
	var all keyValues
	if bytes := allocated(func() { all = put.annotations(old, false, "python:3") }); bytes > n*each {
		t.Errorf("%d annotations take %d bytes", len(all), bytes)
	}
	if len(all) != n+2 || string(all[0].Value) != "1" || all[1].Key != "own" || string(old[1].Value) != "2" {
		t.Errorf("%d annotations, of %v: %v", len(all), old, all[:3])
	}
}
