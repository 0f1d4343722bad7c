package worker

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pipes returns an output and the ends that processes write to.
func pipes(t *testing.T, limit int) (*output, [2]*os.File) {
	var ends [2]*os.File
	var reads [2]*os.File
	for i := range ends {
		var err error
		if reads[i], ends[i], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
	}
	o, err := newOutput(reads[0], reads[1], limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		o.close()
		_, _ = ends[0].Close(), ends[1].Close()
	})
	return o, ends
}

func TestLinesComeHoweverTheyWereWritten(t *testing.T) {
	o, ends := pipes(t, 1<<20)
	for _, part := range []string{"o", "ne\ntw", "o", "\n\n", strings.Repeat("x", 40_000), "\nend"} {
		if _, err := ends[0].WriteString(part); err != nil {
			t.Fatal(err)
		}
		if len(part)%2 == 0 {
			o.drain()
		}
	}
	lines := o.end()
	want := []string{"one", "two", "", strings.Repeat("x", 40_000), "end"}
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %.200q", len(lines), lines)
	}
	for i, line := range lines {
		if text(line) != "stdout: "+want[i] {
			t.Errorf("line %d is %.100q", i, line)
		}
	}
}

func TestLinesHaveTheirTime(t *testing.T) {
	l := newLogbook(1000)
	l.add(time.Date(2026, 11, 21, 2, 53, 52, 123456000, time.FixedZone("", 3600)), "stderr", []byte("text"))
	if want := "2026-11-21T01:53:52.123456000Z stderr: text"; l.lines[0] != want {
		t.Errorf("%q; want %q", l.lines[0], want)
	}
}

func TestWhatComesBetweenActivationsIsNobodys(t *testing.T) {
	o, ends := pipes(t, 1<<20)
	o.end()
	_, _ = ends[1].WriteString("late\nand half") // a pipe has room for it
	o.discard()
	o.begin(1<<20, nil)
	_, _ = ends[1].WriteString("mine\n")
	if got := texts(o.end()); got != "stderr: mine" {
		t.Errorf("%q", got)
	}
	o.say("stderr", "nobody hears this")
	if lines := o.end(); lines != nil {
		t.Errorf("%q", lines)
	}
}

func TestWhatComesBeforeTheFirstActivationIsNobodys(t *testing.T) {
	o, ends := pipes(t, 1<<20)
	_, _ = ends[0].WriteString("loading\nand more")
	o.loaded()
	_, _ = ends[0].WriteString("loading again\nand half")
	o.discard()
	o.begin(1<<20, nil)
	_, _ = ends[0].WriteString("mine\n")
	if got := texts(o.end()); got != "stdout: loading\nstdout: and more\nstdout: mine" {
		t.Errorf("%q", got)
	}
	o.begin(1<<20, nil)
	if lines := o.end(); lines != nil {
		t.Errorf("the second activation gets %q", lines)
	}
}

func TestTheLimitCountsEveryByte(t *testing.T) {
	for _, length := range []int{0, 1, 99, 10_000} {
		l := newLogbook(4000)
		for i := 0; !l.full && i < 10_000; i++ {
			l.add(time.Now(), "stdout", []byte(strings.Repeat("y", length)))
		}
		size := 0
		for _, line := range l.lines[:len(l.lines)-1] {
			size += len(line)
		}
		last := l.lines[len(l.lines)-1]
		if size > 4000 || !strings.Contains(last, "Logs were truncated because the total bytes size exceeds the limit of 4000 bytes.") {
			t.Errorf("lines of %d: %d bytes, then %q", length, size, last)
		}
	}
}

func TestSayTakesSeveralLines(t *testing.T) {
	o, _ := pipes(t, 1<<20)
	o.say("stdout", "one\ntwo\n")
	o.say("anything else", "three")
	if got := fmt.Sprint(texts(o.end())); got != "stdout: one\nstdout: two\nstderr: three" {
		t.Errorf("%q", got)
	}
}

// TestPacketsAreDrained: packets in a pipe, each of which is read alone, are in the log of their activation, and not in the next one.
func TestPacketsAreDrained(t *testing.T) {
	o, ends := pipes(t, 1<<20)
	fd := ends[0].Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20); err != nil {
		t.Skipf("this user may have no large pipe: %v", err)
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETFL, unix.O_DIRECT); err != nil {
		t.Fatal(err)
	}
	const packets = 200
	for n := range packets {
		if _, err := fmt.Fprintf(ends[0], "%d\n", n); err != nil {
			t.Fatal(err)
		}
	}
	if lines := o.end(); len(lines) != packets {
		t.Errorf("%d lines of %d are in the log", len(lines), packets)
	}
}

// TestLinesAreToldAsTheyCome: a listener hears of an activation's lines before its end, of nothing that came before or after it, and of no
// line without its end.
func TestLinesAreToldAsTheyCome(t *testing.T) {
	o, ends := pipes(t, 1000)
	write := func(text string) {
		t.Helper()
		if _, err := ends[0].WriteString(text); err != nil {
			t.Fatal(err)
		}
		o.drain()
	}
	write("loading\n")
	o.loaded()
	var heard []string
	wrote := func(lines []string) { heard = append(heard, texts(lines)) }
	o.begin(1000, wrote)
	write("one\ntw")
	write("o")
	write("\nthree\n")
	o.say("stderr", "said")
	write("the end")
	want := []string{"stdout: loading", "stdout: loading\nstdout: one", "stdout: loading\nstdout: one\nstdout: two\nstdout: three"}
	want = append(want, want[2]+"\nstderr: said")
	if !slices.Equal(slices.Compact(heard), want) {
		t.Errorf("heard %q", heard)
	}
	if last := texts(o.end()); last != want[3]+"\nstdout: the end" {
		t.Errorf("the log is %q", last)
	}
	heard = nil
	o.discard()
	write("late\n")
	o.begin(1000, nil)
	write("of the next\n")
	o.end()
	o.begin(1000, wrote)
	write(strings.Repeat("x", 2000)) // no end comes, but it is beyond the limit
	if len(heard) != 1 || !strings.Contains(heard[0], "Logs were truncated") || strings.Contains(heard[0], "of the next") {
		t.Errorf("heard %q", heard)
	}
}
