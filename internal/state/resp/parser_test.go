package resp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

// parseAll finds all commands in a stream that comes in as it will; words are joined by "|".
func parseAll(p *parser, r io.Reader) (commands []string, err error) {
	for {
		args, ok, err := p.next()
		switch {
		case err != nil:
			return commands, err
		case ok && len(args) > 0:
			commands = append(commands, string(bytes.Join(args, []byte("|"))))
		case !ok:
			if err := p.fill(r); err != nil {
				return commands, err
			}
		}
	}
}

func TestParser(t *testing.T) {
	for _, c := range []struct {
		in, commands, failure string
	}{
		{in: "*1\r\n$4\r\nPING\r\n", commands: "PING"},
		{in: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n", commands: "GET|a PING"},
		{in: "*2\r\n$3\r\nGET\r\n$0\r\n\r\n", commands: "GET|"},
		{in: "*2\r\n$3\r\nGET\r\n$4\r\n\r\n\x00\xff\r\n", commands: "GET|\r\n\x00\xff"},
		{in: "*0\r\n*-1\r\n\r\n \n*1\r\n$1\r\nx\r\n", commands: "x"},
		{in: "PING\r\nGET  a\n", commands: "PING GET|a"},
		{in: `SET "a b\x41\n" 'it\'s'` + "\n", commands: "SET|a bA\n|it's"},
		{in: `SET "" a"b"` + "\n", commands: `SET||ab`},
		{in: "SET \"a\n", failure: "unbalanced quotes in request"},
		{in: "SET \"a\"b\n", failure: "unbalanced quotes in request"},
		{in: "SET 'a\n", failure: "unbalanced quotes in request"},
		{in: "*x\r\n", failure: "invalid multibulk length"},
		{in: "*1 \r\n", failure: "invalid multibulk length"},
		{in: "*+1\r\n", failure: "invalid multibulk length"},
		{in: "*1048577\r\n", failure: "invalid multibulk length"},
		{in: "*99999999999999999999\r\n", failure: "invalid multibulk length"},
		{in: "*1\r\n+PING\r\n", failure: "expected '$', got '+'"},
		{in: "*1\r\n$x\r\n", failure: "invalid bulk length"},
		{in: "*1\r\n$-1\r\n", failure: "invalid bulk length"},
		{in: "*1\r\n$1001\r\n", failure: "invalid bulk length"},
		{in: "*" + strings.Repeat("1", maxInline+1), failure: "too big mbulk count string"},
		{in: "*1\r\n$" + strings.Repeat("1", maxInline+1), failure: "too big bulk count string"},
		{in: strings.Repeat("x", maxInline+1), failure: "too big inline request"},
		{in: "*4\r\n" + strings.Repeat("$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", 3), failure: "too big command"},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "bytewise": iotest.OneByteReader(strings.NewReader(c.in)), "halves": iotest.HalfReader(strings.NewReader(c.in)),
		} {
			commands, err := parseAll(&parser{maxBulk: 1000}, r)
			if got := strings.Join(commands, " "); got != c.commands {
				t.Errorf("%.40q (%s): commands %q, want %q", c.in, name, got, c.commands)
			}
			if c.failure == "" && !errors.Is(err, io.EOF) || c.failure != "" && !errors.Is(err, protocolError(c.failure)) {
				t.Errorf("%.40q (%s): %v, want %q", c.in, name, err, c.failure)
			}
		}
	}
}

func TestStrangersMustBeBrief(t *testing.T) {
	for in, want := range map[string]string{
		"*11\r\n":            "unauthenticated multibulk length",
		"*1\r\n$16385\r\n":   "unauthenticated bulk length",
		"*10\r\n$16384\r\n+": "EOF",
	} {
		_, err := parseAll(&parser{maxBulk: 1 << 20, stranger: true}, strings.NewReader(in))
		if !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

// TestBufferGrowsWithWhatComesIn announces much and sends little.
func TestBufferGrowsWithWhatComesIn(t *testing.T) {
	p := &parser{maxBulk: 512 << 20}
	if _, err := parseAll(p, strings.NewReader("*1000000\r\n$500000000\r\n"+strings.Repeat("x", 100_000))); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if cap(p.buf) > 400_000 || cap(p.args) > 10 {
		t.Errorf("for 100 kB there is a buffer of %d bytes and room for %d arguments", cap(p.buf), cap(p.args))
	}
	value := strings.Repeat("y", 3<<20)
	p = &parser{maxBulk: 512 << 20}
	if got, err := parseAll(p, strings.NewReader("*1\r\n$3145728\r\n"+value+"\r\n*1\r\n$1\r\nz\r\n")); !errors.Is(err, io.EOF) || len(got) != 2 || got[0] != value {
		t.Fatalf("%d commands, %v", len(got), err)
	}
	if cap(p.buf) > restingBuffer {
		t.Errorf("after a big command, a buffer of %d bytes is kept", cap(p.buf))
	}
}

// FuzzParser feeds any bytes, whole and in random pieces: the commands and the end must be the same.
func FuzzParser(f *testing.F) {
	for _, seed := range []string{
		"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "PING\r\n", "SET \"a\\x41\" 'b'\n", "*0\r\n", "*-1\r\n", "*1\r\n$-1\r\n", "*1\r\n$5\r\nab\r\n", "*x\r\n", "\x00\n", "$1\r\n",
	} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		whole, err1 := parseAll(&parser{maxBulk: 100}, bytes.NewReader(in))
		pieces, err2 := parseAll(&parser{maxBulk: 100}, &randomPieces{bytes.NewReader(in), rand.New(rand.NewPCG(seed, 0))})
		if strings.Join(whole, "\n") != strings.Join(pieces, "\n") || err1.Error() != err2.Error() {
			t.Errorf("whole: %q, %v\nin pieces: %q, %v", whole, err1, pieces, err2)
		}
	})
}

// randomPieces reads a few bytes at a time.
type randomPieces struct {
	r   io.Reader
	rng *rand.Rand
}

func (p *randomPieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), 1+p.rng.IntN(7))])
}

// FuzzWords splits any line.
func FuzzWords(f *testing.F) {
	f.Add([]byte(`a "b\x4" 'c\'' `))
	f.Fuzz(func(t *testing.T, line []byte) {
		words, ok := splitWords(line)
		total := 0
		for _, w := range words {
			total += len(w)
		}
		if !ok && words != nil || total > len(line) {
			t.Errorf("%q: %q, %v", line, words, ok)
		}
	})
}

// TestParserLetsGo: of a large command nothing is kept once the next bytes are read.
func TestParserLetsGo(t *testing.T) {
	p := parser{maxBulk: 1 << 20}
	in := strings.NewReader("*2\r\n$1\r\nk\r\n$200000\r\n" + strings.Repeat("x", 200000) + "\r\n" +
		"*1000\r\n" + strings.Repeat("$1\r\nx\r\n", 1000) + "*1\r\n$4\r\nPING\r\n")
	for n := 0; n < 3; {
		_, ok, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			n++
			continue
		}
		if err := p.fill(in); err != nil {
			t.Fatal(err)
		}
		for _, arg := range p.out[:cap(p.out)] {
			if arg != nil {
				t.Fatalf("after %d commands it keeps an argument", n)
			}
		}
	}
	_ = p.fill(in) // the end
	if cap(p.args) > restingArgs || cap(p.out) > restingArgs {
		t.Errorf("it keeps room for %d and %d arguments", cap(p.args), cap(p.out))
	}
}
