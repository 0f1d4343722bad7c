package worker

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/proc"
	"forerun.dev/forerun/internal/schedule"
)

// scheduler carries out the decisions of internal/schedule. It has activations wait until they may begin a phase. It sets the CPU weight of sandboxes
// whose phases run in the back.
//
// An activation asks when it has a sandbox, before its handler hears of it. Its time limit has not begun then. Each phase that it begins
// later asks at the state door. A sandbox asks before it loads code, as if it was an activation with one phase (see loading.go).
type scheduler struct {
	w      *Worker
	began  time.Time
	bounds bool // there are slabs to give back

	mu      sync.Mutex // guards the rest; no lock is taken with it held, and it may be taken with Worker.mu held
	has     func() int // processors that the process may use, now
	had     int        // as far as the machine knows
	machine *schedule.Machine
	turns   map[forerun.ActivationID]*admission
	ticking bool
}

// admission is an activation that the machine knows, or the loading of code. Guarded by scheduler.mu.
type admission struct {
	id      forerun.ActivationID
	sandbox *pooledSandbox
	ahead   func() bool
	tenure  *tenure                   // nil: code is loaded
	doors   int                       // operations at doors in which it waits
	classes map[string]schedule.Class // of phases, as the action's annotation says
	begun   chan struct{}             // closed when the phase that it asked for last may begin, or when it was squashed
	letIn   bool                      // begun is closed
	process int                       // that executes it; 0: not known
	before  usage                     // when it asked for the phase
}

// usage is what the processes of a sandbox have used.
type usage struct {
	cpu     time.Duration
	delayed time.Duration // for how long the handler wanted a processor and had none
}

// measure reads it.
func (a *admission) measure() (u usage) {
	u.cpu, _ = a.sandbox.sandbox.Spent() // a sandbox that has ended is told as such
	u.delayed = proc.Delayed(a.process)
	return u
}

// since is what was used since then.
func (a *admission) since(u usage) schedule.Used {
	return schedule.Used{Activation: a.id, CPU: u.cpu - a.before.cpu, Delayed: max(0, u.delayed-a.before.delayed)}
}

func newScheduler(w *Worker, policy schedule.Policy) *scheduler {
	if policy == "" {
		policy = schedule.Oversubscribe
	}
	has := func() int { return runtime.GOMAXPROCS(0) } // the runtime follows changes of the affinity and of the cgroup's quota
	return &scheduler{
		w: w, began: time.Now(), bounds: policy != schedule.Oversubscribe, turns: make(map[forerun.ActivationID]*admission), has: has, had: has(),
		machine: schedule.New(schedule.Settings{Policy: policy, Processors: has()}),
	}
}

// errWaitedLong ends a run that waited for its turn as long as an activation may wait.
var errWaitedLong = errors.New("the activation waited too long for its turn")

// admit waits until a run may begin in its sandbox. It does not wait for one that is squashed, to which no handler is given.
func (s *scheduler) admit(b *pooledSandbox, r *run) error {
	a := &admission{id: r.Activation, sandbox: b, ahead: r.isAhead, tenure: r.tenure, process: b.spare.hostPID, classes: microtasks(r.Action)}
	return s.await(a, s.enter(a, defaultPhase))
}

// enter has the machine know an activation that asks for its first phase.
func (s *scheduler) enter(a *admission, phase string) (begun <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[a.id] = a
	return s.ask(a, phase, notSaid, false)
}

// await waits for the first phase.
func (s *scheduler) await(a *admission, begun <-chan struct{}) error {
	b := a.sandbox
	select { // mostly at once
	case <-begun:
		return nil
	default:
	}
	if a.tenure != nil && a.tenure.over.Load() { // it was squashed before wake could have found it
		return nil
	}
	limit := time.NewTimer(b.w.config.QueueTimeout)
	defer limit.Stop()
	select {
	case <-begun:
		return nil
	case <-b.dead:
	case <-b.stopped.Done():
	case <-limit.C:
		return errWaitedLong
	}
	return errExited
}

// tellScheduler tells of a run that has a sandbox. Worker.mu is held.
func (r *run) tellScheduler(e schedule.Event) {
	if b := r.sandbox; b != nil {
		b.w.turns.tell(e)
	}
}

