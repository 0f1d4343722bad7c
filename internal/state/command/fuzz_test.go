package command

import (
	"bytes"
	"testing"
	"time"

	"forerun.dev/forerun/internal/state"
)

// FuzzCommands executes lines of words, twice: alone, and in an overlay as a transaction does. No command may panic,
// and both ways must answer the same and leave the same behind.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{
		"SET a 1 EX 10\nINCR a\nGETEX a PERSIST\nTTL a", "HSET h f 1 g 2\nHINCRBY h f 3\nHDEL h f g\nTYPE h", "MSETNX a 1 b 2\nMGET a b c",
		"LPUSH l 1 2 3\nLPOP l 2\nLRANGE l 0 -1\nLINDEX l -1", "SADD s a b\nSREM s a\nSMEMBERS s", "SETRANGE a 5 x\nGETRANGE a -3 -1",
		"INCRBYFLOAT a 1e3\nINCRBYFLOAT a 0x1p-3", "PEXPIRE a 5 GT\nEXPIREAT a 1\nSET a b KEEPTTL GET", "zadd", "get", "SET a 1 XX NX",
		"ZADD z 1 a 2 b\nZADD z GT CH 3 a\nZRANGE z 0 -1 REV\nZRANGE z (1 inf BYSCORE LIMIT 0 1\nZREM z a b", "ZADD z 0 a 0 b\nZRANGE z [a + BYLEX\nZPOPMAX z 2\nTYPE z",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 300 {
			return // SETRANGE makes long strings of short scripts
		}
		alone := &machine{memory: memory{}, now: time.UnixMilli(1000)}
		whole := NewOverlay(memory{})
		for line := range bytes.Lines(script) {
			args := bytes.Fields(line)
			if len(args) == 0 || bytes.EqualFold(args[0], []byte("SETRANGE")) && len(args) > 2 && len(args[2]) > 4 {
				continue
			}
			words := make([]string, len(args))
			for i, arg := range args {
				words[i] = string(arg)
			}
			reply, err := alone.run(words...)
			if err != nil {
				t.Fatal(err)
			}
			spec, _ := Find(args)
			if spec == nil {
				continue
			}
			same, err := Execute(whole, spec, "space", alone.now, args)
			if err != nil || show(same) != show(reply) {
				t.Fatalf("%q: alone %s, in a transaction %s, %v", args, show(reply), show(same), err)
			}
			if reply.Kind == state.Error && len(reply.Text) == 0 {
				t.Fatalf("%q: an error without words", args)
			}
		}
		left := memory{}
		if err := whole.Flush(left); err != nil {
			t.Fatal(err)
		}
		sameContent(t, left, alone.memory)
	})
}

// FuzzDecode decodes stored records.
func FuzzDecode(f *testing.F) {
	r := record{kind: state.String, expires: 5, payload: []byte("x")}
	f.Add(r.encode())
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, stored []byte) {
		if r, ok := decodeRecord(stored); ok && r.expires == 0 {
			if again := r.encode(); !bytes.Equal(again[expiringAt+1:], stored[expiringAt+1:]) {
				t.Errorf("%q comes back as %q", stored, again)
			}
		}
	})
}
