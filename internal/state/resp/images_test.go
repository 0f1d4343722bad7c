package resp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/test/history"
)

// column is what one execution sees and does, as speculation keeps it: nothing of it is in the store before promote.
type column struct {
	images  map[forerun.Key]state.Image
	expect  []state.Expect
	buffer  []state.Command
	touched []forerun.Key
}

// twins are a store in which commands are executed at once, and one for which they are executed on images before.
type twins struct {
	*testing.T
	plain, ahead *embedded.Store
	executor     command.Executor
	column       column
	now          time.Time
	log          []string
}

const imagesSpace = "images"

func newTwins(t *testing.T) *twins {
	w := &twins{T: t, now: time.UnixMilli(1_800_000_000_000), column: column{images: make(map[forerun.Key]state.Image)}}
	for _, s := range []**embedded.Store{&w.plain, &w.ahead} {
		var err error
		if *s, err = embedded.Open("store", embedded.Options{FS: vfs.NewMem(), Now: func() time.Time { return w.now }}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*s).Close() })
	}
	return w
}

func rawArgs(args []string) [][]byte {
	raw := make([][]byte, len(args))
	for i, arg := range args {
		raw[i] = []byte(arg)
	}
	return raw
}

// onImages executes a step that does not hold, as a speculative execution does.
func (w *twins) onImages(s *command.Step) command.Outcome {
	w.Helper()
	var missing []forerun.Key
	for _, k := range s.Reads() {
		if w.column.images[k] == nil {
			missing = append(missing, k)
		}
	}
	fetched, err := w.ahead.Fetch(context.Background(), missing...)
	if err != nil {
		w.Fatal(err)
	}
	for i, f := range fetched {
		w.column.images[missing[i]] = f.Image
		w.column.expect = append(w.column.expect, state.Expect{Key: missing[i], Version: f.Version})
	}
	reads := make([]state.Image, len(s.Reads()))
	before := make([]string, len(reads))
	for i, k := range s.Reads() {
		reads[i] = w.column.images[k]
		before[i] = w.content(k, reads[i])
	}
	o, writes := w.executor.Execute(s, reads)
	for i, k := range s.Reads() {
		if after := w.content(k, reads[i]); after != before[i] {
			w.Errorf("the image of %q was %s and is %s", k.Name, before[i], after)
		}
	}
	for i, image := range writes {
		if image != nil {
			w.column.images[s.Writes()[i]] = image
		}
	}
	if writes != nil && len(s.Writes()) > 0 {
		w.column.buffer = append(w.column.buffer, s.Replay()...)
		w.column.touched = append(w.column.touched, s.Writes()...)
	}
	return o
}

// reading are the commands that show all of a record.
var reading = []string{"TYPE", "PEXPIRETIME", "GET", "HGETALL", "LRANGE 0 -1", "SMEMBERS", "ZRANGE 0 -1 WITHSCORES", "ZCOUNT (0 (1", "ZRANGE 2 5 REV"}

// content shows what is in an image.
func (w *twins) content(k forerun.Key, image state.Image) string {
	var b strings.Builder
	for _, line := range reading {
		words := strings.Fields(line)
		o, _ := w.executor.Execute(command.NewStep(imagesSpace, w.now, rawArgs(slices.Insert(words, 1, k.Name))), []state.Image{image})
		fmt.Fprintf(&b, "%v %v; ", o.Replies, o.Err)
	}
	return b.String()
}

// stored shows what is in a store.
func (w *twins) stored(s *embedded.Store, k forerun.Key) string {
	var b strings.Builder
	for _, line := range reading {
		words := strings.Fields(line)
		reply, _, err := s.Do(context.Background(), state.Command{Space: imagesSpace, Args: rawArgs(slices.Insert(words, 1, k.Name))})
		fmt.Fprintf(&b, "%v %v; ", []state.Reply{reply}, err)
	}
	return b.String()
}

// promote applies what was buffered, and compares the images with the records that they were of, and the stores.
func (w *twins) promote() {
	w.Helper()
	if _, _, err := w.ahead.Exec(context.Background(), w.column.expect, w.column.buffer); err != nil {
		w.Fatal(err)
	}
	for k, image := range w.column.images {
		if got, want := w.content(k, image), w.stored(w.ahead, k); got != want {
			w.fail("the image of %q is %s, the record %s", k.Name, got, want)
		}
	}
	for _, k := range w.column.touched {
		if got, want := w.stored(w.ahead, k), w.stored(w.plain, k); got != want {
			w.fail("%q is %s, want %s", k.Name, got, want)
		}
	}
	w.column = column{images: make(map[forerun.Key]state.Image)}
	w.log = nil
}

