package embedded

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkLazyApply is one activation record of 1 kB in the log.
func BenchmarkLazyApply(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	defer s.Close()
	value := make([]byte, 1000)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := s.Apply(context.Background(), lazySet(fmt.Sprint("record", n), value)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLazyApplyBesideSyncs is the same while another client waits for the disk all the time.
func BenchmarkLazyApplyBesideSyncs(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			strict := lazySet("other", []byte("x"))
			strict.Lazy = false
			_, _ = s.Apply(ctx, strict) // until the end
		}
	}()
	value := make([]byte, 1000)
	for n := 0; b.Loop(); n++ {
		if _, err := s.Apply(context.Background(), lazySet(fmt.Sprint("record", n), value)); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	<-done
}
