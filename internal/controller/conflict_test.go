package controller

import (
	"bytes"
	"sync/atomic"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// others executes a command of another client.
func (t *town) others(tb testing.TB, line string) state.Reply {
	tb.Helper()
	reply, _, err := t.State.Do(tb.Context(), state.Command{Space: "ns", Args: bytes.Fields([]byte(line))})
	if err != nil {
		tb.Error(err)
	}
	return reply
}

// TestOthersExpiryIsAConflict: a record that was read ahead is another once somebody gives it a life, with a value or without: its version
// is of both. Who read it runs again in its turn, and does not undo that.
func TestOthersExpiryIsAConflict(t *testing.T) {
	for _, c := range []struct{ others, want string }{{"SET k theirs EX 1000", "theirs+"}, {"EXPIRE k 1000", "mine+"}} {
		t.Run(c.others, func(t *testing.T) {
			town := newAheadTown(t)
			var second atomic.Bool
			appended := make(chan struct{}, 3) // b runs as often
			town.function("a", func(*forerun.Run, map[string]any) (any, error) {
				if second.Load() {
					<-appended // the test hangs if b waits for this one
					town.others(t, c.others)
				}
				return map[string]any{"a": 1}, nil
			})
			town.function("b", func(run *forerun.Run, _ map[string]any) (any, error) {
				_, err := town.do(run, "APPEND", "k", "+")
				if second.Load() {
					appended <- struct{}{}
				}
				return map[string]any{"b": 1}, err
			})
			seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
			town.invokeAhead(seq, `{}`)
			town.others(t, "SET k mine")
			second.Store(true)
			if got, tally := town.invokeAhead(seq, `{}`); got != `{"b":1}` || tally.Early != 1 || tally.Kinds[forerun.Overtaken] != 1 {
				t.Errorf("%s, %+v", got, tally)
			}
			if got := town.others(t, "GET k"); string(got.Text) != c.want {
				t.Errorf("the record is %q, want %q", got.Text, c.want)
			}
			if life := town.others(t, "TTL k"); life.Int < 900 {
				t.Errorf("it lives for %d s", life.Int)
			}
		})
	}
}