// ask asks for a phase and returns what is closed when it may begin. Of phases that are asked for at the same time the last one counts.
func (s *scheduler) ask(t *admission, phase string, class schedule.Class, atOnce bool) <-chan struct{} {
	s.lookAtProcessors()
	p := t.sandbox.pool()
	if t.begun == nil || t.letIn {
		t.begun, t.letIn = make(chan struct{}), false
	}
	begun := t.begun
	s.look(t)
	class, learn := t.classOf(phase, class)
	s.step(schedule.Asks{
		Activation: t.id, Tenant: p.key.namespace, Kind: p.kind + phase,
		Class: class, Learn: learn, Ahead: t.ahead(), AtOnce: atOnce,
	})
	return begun
}

// look tells the machine what the phase has used that ends now, and measures the next one from now on.
func (s *scheduler) look(t *admission) {
	if s.bounds {
		now := t.measure()
		s.step(t.since(now))
		t.before = now
	}
}

// lookAtProcessors tells the machine if the process may use more processors than before, or fewer.
func (s *scheduler) lookAtProcessors() {
	if has := s.has(); has != s.had {
		s.had = has
		s.step(schedule.Processors{Number: has})
	}
}

// ended gives back the slabs of an activation, which may have ended before. It is to be called before another sandbox can have the activation.
func (s *scheduler) ended(id forerun.ActivationID, killed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[id]
	if t == nil {
		return
	}
	if !killed {
		s.look(t)
	}
	delete(s.turns, id)
	s.step(schedule.Ended{Activation: id, Killed: killed})
	s.place(t, false)
}

// wake has a run that waits for its turn look whether it was squashed.
func (s *scheduler) wake(id forerun.ActivationID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turns[id]; t != nil {
		t.begins()
	}
}

// starts reports whether a queue gets one more sandbox. Worker.mu may be held.
func (s *scheduler) starts(q schedule.Queue) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Starts(q)
}

// use is what is in use.
func (s *scheduler) use() schedule.Use {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Use()
}

// tell tells the machine of an activation.
func (s *scheduler) tell(e schedule.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(e)
}

// step takes an event to the machine, and carries out what it decides.
func (s *scheduler) step(e schedule.Event) {
	for _, d := range s.machine.Step(time.Since(s.began), e) {
		t := s.turns[d.Activation]
		if t == nil {
			continue
		}
		switch d.Kind {
		case schedule.LetIn, schedule.LetInBehind:
			s.place(t, d.Kind == schedule.LetInBehind)
			t.begins()
		case schedule.ToFront, schedule.ToBack:
			s.place(t, d.Kind == schedule.ToBack)
		case schedule.Reclassified:
		}
	}
	if s.machine.Contended() && !s.ticking {
		s.ticking = true
		time.AfterFunc(schedule.Tick, s.tick)
	}
}

func (a *admission) begins() {
	if !a.letIn {
		a.letIn = true
		close(a.begun)
	}
}

// place has a sandbox run with its full weight or, in the back, with a quarter of it.
func (s *scheduler) place(t *admission, behind bool) {
	if b := t.sandbox; b.behind.Swap(behind) != behind {
		s.w.alive.Go(b.reweigh)
	}
}

// tick tells the machine what phases have used, as long as phases want slabs that others have.
func (s *scheduler) tick() {
	s.mu.Lock()
	var turns []*admission
	for id := range s.machine.Measured() {
		if t := s.turns[id]; t != nil {
			turns = append(turns, t)
		}
	}
	s.mu.Unlock()
	used := make([]usage, len(turns))
	for i, t := range turns {
		used[i] = t.measure()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range turns {
		if s.turns[t.id] != t {
			continue
		}
		s.step(t.since(used[i]))
	}
	s.ticking = false
	s.lookAtProcessors()
	s.step(schedule.Passed{})
}

// behindShare is the part of its weight that a sandbox has whose phase runs in the back.
const behindShare = 4

// reweigh sets the weight that the sandbox is to have now.
func (b *pooledSandbox) reweigh() {
	b.w.mu.Lock()
	weight := b.weight
	b.w.mu.Unlock()
	_ = b.setWeight(weight) // a sandbox that has ended needs none
}
