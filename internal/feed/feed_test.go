package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func all(*forerun.Activation) bool { return true }

func listen(t *testing.T, f *Feed, match func(*forerun.Activation) bool) *Listener {
	t.Helper()
	l, err := f.Listen("ns", match)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func activation(id string, logs ...string) *forerun.Activation {
	return &forerun.Activation{ID: forerun.ActivationID(id), Namespace: "ns", Logs: logs}
}

// told is all that a listener has not read, in short.
func told(t *testing.T, l *Listener) string {
	t.Helper()
	var said []string
	for {
		news, some, err := l.next()
		if err != nil {
			t.Fatal(err)
		}
		if !some {
			return strings.Join(said, " ")
		}
		if news.Begun {
			said = append(said, "+"+string(news.Activation.ID))
		}
		for i, line := range news.Lines {
			said = append(said, fmt.Sprintf("%s%d:%s", news.Activation.ID, news.First+i, line))
		}
		if news.Ended {
			said = append(said, "-"+string(news.Activation.ID))
		}
	}
}

// TestEachLineOnce: a listener hears each line once and in order, whenever it comes and however often it is told.
func TestEachLineOnce(t *testing.T) {
	f := New()
	f.End(activation("x", "nobody listens"))
	a := activation("a")
	early := listen(t, f, all)
	f.Tell(a, []string{"one"})
	f.Tell(a, []string{"one"})
	if got := told(t, early); got != "+a a0:one" {
		t.Errorf("%s", got)
	}
	f.Tell(a, []string{"one", "two"})
	late := listen(t, f, all)
	f.Tell(activation("b"), nil)
	f.Tell(a, []string{"one", "two", "three"})
	f.Tell(a, []string{"one"}) // it was told late
	f.End(activation("a", "one", "two", "three", "four"))
	f.End(activation("b"))
	if got := told(t, early); got != "a1:two +b a2:three a3:four -a -b" {
		t.Errorf("the first listener: %s", got)
	}
	if got := told(t, late); got != "+b +a a0:one a1:two a2:three a3:four -a -b" {
		t.Errorf("the second listener: %s", got)
	}
	if len(early.known) != 0 || early.unread != 0 || early.ended != 0 {
		t.Errorf("%d activations and %d bytes are kept after all has ended", len(early.known), early.unread)
	}
}

// TestOthersAreNotTold: a listener hears of its own namespace, of what matches, and no ids of a sequence's parts.
func TestOthersAreNotTold(t *testing.T) {
	f := New()
	l := listen(t, f, func(a *forerun.Activation) bool { return a.ID != "unwanted" })
	f.Tell(activation("unwanted"), []string{"line"})
	f.End(activation("unwanted", "line"))
	f.End(&forerun.Activation{ID: "other", Namespace: "another", Logs: []string{"line"}})
	f.End(&forerun.Activation{ID: "s", Namespace: "ns", Logs: []string{"an id"}, Annotations: []forerun.KeyValue{{Key: "kind", Value: []byte(`"sequence"`)}}})
	if got := told(t, l); got != "+s -s" {
		t.Errorf("%s", got)
	}
	l.Close()
	if f.Listens("ns") || len(f.listeners) != 0 {
		t.Error("a listener is there after its end")
	}
}

// TestManyLinesComeInParts: a large log is told in parts, each line once.
func TestManyLinesComeInParts(t *testing.T) {
	f := New()
	l := listen(t, f, all)
	var lines []string
	for n := range 500 {
		lines = append(lines, fmt.Sprint(n, strings.Repeat("x", 1000)))
	}
	f.End(activation("a", lines...))
	var got []string
	for ended := false; !ended; {
		news, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, line := range news.Lines {
			size += len(line)
		}
		if size > maxNews+2000 {
			t.Fatalf("%d bytes come at once", size)
		}
		got, ended = append(got, news.Lines...), news.Ended
	}
	if !slices.Equal(got, lines) {
		t.Errorf("%d lines came of %d", len(got), len(lines))
	}
}

// TestSlowListener: a listener that reads nothing is cut off and keeps nothing, and others hear all. A single large
// log, and lines of running activations, cut no listener off.
func TestSlowListener(t *testing.T) {
	f := New()
	slow, quick := listen(t, f, all), listen(t, f, all)
	large := strings.Repeat("x", maxUnread)
	f.Tell(activation("runs"), []string{large, large})
	f.End(activation("first", large, large))
	if slow.err != nil {
		t.Fatalf("a single large log: %v", slow.err)
	}
	told(t, quick)
	f.End(activation("second"))
	if _, err := slow.Next(t.Context()); !errors.Is(err, errSlow) {
		t.Errorf("a slow listener gets %v", err)
	}
	if got := told(t, quick); got != "+second -second" {
		t.Errorf("the other listener: %s", got)
	}
	f.End(activation("third", large))
	if len(slow.known) != 0 || len(slow.queue) != 0 {
		t.Error("a listener that was cut off keeps something")
	}
	if got := told(t, quick); !strings.HasPrefix(got, "+third third0:x") {
		t.Errorf("the other listener: %.100s", got)
	}
	ping := listen(t, f, all)
	lines := make([]string, maxQueue)
	for n := range maxQueue + 1 {
		f.Tell(activation(fmt.Sprint("p", n%2)), lines[:n/2+1])
	}
	if _, err := ping.Next(t.Context()); !errors.Is(err, errSlow) {
		t.Errorf("a listener that leaves many news of running ones unread gets %v", err)
	}
	many := listen(t, f, all)
	for n := range maxUnread/perEnd + 1 {
		f.End(activation(fmt.Sprint(n)))
	}
	if _, err := many.Next(t.Context()); !errors.Is(err, errSlow) {
		t.Errorf("a listener that leaves many small ones unread gets %v", err)
	}
}

// TestListenersAreFew: a namespace has so many listeners at most, and another one its own.
func TestListenersAreFew(t *testing.T) {
	f := New()
	last := listen(t, f, all)
	for range maxListeners - 1 {
		listen(t, f, all)
	}
	if _, err := f.Listen("ns", all); forerun.KindOf(err) != forerun.TooMany {
		t.Errorf("one more: %v", err)
	}
	if _, err := f.Listen("another", all); err != nil {
		t.Errorf("one of another namespace: %v", err)
	}
	last.Close()
	listen(t, f, all)
}

// TestClose: the end of the feed ends the listeners that wait, and refuses new ones.
func TestClose(t *testing.T) {
	f := New()
	l := listen(t, f, all)
	ended := make(chan error)
	go func() {
		_, err := l.Next(context.Background())
		ended <- err
	}()
	f.Close()
	if err := <-ended; forerun.KindOf(err) != forerun.Unavailable {
		t.Errorf("a listener that waits gets %v", err)
	}
	if _, err := f.Listen("ns", all); forerun.KindOf(err) != forerun.Unavailable {
		t.Errorf("one that comes then gets %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := listen(t, New(), all).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("one whose client has gone gets %v", err)
	}
}
