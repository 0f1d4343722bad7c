package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"forerun.dev/forerun/internal/feed"
	"forerun.dev/forerun/internal/forerun"
)

// hear listens to the feed of a town's namespace. The returned function waits until an action's activation has ended, and
// tells what came until then: "+hello", "hello: line", "-hello".
func (t *town) hear(tb testing.TB) (until func(action string) []string) {
	tb.Helper()
	l, err := t.Feed.Listen("ns", func(*forerun.Activation) bool { return true })
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(l.Close)
	return func(action string) (heard []string) {
		for {
			news, err := l.Next(tb.Context())
			if err != nil {
				tb.Fatal(err)
			}
			heard = append(heard, inShort(news)...)
			if slices.Contains(heard, "-"+action) {
				return heard
			}
		}
	}
}

func inShort(news feed.News) (heard []string) {
	name := news.Activation.Action.Entity
	if news.Begun {
		heard = append(heard, "+"+name)
	}
	for _, line := range news.Lines {
		heard = append(heard, name+": "+line)
	}
	if news.Ended {
		heard = append(heard, "-"+name)
	}
	return heard
}

// TestShowRunning: a listener hears of what runs while it runs, with what was written before the listener came.
func TestShowRunning(t *testing.T) {
	town := newTown(t)
	wrote, goOn := make(chan struct{}), make(chan struct{})
	hello := town.function("hello", func(run *forerun.Run, _ map[string]any) (any, error) {
		run.Wrote([]string{"ran hello"})
		close(wrote)
		<-goOn
		return map[string]any{}, nil
	})
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{hello.Name.String()}})
	i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: seq, Input: json.RawMessage(`{}`), Blocking: true})
	<-wrote
	l, err := town.Feed.Listen("ns", func(*forerun.Activation) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	town.Show("ns")
	var heard []string
	for len(heard) < 3 {
		news, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, inShort(news)...)
	}
	if got := strings.Join(heard, ", "); got != "+seq, +hello, hello: ran hello" {
		t.Errorf("while it runs: %s", got)
	}
	close(goOn)
	<-i.Done()
	for len(heard) < 5 {
		news, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, inShort(news)...)
	}
	if got := strings.Join(heard[3:], ", "); got != "-hello, -seq" {
		t.Errorf("then: %s", got)
	}
}

// TestSpeculativeIsNotShown: lines of a speculative function are shown once it is promoted, and never if it is squashed.
func TestSpeculativeIsNotShown(t *testing.T) {
	for _, c := range []struct {
		name  string
		right bool // the function is launched with its right input
	}{{"promoted", true}, {"squashed", false}} {
		t.Run(c.name, func(t *testing.T) {
			town := newAheadTown(t)
			var again atomic.Bool
			began, tellBegan := context.WithCancel(t.Context())
			town.function("a", func(run *forerun.Run, _ map[string]any) (any, error) {
				if !again.Load() {
					return map[string]any{"n": 1}, nil
				}
				<-began.Done() // the test hangs if b waits for this one
				town.Show("ns")
				run.Wrote([]string{"ran a"})
				if c.right {
					return map[string]any{"n": 1}, nil
				}
				return map[string]any{"n": 2}, nil
			})
			town.function("b", func(run *forerun.Run, input map[string]any) (any, error) {
				if input["n"] == 1.0 {
					run.Wrote([]string{"ran b"})
				}
				if again.Load() {
					tellBegan()
				}
				return input, nil
			})
			seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
			town.invokeAhead(seq, `{}`)
			again.Store(true)
			until := town.hear(t)
			got, tally := town.invokeAhead(seq, `{}`)
			if want := map[bool]string{true: `{"n":1}`, false: `{"n":2}`}[c.right]; got != want || tally.Early != 1 || (tally.Squashed == 0) != c.right {
				t.Fatalf("%s, %+v", got, tally)
			}
			if heard := fmt.Sprint(until("seq")); heard != "[+seq +a a: ran a +b b: ran b -a -b -seq]" {
				t.Errorf("heard %s", heard)
			}
		})
	}
}
