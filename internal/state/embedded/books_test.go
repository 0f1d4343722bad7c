package embedded

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// accounting gives each space named TENANT/PART its tenant; others are nobody's. allowed is what every tenant may store.
func accounting(allowed state.Allowance) Accounting {
	return Accounting{
		Owner: func(space, _ []byte) ([]byte, state.Part) {
			tenant, part, ok := bytes.Cut(space, []byte("/"))
			if !ok {
				return nil, 0
			}
			switch string(part) {
			case "code":
				return tenant, state.Code
			case "records":
				return tenant, state.Records
			}
			return tenant, state.Values
		},
		Allowed: func(string) state.Allowance { return allowed },
	}
}

// exact fails if an account is not what is stored.
func exact(t *testing.T, s *Store, after string) {
	t.Helper()
	snapshot, _ := s.accountsNow()
	defer snapshot.Close()
	counted, err := s.count(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	for tenant, a := range *s.books.accounts.Load() {
		if got := a.stored(); got != counted[tenant] {
			t.Fatalf("%s: the account of %s is %v, and %v is stored", after, tenant, got, counted[tenant])
		}
	}
}

// lines are commands of every type: K is a key, N a number, M a member, and V a value. Many make collections so large that they are
// cleared as a range.
var lines = []string{
	"SET K V", "SET K V", "SET K V EX 100", "SETEX K 100 V", "GETSET K V", "APPEND K V", "SETRANGE K N V", "SETBIT K N 1", "INCR K", "GETDEL K", "MSET K V K V",
	"DEL K", "DEL K K K", "EXPIRE K 100", "PERSIST K", "RENAME K K", "COPY K K REPLACE", "BITOP AND K K K", "PFADD K M M", "PFMERGE K K",
	"RPUSH K V V M", "LPUSH K V M", "RPUSH K *", "LPOP K", "RPOP K N", "LTRIM K N N", "LSET K N V", "LINSERT K BEFORE M V", "LREM K 0 M", "LMOVE K K LEFT RIGHT", "SORT K ALPHA STORE K",
	"HSET K M V M V", "HSET K * PAIRS", "HDEL K M M", "HINCRBY K M 5", "HSETNX K M V",
	"SADD K M M M", "SADD K *", "SREM K M", "SPOP K", "SPOP K N", "SMOVE K K M", "SUNIONSTORE K K K", "SDIFFSTORE K K K",
	"ZADD K N M N M", "ZADD K * SCORES", "ZINCRBY K N M", "ZREM K M M", "ZPOPMIN K", "ZPOPMAX K N", "ZREMRANGEBYRANK K 0 N", "ZREMRANGEBYSCORE K 0 N", "ZUNIONSTORE K 2 K K", "ZRANGESTORE K K 0 N",
	"FLUSHDB",
}

func randomCommand(rng *rand.Rand) [][]byte {
	var args [][]byte
	words := strings.Fields(lines[rng.IntN(len(lines))])
	if words[0] == "FLUSHDB" && rng.IntN(10) > 0 {
		words = strings.Fields("SET K V")
	}
	for _, word := range words {
		switch word {
		case "K":
			word = fmt.Sprint("k", rng.IntN(6))
		case "M":
			word = fmt.Sprint("m", rng.IntN(20))
		case "N":
			word = fmt.Sprint(rng.IntN(20))
		case "V":
			word = strings.Repeat("v", 1+rng.IntN(100))
		case "*":
			for i := range 80 + rng.IntN(40) {
				if words[0] == "ZADD" {
					args = append(args, []byte(fmt.Sprint(rng.IntN(50))))
				}
				args = append(args, []byte(fmt.Sprint("m", i)))
				if words[0] == "HSET" {
					args = append(args, []byte("x"))
				}
			}
			continue
		case "PAIRS", "SCORES":
			continue
		}
		args = append(args, []byte(word))
	}
	return args
}

// TestAccountsAreExact executes commands at random, one by one and several as a step, and compares the accounts with what is stored.
func TestAccountsAreExact(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Now: func() time.Time { return now }, Stored: accounting(state.Allowance{Bytes: -1})})
	defer closed(t, s)
	defer s.Watch(func(forerun.Key, forerun.Version) {})()
	rng := rand.New(rand.NewPCG(1, 2))
	done := make(map[string]int)
	for n := range 3000 {
		space := []string{"ada/values", "bob/values", "bob/code", "nobody"}[rng.IntN(4)]
		var commands [][][]byte
		for range 1 + rng.IntN(4)*rng.IntN(2) {
			commands = append(commands, randomCommand(rng))
		}
		replies, _, err := state.ExecIn(t.Context(), s, space, nil, commands)
		if err != nil {
			t.Fatal(err)
		}
		for i, reply := range replies {
			if reply.Kind != state.Error {
				done[string(commands[i][0])]++
			}
		}
		if rng.IntN(50) == 0 { // some expire
			now = now.Add(99 * time.Second)
			s.sweep()
		}
		if n%8 == 0 {
			exact(t, s, fmt.Sprintf("step %d, %q in %s", n, commands, space))
		}
	}
	for _, line := range lines {
		if name, _, _ := strings.Cut(line, " "); done[name] == 0 {
			t.Errorf("no %s was executed", name)
		}
	}
}

