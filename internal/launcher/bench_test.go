package launcher

import (
	"testing"

	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox"
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

// From nothing to the first answer, in a real sandbox.
func BenchmarkColdStart(b *testing.B) {
	for name, prepare := range map[string]func(b *testing.B) (sandbox.Spec, runtimewire.Init, []byte){
		"node": func(b *testing.B) (sandbox.Spec, runtimewire.Init, []byte) {
			return nodeSpec(b), runtimewire.Init{}, []byte(`function main(x) { return {greeting: 'Hello ' + x.name} }`)
		},
		"native": func(b *testing.B) (sandbox.Spec, runtimewire.Init, []byte) {
			return sandbox.Spec{Argv: []string{"native"}}, runtimewire.Init{Binary: true}, compiled(b)
		},
	} {
		b.Run(name, func(b *testing.B) {
			spec, init, code := prepare(b)
			maker := sandboxes(b, &spec)
			for b.Loop() {
				s, box := startInside(b, maker, spec)
				s.serving(init, code).call(`{"name":"Ada"}`)
				b.StopTimer()
				if err := box.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
