package resp_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/internal/state/places"
	"forerun.dev/forerun/internal/state/resp"
)

// TestConnectionNeedsAPlace: a connection that has the door do much without a pause waits while all places are taken, and one that asks for
// little does not. It gives its place back when it has been answered.
func TestConnectionNeedsAPlace(t *testing.T) {
	d := openWith(t, resp.Options{}, nil)
	its := d.store.(*embedded.Store).Places()
	take := func(c int) (holders []*places.Turn) {
		for range c {
			holder := its.Turn()
			if err := holder.Work(t.Context(), "another", 100*places.Step); err != nil {
				t.Fatal(err)
			}
			holders = append(holders, holder)
		}
		return holders
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", d.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	all := max(1, runtime.GOMAXPROCS(0)-1)
	holders := take(all)
	much := dial()
	const size = 4 * places.Step
	long := strings.Repeat("x", size)
	if _, err := fmt.Fprintf(much, "*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", size, long); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		answer := make([]byte, len(fmt.Sprintf("$%d\r\n%s\r\n", size, long)))
		_, err := io.ReadFull(much, answer)
		answered <- err
	}()
	for its.Waited() == 0 && len(answered) == 0 {
		runtime.Gosched()
	}
	if its.Waited() == 0 {
		t.Error("it did not need a place")
	}
	little := dial()
	if _, err := io.WriteString(little, "SET m 1\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(little, make([]byte, len("+OK\r\n"))); err != nil {
		t.Error(err)
	}
	for _, holder := range holders {
		holder.Leave()
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	before := its.Waited()
	for _, holder := range take(all) {
		holder.Leave()
	}
	if its.Waited() != before {
		t.Error("a connection that was answered keeps a place")
	}
}
