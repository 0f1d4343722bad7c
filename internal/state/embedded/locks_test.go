package embedded

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// TestSpacesAreApart: while a step has every record of a space, or many, those of another space are read and written.
func TestSpacesAreApart(t *testing.T) {
	words := func(line ...string) (args [][]byte) {
		for _, word := range line {
			args = append(args, []byte(word))
		}
		return args
	}
	many := words("MSET")
	for i := range 100_000 {
		many = append(many, fmt.Append(nil, i), nil)
	}
	for name, step := range map[string][][]byte{"all": words("FLUSHDB"), "many": many} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
			defer closed(t, s)
			do(t, s, "SET a 1")
			held, done, told := make(chan struct{}), make(chan struct{}), false
			stop := s.Watch(func(k forerun.Key, _ forerun.Version) {
				if k.Space != "s" || told {
					return
				}
				told = true
				close(held)
				select {
				case <-done:
				case <-time.After(10 * time.Second):
					t.Error("another space's records wait")
				}
			})
			defer stop()
			go func() {
				defer close(done)
				<-held
				for _, args := range [][][]byte{words("SET", "a", "1"), words("GET", "a"), words("FLUSHDB")} {
					if _, _, err := s.Do(context.Background(), state.Command{Space: "another", Args: args}); err != nil {
						t.Error(err)
					}
				}
			}()
			if _, _, err := s.Do(context.Background(), state.Command{Space: "s", Args: step}); err != nil {
				t.Error(err)
			}
			<-done
		})
	}
}
