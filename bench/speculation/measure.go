package speculation

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/workloads"
)

const (
	// busy is how many requests are under way when the capacity is measured.
	busy = 16
	// training is for how long requests come in each mode before anything counts, so many at a time, of so many streams: as where an
	// application has been served for a while, most customers have asked for the same before. For a rough look it is no shorter: that
	// would measure how the tables learn.
	training, trainingAtOnce, trainingStreams = 16 * time.Second, 4, 8
	// trainingStream is the first of those streams, none of which is measured.
	trainingStream = 200
)

// measurement is a part of what is measured of an application, or something apart from them.
type measurement struct {
	name, about string
	run         func(ctx context.Context, b *bench) error
}

// parts are what is measured of each application.
func parts() []measurement {
	return []measurement{
		{name: "load", about: "answers to requests that come at random, at 20, 50 and 80% of the capacity"},
		{name: "low", about: "of that the answers at 20% alone: the headline, in a quarter of the time"},
		{name: "throughput", about: "answers in a second, a fixed number of requests under way"},
	}
}

// measured is what was measured of one application.
type measured struct {
	*subject
	bounds                      // zero if they are not known
	alone    float64            // ms: the mean answer of the baseline to one request at a time
	capacity float64            // requests in a second that the baseline answered before all loads
	profile  *workloads.Profile // nil if there is none
	loads    []*loaded
	naive    *loaded // with squashes that end sandboxes; nil if it is not measured
	served   []served
}

// bounds are the speedups that Amdahl's law leaves: if all functions begin at once, and if effects begin in their turn, as they must.
type bounds struct{ plain, inTurn float64 }

// loaded is one load: what was measured in each mode.
type loaded struct {
	share   float64 // of the capacity
	rate    float64 // requests in a second, on average of the rounds
	rounds  int
	mode    map[string]*result
	leftOut int // rounds that do not count, as the machine's neighbours disturbed them
}

// result is what was measured in one mode.
type result struct {
	ms      []float64 // answers, in the order in which their requests were due
	took    time.Duration
	cpu     time.Duration
	strange time.Duration // processor time of what has nothing to do with it
	stolen  time.Duration // processor time that the machine did not get
	wasted  float64       // seconds of the processors that squashed functions took
	cold    float64       // sandboxes that were started
	ahead   outcomes
}

// cpuPer is the processor time of each request in milliseconds.
func (r *result) cpuPer() float64 { return r.cpu.Seconds() * 1000 / float64(len(r.ms)) }

// wastedPer is what of cpuPer squashed functions took.
func (r *result) wastedPer() float64 { return r.wasted * 1000 / float64(len(r.ms)) }

// others is how many processors worked for something else.
func (r *result) others() float64 { return r.strange.Seconds() / r.took.Seconds() }

// stolenShare is the share of the processors' time that the machine did not get.
func (r *result) stolenShare() float64 {
	return r.stolen.Seconds() / r.took.Seconds() / float64(runtime.NumCPU())
}

// subject measures one application on a server of its own.
func (b *bench) subject(ctx context.Context, s *subject) error {
	on, err := b.start(ctx, s)
	if err != nil {
		return err
	}
	defer on.stop(b)
	m := &measured{subject: s, bounds: bounds{s.bound, s.bound}}
	shares := b.shares()
	if s.profile != nil && len(shares) > 0 {
		if err := b.profile(ctx, on, m); err != nil {
			return err
		}
	}
	if err := b.prepare(ctx, on, m); err != nil {
		return err
	}
	if err := b.loads(ctx, on, m, shares, append(modes(), again)...); err != nil {
		return err
	}
	if b.measures("throughput") {
		if m.served, err = b.throughput(ctx, on); err != nil {
			return err
		}
	}
	if b.measures("load") {
		if m.naive, err = b.naive(ctx, on, m); err != nil {
			return err
		}
	}
	b.measured = append(b.measured, m)
	return nil
}

// shares are those of the capacity at which answers are measured.
func (b *bench) shares() []float64 {
	switch {
	case b.measures("load"):
		return []float64{0.2, 0.5, 0.8}
	case b.measures("low"):
		return []float64{0.2}
	}
	return nil
}

// naive measures what squashes cost that end sandboxes, at the lowest load. Nothing is measured behind it: fewer sandboxes are left.
func (b *bench) naive(ctx context.Context, on *started, m *measured) (*loaded, error) {
	l, err := b.load(ctx, on, m, 0.2, append([]string{"off", "all"}, m.naiveModes()...)...)
	if err != nil {
		return nil, fmt.Errorf("with squashes that end sandboxes: %w", err)
	}
	return l, nil
}

// loads measures some loads.
func (b *bench) loads(ctx context.Context, on *started, m *measured, shares []float64, modes ...string) error {
	for _, share := range shares {
		l, err := b.load(ctx, on, m, share, modes...)
		if err != nil {
			return fmt.Errorf("at %.0f%% of the capacity, about %.1f/s: %w", share*100, m.capacity, err)
		}
		m.loads = append(m.loads, l)
	}
	return nil
}

