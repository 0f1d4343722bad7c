package test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/compare"
	"forerun.dev/forerun/test/history"
)

// Functions beside which other clients write the same records. The counter "total" has three doubles of other types, which nobody
// changes but in one transaction with it. "first" is counted before "second". Others fill a queue that functions take from.
const othersHeader = sharedHeader + `
def twins():
    one, other = state.mget("total", "twin")
    with state.pipeline() as p:
        again = p.get("total").get("twin").hget("pair", "twin").llen("trail").execute()
    for seen in (one, other), again:
        numbers = [int(n or 0) for n in seen]
        print("get", numbers[0])
        if len(set(numbers)) > 1:
            raise Exception("the doubles are %s" % numbers)
    return numbers[0]
`

var othersFunctions = map[string]string{
	"look": `
def main(args):
    twins()
    time.sleep(0.001 * args["k"])
    twins()
    return args
`,
	"turn": `
def main(args):
    me = os.environ["__OW_ACTIVATION_ID"]
    with state.pipeline() as p:
        *numbers, _ = p.incr("total").incr("twin").hincrby("pair", "twin", 1).rpush("trail", me).rpush("pushed", me).execute()
    print("made", numbers[0])
    if len(set(numbers)) > 1:
        raise Exception("the doubles are %s" % numbers)
    time.sleep(0.003)
    return args
`,
	"step": `
def main(args):
    state.incr("first")
    time.sleep(0.001)
    state.incr("second")
    print("stepped 1")
    return args
`,
	"take": `
def main(args):
    print("took", state.lpop("queue") or 0)
    return args
`,
	"tell": `
def main(args):
    return args | {"seen": twins() // 40}
`,
	"hear": `
def main(args):
    n = twins()
    if n // 40 < args["seen"]:
        raise Exception("%d is older than %s" % (n, args))
    return {"k": args["k"]}
`,
}

// TestDifferentialOthers has clients invoke programs, on a server that runs ahead and on one that does not, while other clients write
// the records that these use. What is seen is not the same then, but on both it must be what is seen where one thing happens after
// the other: doubles are always equal, nothing goes back, no increment is lost, and each item of the queue is taken once, in turn.
func TestDifferentialOthers(t *testing.T) {
	t.Parallel()
	outside, seed, goOn := needOutside(t), history.Seed(t), history.Soak(t)
	plain, ahead := deployOthers(t, differing(t, outside, []string{"--speculate", "off"})), deployOthers(t, differing(t, outside, []string{"--speculate", "all; least=0s; load=any"}))
	const rounds = 20 // on a machine that is busy otherwise little runs ahead
	for round := 0; (round == 0 || goOn() || !hasSquashed(ahead.side) && round < rounds) && !t.Failed(); round++ {
		for _, o := range []*others{plain, ahead} {
			o.round(t, uint64(round)<<32^seed)
		}
	}
	early, used, squashed := ahead.side.Tally()
	t.Logf("ahead: %d; of these used: %d, squashed: %d", early, used, squashed)
	if !hasSquashed(ahead.side) {
		t.Error("nothing ran ahead, or nothing was in each other's way")
	}
	if early, _, _ = plain.side.Tally(); early > 0 {
		t.Errorf("%d ran ahead where that is off", early)
	}
}

// others is a server whose records functions and other clients share.
type others struct {
	side *compare.Side
	all  []shared
	fed  int
}

