package launcher

import (
	"testing"

	"forerun.dev/forerun/internal/runtimewire"
)

// A warm handler's round trip from Run to Ready.
func BenchmarkRun(b *testing.B) {
	for name, prepare := range map[string]func(b *testing.B) *handler{
		"node": func(b *testing.B) *handler {
			return startCommandOfNode(b).serving(runtimewire.Init{}, []byte(`function main(x) { return {greeting: 'Hello ' + x.name} }`))
		},
		"native": func(b *testing.B) *handler {
			return start(b, "native").serving(runtimewire.Init{Binary: true}, compiled(b))
		},
	} {
		b.Run(name, func(b *testing.B) {
			h := prepare(b)
			for b.Loop() {
				h.call(`{"name":"Ada"}`)
			}
		})
	}
}

// From nothing to the first answer.
func BenchmarkColdStart(b *testing.B) {
	code := compiled(b)
	for b.Loop() {
		h := start(b, "native").serving(runtimewire.Init{Binary: true}, code)
		h.call(`{"name":"Ada"}`)
	}
}