// TestAccountsOfRecords: what is written without a look at what is there counts, and what is dropped.
func TestAccountsOfRecords(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Stored: accounting(state.Allowance{Bytes: 0})})
	defer closed(t, s)
	for _, name := range []string{"a", "b", "c"} {
		txn := lazySet(name, bigValue())
		txn.Ops[0].Space, txn.Ops[0].Fresh, txn.Owed = "ada/records", true, true
		if _, err := s.Apply(t.Context(), txn); err != nil {
			t.Fatal(err) // though she may store nothing: it is the record of an activation
		}
	}
	exact(t, s, "written")
	if stored, most := s.Stored("ada"); stored.Total() != stored[state.Records] || stored.Total() < int64(3*len(bigValue())) || most != 0 {
		t.Errorf("%v of %d", stored, most)
	}
	if err := s.Drop(t.Context(), state.Range{Space: "ada/records", From: "a", To: "c"}); err != nil {
		t.Fatal(err)
	}
	exact(t, s, "dropped")
	if err := s.EraseSpace(t.Context(), "ada/records"); err != nil {
		t.Fatal(err)
	}
	if stored, _ := s.Stored("ada"); stored != (state.Stored{}) {
		t.Errorf("%v is left", stored)
	}
}

// TestAccountsAfterStart: a store that was closed knows its accounts when it is opened. One that was not knows about what they are,
// and counts.
func TestAccountsAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		options := Options{FS: fs, Stored: accounting(state.Allowance{Bytes: -1})}
		s := mustOpen(t, "store", options)
		time.Sleep(time.Second) // it has counted nothing
		for n := range 10 {
			set(t, s, "ada/values", fmt.Sprint(n), 30_000)
		}
		before, _ := s.Stored("ada")
		closed(t, s)
		s = mustOpen(t, "store", options)
		if after, _ := s.Stored("ada"); after != before || !s.books.counted.Load() {
			t.Errorf("closed with %v, opened with %v, counted: %t", before, after, s.books.counted.Load())
		}
		if err := s.db.Set(append(bytes.Clone(accountPrefix), "ada"...), make([]byte, state.Parts-1), nil); err != nil { // as a version with fewer parts did
			t.Fatal(err)
		}
		closed(t, s)
		s = mustOpen(t, "store", options)
		time.Sleep(time.Minute)
		exact(t, s, "opened with an account that lacks a part")
		if after, _ := s.Stored("ada"); after != before {
			t.Errorf("stored: %v, before with all parts %v", after, before)
		}
		set(t, s, "ada/values", "more", 100_000)
		set(t, s, "ada/values", "again", 10_000)
		before, _ = s.Stored("ada")
		options.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
		closed(t, s)

		s = mustOpen(t, "store", options)
		defer closed(t, s)
		if after, _ := s.Stored("ada"); before.Total()-after.Total() > saveEvery || after.Total() > before.Total() {
			t.Errorf("killed with %v, opened with %v", before, after)
		}
		set(t, s, "ada/values", "meanwhile", 1000)
		time.Sleep(time.Minute)
		exact(t, s, "counted")
		if after, _ := s.Stored("ada"); !s.books.counted.Load() || after.Total() < before.Total()+1000 {
			t.Errorf("killed with %v, counted %v", before, after)
		}
	})
}

func set(t *testing.T, s *Store, space, name string, bytes int) {
	t.Helper()
	if err := trySet(t, s, space, name, bytes); err != nil {
		t.Fatal(err)
	}
	last, _ := s.commits.newest()
	if err := s.Durable(t.Context(), last); err != nil {
		t.Fatal(err)
	}
}