func deployOthers(t *testing.T, side *compare.Side) *others {
	t.Helper()
	code := make(map[string]string)
	for name, text := range othersFunctions {
		code[name] = othersHeader + text
	}
	putPython(t, side.Client, code)
	for _, sequence := range [][]string{{"changes", "look", "turn", "look", "step", "turn"}, {"takes", "take", "look", "take", "step", "take"}, {"tells", "tell", "hear", "tell", "turn", "hear"}} {
		if err := side.Client.PutSequence(t.Context(), sequence[0], sequence[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	return &others{side: side}
}

// round makes a round of invocations and checks all that was seen since the beginning.
func (o *others) round(t *testing.T, seed uint64) {
	t.Helper()
	o.all = append(o.all, shareRecords(t, o.side, seed, []string{"changes", "takes", "tells"}, turnAlong, turnAlong, lookAlong, o.feed)...)
	readLogs(t, o.side, o.all)
	checkCounter(t, o.side, o.all)
	different(t, "pushed", o.side.State.LRange(t.Context(), "trail", 0, -1).Val())
	if _, err := lookAlong(t.Context(), o.side.State); err != nil {
		t.Error(err)
	}
	steps := strconv.Itoa(len(sawOf(o.all, "stepped")))
	if seen := o.side.State.MGet(t.Context(), "first", "second").Val(); seen[0] != steps || seen[1] != steps {
		t.Errorf("%s steps were counted as %v", steps, seen)
	}
	o.checkQueue(t)
}

// checkQueue checks that the items that were taken are the first ones, each once, and those after them are there in order.
func (o *others) checkQueue(t *testing.T) {
	t.Helper()
	items := slices.DeleteFunc(sawOf(o.all, "took"), func(n int) bool { return n == 0 })
	slices.Sort(items)
	taken := len(items)
	for _, item := range o.side.State.LRange(t.Context(), "queue", 0, -1).Val() {
		n, err := strconv.Atoi(item)
		if err != nil {
			t.Error(err)
		}
		items = append(items, n)
	}
	if len(items) != o.fed {
		t.Errorf("of %d items %d were taken and %d are there", o.fed, taken, len(items)-taken)
	}
	for i, n := range items {
		if n != i+1 {
			t.Fatalf("%d items were taken, and with those that are left they are %v", taken, items)
		}
	}
	for _, s := range o.all {
		if took := slices.DeleteFunc(sawOf([]shared{s}, "took"), func(n int) bool { return n == 0 }); !slices.IsSorted(took) {
			t.Errorf("%s %s took %v", s.name, s.id, took)
		}
	}
}

// turnAlong changes the counter with its doubles.
func turnAlong(ctx context.Context, state *redis.Client) ([]saw, error) {
	var n, twin, pair, trail *redis.IntCmd
	_, err := state.TxPipelined(ctx, func(p redis.Pipeliner) error {
		n, twin, pair = p.Incr(ctx, "total"), p.Incr(ctx, "twin"), p.HIncrBy(ctx, "pair", "twin", 1)
		trail = p.RPush(ctx, "trail", rand.Text())
		return nil
	})
	if err == nil && (twin.Val() != n.Val() || pair.Val() != n.Val() || trail.Val() != n.Val()) {
		err = fmt.Errorf("the doubles are %d, %d, %d and %d", n.Val(), twin.Val(), pair.Val(), trail.Val())
	}
	return []saw{{"counted", int(n.Val())}}, err
}

// lookAlong looks at the counter and its doubles, and at the steps.
func lookAlong(ctx context.Context, state *redis.Client) ([]saw, error) {
	var numbers []*redis.StringCmd
	var trail *redis.IntCmd
	_, err := state.TxPipelined(ctx, func(p redis.Pipeliner) error {
		numbers = []*redis.StringCmd{p.Get(ctx, "total"), p.Get(ctx, "twin"), p.HGet(ctx, "pair", "twin"), p.Get(ctx, "first"), p.Get(ctx, "second")}
		trail = p.LLen(ctx, "trail")
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	var n [5]int
	for i, number := range numbers {
		n[i], _ = number.Int() // 0: it is not there yet
	}
	if n[1] != n[0] || n[2] != n[0] || int(trail.Val()) != n[0] || n[3] < n[4] {
		return nil, fmt.Errorf("the doubles are %v and %d, steps %v", n[:3], trail.Val(), n[3:])
	}
	return []saw{{"get", n[0]}}, nil
}

// feed adds an item to the queue.
func (o *others) feed(ctx context.Context, state *redis.Client) ([]saw, error) {
	o.fed++
	return nil, state.RPush(ctx, "queue", o.fed).Err()
}