func (w *twins) fail(format string, args ...any) {
	w.Helper()
	w.Fatalf("%s:\n%s", fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
}

// compare demands equal replies; nil and empty slices are the same.
func (w *twins) compare(s *command.Step, got, want []state.Reply) {
	w.Helper()
	if g, h := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != h {
		w.fail("%v answers %s, want %s", s.Commands(), g, h)
	}
}

// TestImagesAreRecords executes random commands and transactions on a store, and ahead of another on images: replies are
// equal, and so are the records when the commands have been replayed.
func TestImagesAreRecords(t *testing.T) {
	for seed, rng := range history.Rounds(t) {
		t.Logf("seed %d", seed)
		compareImages(t, rng)
	}
}

func compareImages(t *testing.T, rng *rand.Rand) {
	t.Helper()
	w := newTwins(t)
	for range 1500 {
		var commands [][][]byte
		for range 1 + max(0, rng.IntN(8)-5) {
			args := sentence(rng)
			if rng.IntN(4) == 0 {
				args = keysSentence(rng)
			}
			commands = append(commands, rawArgs(args))
		}
		s := command.NewTransaction(imagesSpace, w.now, nil, commands)
		w.log = append(w.log, fmt.Sprintf("%q", commands))
		if s.Holds() {
			if slices.ContainsFunc(commands, func(args [][]byte) bool { return isRandom(strings.ToUpper(string(args[0]))) }) {
				continue
			}
			w.promote()
			w.compare(s, w.direct(w.ahead, s), w.direct(w.plain, s))
			continue
		}
		o := w.onImages(s)
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		w.compare(s, o.Replies, w.direct(w.plain, s))
		if rng.IntN(20) == 0 {
			w.promote()
		}
	}
	w.promote()
}

// direct executes a step in a store, as a head, and checks what the store says of what it read and wrote.
func (w *twins) direct(store *embedded.Store, s *command.Step) []state.Reply {
	w.Helper()
	ctx := context.Background()
	touched := append(slices.Clone(s.Reads()), s.Writes()...)
	before, err := store.Get(ctx, touched...)
	if err != nil {
		w.Fatal(err)
	}
	got, err := store.Observe(ctx, s.Expect(), s.Commands())
	if err != nil {
		w.Fatal(err)
	}
	after, err := store.Get(ctx, touched...)
	if err != nil {
		w.Fatal(err)
	}
	var reads []state.Expect
	for i, k := range s.Reads() {
		reads = append(reads, state.Expect{Key: k, Version: before[i].Version})
	}
	if !reflect.DeepEqual(got.Reads, reads) && !s.Holds() {
		w.fail("%v read %v, says %v", s.Commands(), reads, got.Reads)
	}
	for i, k := range touched {
		if before[i].Version != after[i].Version && !slices.Contains(got.Wrote, k) {
			w.fail("%v wrote %q, says %v", s.Commands(), k.Name, got.Wrote)
		}
	}
	for _, k := range got.Wrote {
		if !slices.Contains(s.Writes(), k) && !s.Holds() {
			w.fail("%v wrote %q, which it had not named", s.Commands(), k.Name)
		}
	}
	if got.Exact == (s.Inexact() != "") {
		w.fail("%v: exact %v", s.Commands(), got.Exact)
	}
	return got.Replies
}

// TestPromoteIsRefused lets another client write one of the records that were read.
func TestPromoteIsRefused(t *testing.T) {
	w := newTwins(t)
	say := func(line string) state.Reply {
		t.Helper()
		o := w.onImages(command.NewStep(imagesSpace, w.now, rawArgs(strings.Fields(line))))
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		return o.Replies[0]
	}
	other := func(line string) {
		t.Helper()
		if _, _, err := w.ahead.Do(context.Background(), state.Command{Space: imagesSpace, Args: rawArgs(strings.Fields(line))}); err != nil {
			t.Fatal(err)
		}
	}
	for line, conflicts := range map[string]bool{"INCR a": true, "DEL a": true, "PEXPIRE a 5000": true, "SET blind x": false, "SET elsewhere x": false} {
		other("SET a 1")
		if r := say("INCR a"); r.Int != 2 {
			t.Errorf("INCR answers %d", r.Int)
		}
		say("SET blind y")
		other(line)
		_, _, err := w.ahead.Exec(context.Background(), w.column.expect, w.column.buffer)
		conflict, _ := errors.AsType[*state.ConflictError](err)
		if (conflict != nil) != conflicts || conflicts && (len(conflict.Keys) != 1 || conflict.Keys[0].Name != "a") {
			t.Errorf("after %s: %v", line, err)
		}
		w.column = column{images: make(map[forerun.Key]state.Image)}
	}
}

// TestTransactionsOnImages watches records, as a client that is ahead does.
func TestTransactionsOnImages(t *testing.T) {
	for between, executed := range map[string]bool{"": true, "GET a": true, "SET b 1": true, "INCR a": false, "SET a 1": false, "DEL a": false, "DEL missing": true, "INCR new": false} {
		w := newTwins(t)
		if _, _, err := w.ahead.Do(context.Background(), state.Command{Space: imagesSpace, Args: rawArgs([]string{"SET", "a", "1"})}); err != nil {
			t.Fatal(err)
		}
		keys := []forerun.Key{{Space: imagesSpace, Name: "a"}, {Space: imagesSpace, Name: "new"}}
		seen := w.onImages(command.NewLook(keys)).Seen
		if len(seen) != 2 || seen[0].Version == 0 || seen[1].Version != 0 {
			t.Fatalf("seen %v", seen)
		}
		if between != "" {
			w.onImages(command.NewStep(imagesSpace, w.now, rawArgs(strings.Fields(between))))
		}
		o := w.onImages(command.NewTransaction(imagesSpace, w.now, seen, [][][]byte{rawArgs([]string{"LPUSH", "a", "x"}), rawArgs([]string{"INCR", "a"})}))
		conflict, _ := errors.AsType[*state.ConflictError](o.Err)
		if (conflict == nil) != executed || executed && (o.Replies[0].Kind != state.Error || o.Replies[1].Int < 2) {
			t.Errorf("after %q: %v, %+v", between, o.Err, o.Replies)
		}
	}
}

// TestLivesOfAColumn has time pass while random commands give lives to records, on a store and ahead of another on images: what they
// see of the records they wrote ends when it ends, and what was promoted later ends when it would have.
func TestLivesOfAColumn(t *testing.T) {
	for seed, rng := range history.Rounds(t) {
		t.Logf("seed %d", seed)
		compareLives(t, rng)
	}
}

func compareLives(t *testing.T, rng *rand.Rand) {
	t.Helper()
	lines := []string{
		"SET k 1 PX 20", "SET k 5", "SET k 2 KEEPTTL", "PSETEX k 30 3", "INCR k", "APPEND k 4", "GET k", "EXISTS k", "PEXPIRE k 15", "PEXPIRE k 40 NX", "PERSIST k",
		"PTTL k", "GETEX k PX 25", "DEL k", "SETNX k 7", "RPUSH k x", "LRANGE k 0 -1", "RENAME k j", "COPY k j", "GETDEL k", "PEXPIREAT k 1800000000050", "SET k 9 PXAT 1800000000030",
	}
	for range 300 {
		w := newTwins(t)
		for range 25 {
			line := lines[rng.IntN(len(lines))]
			if rng.IntN(2) == 0 {
				line = strings.NewReplacer("k", "j", "j", "k").Replace(line)
			}
			w.now = w.now.Add(time.Duration(rng.IntN(12)) * time.Millisecond)
			s := command.NewStep(imagesSpace, w.now, rawArgs(strings.Fields(line)))
			if s.Holds() {
				continue
			}
			w.log = append(w.log, fmt.Sprint(w.now.UnixMilli(), " ", line))
			o := w.onImages(s)
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			w.compare(s, o.Replies, w.direct(w.plain, s))
		}
		w.now = w.now.Add(time.Duration(rng.IntN(40)) * time.Millisecond)
		w.promote()
	}
}

// TestDeadStayDead has another client's record live and end between what a slot did and its promotion.
func TestDeadStayDead(t *testing.T) {
	for _, line := range []string{"INCR a", "SET a 1 NX", "APPEND a 1", "SET a 1 KEEPTTL"} {
		w := newTwins(t)
		w.onImages(command.NewStep(imagesSpace, w.now, rawArgs(strings.Fields(line))))
		w.now = w.now.Add(5 * time.Millisecond)
		if _, _, err := w.ahead.Do(context.Background(), state.Command{Space: imagesSpace, Args: rawArgs(strings.Fields("SET a 5 PX 10"))}); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(20 * time.Millisecond)
		if _, _, err := w.ahead.Exec(context.Background(), w.column.expect, w.column.buffer); err != nil {
			t.Fatal(err)
		}
		got, _, err := w.ahead.Do(context.Background(), state.Command{Space: imagesSpace, Args: rawArgs([]string{"GET", "a"})})
		if err != nil || string(got.Text) != "1" {
			t.Errorf("%s: it is %q, %v", line, got.Text, err)
		}
	}
}

// TestRecordsDoNotExpireInAColumn has a slot read a record that expires meanwhile (rule R1).
func TestRecordsDoNotExpireInAColumn(t *testing.T) {
	w := newTwins(t)
	set := state.Command{Space: imagesSpace, Args: rawArgs([]string{"SET", "a", "1", "PX", "100"})}
	if _, _, err := w.ahead.Do(context.Background(), set); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o := w.onImages(command.NewStep(imagesSpace, w.now, rawArgs([]string{"STRLEN", "a"})))
		if len(o.Replies) != 1 || o.Replies[0].Int != 1 {
			t.Errorf("%+v", o)
		}
		w.now = w.now.Add(time.Second)
	}
	_, _, err := w.ahead.Exec(context.Background(), w.column.expect, w.column.buffer)
	if conflict, is := errors.AsType[*state.ConflictError](err); !is || len(conflict.Keys) != 1 {
		t.Errorf("what has expired is another version: %v", err)
	}
}