// profile measures the bounds.
func (b *bench) profile(ctx context.Context, on *started, m *measured) error {
	requests := 40
	if b.quick {
		requests = 15
	}
	p, err := on.profile(ctx, on.client, requests)
	if err != nil {
		return fmt.Errorf("its profile: %w", err)
	}
	m.profile, m.bounds = p, bounds{p.Bound, p.TurnBound}
	return on.deploy(ctx, on.client, on.server)
}

// prepare warms all up, has the tables learn, and measures the baseline alone and its capacity.
func (b *bench) prepare(ctx context.Context, on *started, m *measured) error {
	for _, mode := range modes() {
		for stream := range uint64(trainingStreams) {
			if _, err := on.flood(ctx, trainingAtOnce, trainingStream+stream, mode, training/trainingStreams); err != nil {
				return fmt.Errorf("the first requests: %w", err)
			}
		}
	}
	alone, err := on.flood(ctx, 1, 1, "off", b.lasting(4*time.Second))
	if err != nil {
		return err
	}
	m.alone = harness.Mean(alone.ms)
	if m.capacity, err = b.capacity(ctx, on); err != nil {
		return err
	}
	if err := b.warm(ctx, on, &loaded{share: 0.5, rate: m.capacity / 2}, "all"); err != nil {
		return err
	}
	b.progress("%s: %.1f ms alone, capacity %.1f/s", m.slug, m.alone, m.capacity)
	return nil
}

// capacity is how many requests in a second the baseline answers, once it has all the sandboxes that it needs for that.
func (b *bench) capacity(ctx context.Context, on *started) (float64, error) {
	var calm, all []float64
	for stream := range uint64(warmest) {
		before, err := on.read(ctx)
		if err != nil {
			return 0, err
		}
		full, err := on.flood(ctx, busy, 2+stream, "off", b.lasting(4*time.Second))
		if err != nil {
			return 0, err
		}
		after, err := on.read(ctx)
		if err != nil {
			return 0, err
		}
		all = append(all, full.perSecond())
		if after.cold == before.cold {
			calm = append(calm, full.perSecond())
		}
		if len(calm) == 3 {
			return harness.Quantile(calm, 0.5), nil
		}
	}
	if len(calm) == 0 {
		calm = all
	}
	return harness.Quantile(calm, 0.5), nil
}

// load sends the same requests at the same moments in each mode, in rounds. How many a second follows from what the baseline answers
// just before each round: the machine's neighbours have it go faster and slower, and what was 80% of the capacity may be more than all.
func (b *bench) load(ctx context.Context, on *started, m *measured, share float64, modes ...string) (*loaded, error) {
	l := &loaded{share: share, rate: m.capacity * share, mode: make(map[string]*result)}
	for _, mode := range modes {
		l.mode[mode] = new(result)
	}
	for _, mode := range modes {
		if mode == again || isNaive(mode) {
			continue
		}
		if err := b.warm(ctx, on, l, mode); err != nil {
			return nil, fmt.Errorf("%s: %w", mode, err)
		}
	}
	l.rounds = b.roundsAt(share)
	var rates []float64
	for len(rates) < l.rounds {
		now, err := on.flood(ctx, busy, 2, "off", b.lasting(4*time.Second))
		if err != nil {
			return nil, err
		}
		rate := share * now.perSecond()
		of, err := b.take(ctx, on, l, rate, len(rates)+l.leftOut, len(rates), modes)
		if err != nil {
			return nil, err
		}
		if why := of.disturbed(); why != "" && l.leftOut < l.rounds {
			b.progress("  noise: %s: another round instead", why)
			l.leftOut++
			continue
		}
		for mode, r := range of {
			l.mode[mode].add(r)
		}
		rates = append(rates, rate)
	}
	l.rate = harness.Mean(rates)
	all := l.mode["all"]
	b.progress("%s at %.0f%%: %.1f -> %.1f ms, %.2fx; %v", m.slug, share*100, harness.Mean(l.baseline().ms), harness.Mean(all.ms), l.speedup("all").Value, all.ahead)
	for _, mode := range modes {
		if r := l.mode[mode]; r.others() > 0.1 {
			b.progress("  noise: others had %.0f%% of a processor (%s)", r.others()*100, mode)
		}
	}
	return l, nil
}

// roundsAt is how many rounds a load is measured in: short ones, by turns, as how fast the machine is changes within seconds. Where it is
// nearly all in use that matters most.
func (b *bench) roundsAt(share float64) int {
	rounds := 6
	if b.quick {
		rounds = 4
	}
	if share > 0.7 {
		rounds *= 2
	}
	return rounds
}

const (
	// stolenMost is the share of the processors' time that the machine's neighbours may take from a round. Of one that they took more
	// from nothing counts, in no mode.
	stolenMost = 0.05
	// paceMost is by how much the processor time of the same requests may differ between the baseline's two turns in a round, the first
	// and the last. If it differs by more the machine's speed has changed on the way, and the round counts for nothing either.
	paceMost = 0.15
)

