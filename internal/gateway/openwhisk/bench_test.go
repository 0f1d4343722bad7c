package openwhisk

import "testing"

// BenchmarkInvoke is the way of a warm blocking invocation through everything but a sandbox and the network.
func BenchmarkInvoke(b *testing.B) {
	w := newWorld(b)
	w.deploy("echo", "echo")
	b.ReportAllocs()
	for b.Loop() {
		if r := w.request("POST", actions+"echo?blocking=true", `{"name":"ada"}`); r.status != 200 {
			b.Fatal(r.body)
		}
	}
}