func trySet(t *testing.T, s *Store, space, name string, bytes int) error {
	_, _, err := s.Do(t.Context(), state.Command{Space: space, Args: [][]byte{[]byte("SET"), []byte(name), make([]byte, bytes)}})
	return err
}

// TestOverQuota refuses what makes a tenant store more than it may, and nothing else.
func TestOverQuota(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Stored: accounting(state.Allowance{Bytes: 100 << 10})})
	defer closed(t, s)
	set(t, s, "ada/values", "a", 40<<10)
	set(t, s, "ada/code", "a", 40<<10)
	refused := func(space string, bytes int) {
		t.Helper()
		err := trySet(t, s, space, "b", bytes)
		if forerun.KindOf(err) != forerun.OverQuota || err == nil {
			t.Fatalf("%d bytes more: %v", bytes, err)
		}
		for _, part := range []string{"ada may store 100.0 KiB", "state 40.0 KiB, entities 0.0 KiB, code 40.0 KiB", "Delete something"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not say %q: %v", part, err)
			}
		}
	}
	refused("ada/values", 30<<10)
	refused("ada/code", 30<<10)
	set(t, s, "ada/values", "a", 39<<10) // less than before
	set(t, s, "ada/values", "b", 10<<10)
	set(t, s, "bob/values", "b", 90<<10)
	set(t, s, "nobody", "b", 900<<10)
	txn := lazySet("r", make([]byte, 90<<10))
	txn.Ops[0].Space = "ada/records"
	if _, err := s.Apply(t.Context(), txn); err != nil { // the oldest are removed, but this is not refused
		t.Fatal(err)
	}
	if err := trySet(t, s, "ada/values", "c", 1); forerun.KindOf(err) != forerun.OverQuota {
		t.Errorf("records count, too: %v", err)
	}
	if _, _, err := s.Do(t.Context(), state.Command{Space: "ada/values", Args: [][]byte{[]byte("DEL"), []byte("a")}}); err != nil {
		t.Fatal(err)
	}
	set(t, s, "ada/values", "a", 20<<10) // the records count for a quarter
	refused2 := trySet(t, s, "ada/values", "c", 20<<10)
	if forerun.KindOf(refused2) != forerun.OverQuota {
		t.Errorf("more than three quarters beside the records: %v", refused2)
	}
	for _, owed := range []bool{false, true} {
		txn := lazySet("d", make([]byte, 20<<10))
		txn.Ops[0].Space, txn.Owed = "ada/values", owed
		if _, err := s.Apply(t.Context(), txn); (err == nil) != owed {
			t.Errorf("more than three quarters, owed %v: %v", owed, err)
		}
	}
	exact(t, s, "at last")
}

// TestShareOfTheDisk: tenants who take all they can leave room for others, however many they are.
func TestShareOfTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newSmallFS()
		fs.set(256 << 20)
		s := mustOpen(t, "store", Options{FS: fs, Stored: accounting(state.Allowance{Bytes: -1, Share: 50})})
		defer closed(t, s)
		time.Sleep(2 * roomInterval)
		_, most := s.Stored("ada")
		left := s.room.left()
		if most != left/100*50 || most < 50<<20 {
			t.Fatalf("a new tenant may store %d of %d", most, left)
		}
		for i, tenant := range []string{"ada", "bob", "eve"} {
			n := 0
			for trySet(t, s, tenant+"/values", fmt.Sprint(n), 4<<20) == nil {
				n++
			}
			stored, _ := s.Stored(tenant)
			if share := left>>(i+1) + 4<<20; stored.Total() > share || // who came before has left a little more
				stored.Total() < share/2-8<<20 {
				t.Errorf("%s fills %v of %d", tenant, stored, left)
			}
		}
		if err := s.Room(); err != nil || s.room.left() < left/8-8<<20 {
			t.Errorf("%d is left: %v", s.room.left(), err)
		}
		set(t, s, "zoe/values", "a", 1000)
	})
}

// TestNoAccounts: a store that counts nothing says so.
func TestNoAccounts(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	if stored, most := s.Stored("ada"); stored != (state.Stored{}) || most != math.MaxInt64 {
		t.Errorf("%v of %d", stored, most)
	}
}