// round is what one has shown in each mode.
type round map[string]*result

// disturbed tells what neighbours did to it; it is empty if that was not too much.
func (r round) disturbed() string {
	for mode, of := range r {
		if share := of.stolenShare(); share > stolenMost {
			return fmt.Sprintf("the machine's neighbours had %.0f%% of its processors (%s)", share*100, mode)
		}
	}
	other := r[again]
	if other == nil {
		return ""
	}
	if a, b := r["off"].cpuPer(), other.cpuPer(); math.Abs(math.Log(b/a)) > paceMost { // which NaN is not: nothing is known then
		return fmt.Sprintf("the same requests took %.1f ms of the processors one time, and %.1f ms the other", a, b)
	}
	return ""
}

// take measures a round of certain requests, so many a second, in each mode, a mode after the other: forth and back by turns, so that
// none is always first. The naive ones are the last, of the modes too: they leave fewer sandboxes than there were.
func (b *bench) take(ctx context.Context, on *started, l *loaded, rate float64, stream, turn int, modes []string) (round, error) {
	seed := uint64(100*l.share) + uint64(stream)*1000
	due := harness.Arrivals(seed, rate, b.lastingAt(rate))
	of := make(round)
	turns := slices.DeleteFunc(slices.Clone(modes), isNaive)
	order := slices.Clone(turns)
	if turn%2 == 1 {
		slices.Reverse(order)
	}
	for _, mode := range slices.Concat(order, modes[len(turns):]) {
		r, err := b.arrive(ctx, on, seed, due, mode)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", mode, err)
		}
		of[mode] = r
	}
	if len(turns) < len(modes) { // so that the next round has all sandboxes
		if _, err := b.arrive(ctx, on, seed, due, "all"); err != nil {
			return nil, err
		}
	}
	return of, nil
}

// warmest is how many rounds at most pass before those that count.
const warmest = 8

// warm sends what a load will, before anything counts, until it needs no more sandboxes twice in a row: the environment is a warm
// one, as the paper's.
func (b *bench) warm(ctx context.Context, on *started, l *loaded, mode string) error {
	for i, calm := uint64(0), 0; i < warmest && calm < 2; i++ {
		seed := uint64(100*l.share) + 7 + 1000*i
		r, err := b.arrive(ctx, on, seed, harness.Arrivals(seed, l.rate, b.lastingAt(l.rate)), mode)
		if err != nil {
			return err
		}
		if calm++; r.cold > 0 {
			calm = 0
		}
	}
	return nil
}

// lastingAt is how long a round at a rate lasts: longer where requests are few.
func (b *bench) lastingAt(rate float64) time.Duration {
	d := seconds(math.Min(5, math.Max(3, 30/rate)))
	if b.quick {
		d /= 2
	}
	return d
}

// arrive measures one round in one mode.
func (b *bench) arrive(ctx context.Context, on *started, seed uint64, due []time.Duration, mode string) (*result, error) {
	requests, err := on.requests(seed, len(due), mode)
	if err != nil {
		return nil, err
	}
	select { // what the round before left to do is not this one's
	case <-time.After(200 * time.Millisecond):
	case <-ctx.Done():
	}
	before, err := on.read(ctx)
	if err != nil {
		return nil, err
	}
	a, err := on.clients.open(ctx, due, requests)
	if err != nil {
		return nil, err
	}
	after, err := on.read(ctx)
	if err != nil {
		return nil, err
	}
	return resultOf(a, before, after), nil
}

// reading is what can be read at one moment.
type reading struct {
	metrics
	cpu     time.Duration // of the server and all its functions
	clients time.Duration // of this process
	machine time.Duration // of all there is
	stolen  time.Duration // that the machine did not get
}

func (s *started) read(ctx context.Context) (reading, error) {
	m, err := scrape(ctx, s.client)
	r := reading{metrics: m, cpu: harness.TreeTime(s.server.PID()), clients: harness.ProcessorTime(os.Getpid())}
	r.machine, r.stolen = harness.MachineTime()
	return r, err
}

// resultOf is what a round has shown: its answers, and what was used between two readings.
func resultOf(a *answered, before, after reading) *result {
	cpu := after.cpu - before.cpu
	r := &result{
		ms: a.ms, took: a.took, cpu: cpu,
		strange: after.machine - before.machine - cpu - (after.clients - before.clients), stolen: after.stolen - before.stolen,
		wasted: after.wasted - before.wasted, cold: after.cold - before.cold,
	}
	r.ahead.add(after.outcomes, before.outcomes)
	return r
}

// add adds another round.
func (r *result) add(o *result) {
	r.ms = append(r.ms, o.ms...)
	r.took += o.took
	r.cpu += o.cpu
	r.strange += o.strange
	r.stolen += o.stolen
	r.wasted += o.wasted
	r.cold += o.cold
	r.ahead.add(o.ahead, outcomes{})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
