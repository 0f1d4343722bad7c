package command

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// FuzzCommands executes lines of words three times: alone, in an overlay as a transaction does, and on images. No command
// may panic, and all ways must answer the same and leave the same behind.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{
		"SET a 1 EX 10\nINCR a\nGETEX a PERSIST\nTTL a", "HSET h f 1 g 2\nHINCRBY h f 3\nHDEL h f g\nTYPE h", "MSETNX a 1 b 2\nMGET a b c",
		"LPUSH l 1 2 3\nLPOP l 2\nLRANGE l 0 -1\nLINDEX l -1", "SADD s a b\nSREM s a\nSMEMBERS s", "SETRANGE a 5 x\nGETRANGE a -3 -1",
		"INCRBYFLOAT a 1e3\nINCRBYFLOAT a 0x1p-3", "PEXPIRE a 5 GT\nEXPIREAT a 1\nSET a b KEEPTTL GET", "zadd", "get", "SET a 1 XX NX",
		"ZADD z 1 a 2 b\nZADD z GT CH 3 a\nZRANGE z 0 -1 REV\nZRANGE z (1 inf BYSCORE LIMIT 0 1\nZREM z a b", "ZADD z 0 a 0 b\nZRANGE z [a + BYLEX\nZPOPMAX z 2\nTYPE z",
		"SADD s a b c\nSADD t b\nSINTERSTORE u s t\nSMOVE s t a\nZUNIONSTORE z 2 s t WEIGHTS 2 3 AGGREGATE MAX\nZINTER 2 z u WITHSCORES",
		"RPUSH l a b a c\nLINSERT l AFTER b x\nLREM l -1 a\nLPOS l x RANK -1\nLTRIM l 1 -2\nLMOVE l m LEFT RIGHT\nLMPOP 2 l m LEFT COUNT 2",
		"SETBIT b 9 1\nBITFIELD b OVERFLOW SAT INCRBY u4 #1 20 GET i8 0\nBITPOS b 1\nBITOP NOT c b\nBITCOUNT c 0 -1 BIT\nLCS b c IDX WITHMATCHLEN",
		"RPUSH l 3 1 2\nSORT l BY w_* GET # GET h*->f LIMIT 0 2 STORE m\nRENAME m n\nCOPY n o REPLACE\nOBJECT ENCODING o\nBLMOVE n o LEFT RIGHT 1.5\nSORT_RO o DESC ALPHA",
		"SET a 1 PX 5\nSADD s a b c\nSCAN 0 MATCH [^s]* COUNT 1\nSSCAN s >a COUNT 1\nKEYS *\\a\nDBSIZE\nFLUSHDB\nDBSIZE\nSET a 1 PX 5\nHSCAN h 0",
		"ZADD z 1 a\nBZPOPMIN y z 0\nBZMPOP 1 2 y z MIN COUNT 3\nBLPOP a b nan\nBLMPOP 0 1 l LEFT\nZSCAN z 0 MATCH * COUNT 2",
		"EVAL redis.call('set',KEYS[1],ARGV[1])return(redis.call('incr',KEYS[1])) 1 a 5\nEVAL redis.call('rpush',KEYS[1],'x')error('e') 1 l\nEVAL_RO return{#KEYS,redis.pcall('get','a')} 1 a\nEVALSHA x 0",
		"PFADD p a b c\nPFCOUNT p q\nPFMERGE q p\nSETRANGE r 0 HYLL\nPFCOUNT r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 300 {
			return // SETRANGE makes long strings of short scripts
		}
		alone := &machine{memory: memory{}, now: time.UnixMilli(1000)}
		whole := NewOverlay(context.Background(), memory{})
		ahead := column{}
		for line := range bytes.Lines(script) {
			args := bytes.Fields(line)
			if len(args) == 0 || growing(args) || random(args[0]) {
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
			if onImages, held := ahead.execute(t, NewStep("space", alone.now, args)); !held && show(onImages) != show(reply) {
				t.Fatalf("%q: alone %s, on images %s", args, show(reply), show(onImages))
			} else if held && spec.Access(args)&Write != 0 {
				ahead = nil
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
		ahead.compare(t, alone.memory)
	})
}

// column is images of the records that an execution has written; nil: it is not known any more what they are.
type column map[string]state.Image

// execute executes a step on images, unless it holds or takes long.
func (c column) execute(t *testing.T, s *Step) (reply state.Reply, held bool) {
	if c == nil || s.Holds() {
		return reply, true
	}
	reads := make([]state.Image, len(s.Reads()))
	for i, k := range s.Reads() {
		if reads[i] = c[k.Name]; reads[i] == nil {
			reads[i] = &Image{}
		}
	}
	o, writes := new(Executor).Execute(s, reads)
	switch {
	case o.Err != nil:
		t.Fatal(o.Err)
	case o.Long != nil:
		return reply, true
	}
	for i, image := range writes {
		if image != nil {
			c[s.Writes()[i].Name] = image
		}
	}
	return o.Replies[0], false
}

// compare demands that the images are what is stored.
func (c column) compare(t *testing.T, stored memory) {
	for name, image := range c {
		key := forerun.Key{Space: "space", Name: name}
		taken, err := takeImage(stored, time.UnixMilli(1000), key, math.MaxInt, math.MaxInt)
		if err != nil {
			t.Fatal(err)
		}
		got, want := image.(*Image), fmt.Sprint(taken.stored, taken.elements.n, taken.elements.size, taken.order.n, taken.order.size)
		if show := fmt.Sprint(got.stored, got.elements.n, got.elements.size, got.order.n, got.order.size); show != want {
			t.Errorf("the image of %q is %s, what is stored is %s", name, show, want)
		}
	}
}

// growing says whether a few bytes may make long strings.
func growing(args [][]byte) bool {
	long := func(arg []byte) bool { return len(arg) > 4 }
	name := strings.ToUpper(string(args[0]))
	return slices.Contains([]string{"SETRANGE", "SETBIT", "BITFIELD"}, name) && slices.ContainsFunc(args[1:], long)
}

// random says whether a command answers at random.
func random(name []byte) bool {
	return slices.Contains([]string{"SPOP", "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER", "RANDOMKEY"}, strings.ToUpper(string(name)))
}

// FuzzHyperLogLog reads what may claim to be a HyperLogLog, and counts and merges it.
func FuzzHyperLogLog(f *testing.F) {
	f.Add([]byte("HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"))
	f.Add([]byte("HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xfe\x84"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		m := &machine{memory: memory{}}
		for _, args := range [][]string{{"SET", "a", string(stored)}, {"PFADD", "a", "x"}, {"PFMERGE", "b", "a"}} {
			if reply, err := m.run(args...); err != nil || reply.Kind == state.Error {
				return
			}
		}
		a, _ := m.run("PFCOUNT", "a")
		b, _ := m.run("PFCOUNT", "b")
		if a.Int != b.Int || a.Int < 1 {
			t.Errorf("%q counts %d, its copy %d", stored, a.Int, b.Int)
		}
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
