package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/test/history"
)

// lazily is within what time a record is on disk without --sync.
const lazily = 10 * time.Millisecond

// TestPowerLoss has the power of a machine fail under load, at random moments and at random steps of its file system: what was written and not synced is lost, or some
// of it, as chance will have it. What was promised must be there. FORERUN_SEED repeats a run, FORERUN_SOAK prolongs it.
func TestPowerLoss(t *testing.T) {
	seed, goOn := history.Seed(t), history.Soak(t)
	for round := uint64(0); round == 0 || goOn(); round++ {
		synctest.Test(t, func(t *testing.T) { livesOf(t, rand.New(rand.NewPCG(seed+round, 0))) })
		if t.Failed() {
			t.Fatalf("with FORERUN_SEED=%d", seed+round)
		}
	}
}

func livesOf(t *testing.T, random *rand.Rand) {
	fs := vfs.NewCrashableMem()
	said := promises{values: make(map[string]string), records: make(map[forerun.ActivationID]time.Time), requests: make(map[string]forerun.ActivationID)}
	for life := range 8 {
		m := &machine{T: t, disk: fs, said: said, random: random, quiet: life%2 == 1, chance: rand.New(rand.NewPCG(random.Uint64(), 0))}
		if life%4 > 1 {
			m.fs.left.Store(random.Int64N(500))
		}
		m.boot()
		m.mustHold(&said)
		m.learn(said)
		m.live()
		fs, said = m.left, m.saidThen
	}
	m := &machine{T: t, disk: fs}
	m.boot()
	m.mustHold(&said)
	m.shutDown()
	t.Logf("promised and found: %d values, %d actions, %d records, %d requests; the counters are %d", len(said.values), len(said.actions), len(said.records), len(said.requests), said.counted)
}

// promises is what was told to clients.
type promises struct {
	values   map[string]string
	actions  []string
	records  map[forerun.ActivationID]time.Time // when they are on disk at the latest
	requests map[string]forerun.ActivationID    // carried out once
	counted  int64                              // what two counters stand at, at least
	attempts int64                              // at most
	newest   forerun.Version
}

// machine is one life of a store, between two failures of the power.
type machine struct {
	*testing.T
	disk     *vfs.MemFS
	fs       pointedFS // over the disk
	store    *embedded.Store
	registry *registry.Registry
	random   *rand.Rand
	chance   *rand.Rand // of fail, which anyone may call
	quiet    bool       // it writes nothing that is synced at once, and with it all else

	mu   sync.Mutex // guards the rest
	said promises
	n    int // of writes

	once     sync.Once
	left     *vfs.MemFS // what is on the disk when the power has failed
	saidThen promises   // and what was said before
}

func (m *machine) boot() {
	m.Helper()
	m.fs.FS, m.fs.at = m.disk, m.fail
	store, err := embedded.Open("store", embedded.Options{FS: &m.fs})
	if err != nil {
		m.Fatalf("after a failure of the power: %v", err)
	}
	m.store, m.registry = store, registry.Open(store, registry.DefaultLimits(), nil)
}

func (m *machine) shutDown() {
	m.registry.Close()
	if err := m.store.Close(); err != nil {
		m.Error(err)
	}
}

// fail is the moment when the power fails: what is said or written later is for nothing.
func (m *machine) fail() {
	m.once.Do(func() {
		m.mu.Lock()
		said := m.said
		said.values, said.records, said.requests = maps.Clone(said.values), maps.Clone(said.records), maps.Clone(said.requests)
		m.mu.Unlock()
		now := time.Now()
		maps.DeleteFunc(said.records, func(_ forerun.ActivationID, at time.Time) bool { return at.After(now) })
		left := m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: m.chance.IntN(4) * 33, RNG: m.chance})
		m.mu.Lock()
		said.attempts = m.said.attempts // what was tried meanwhile may be there
		m.left, m.saidThen = left, said
		m.mu.Unlock()
	})
}

// learn takes over what was found.
func (m *machine) learn(said promises) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = said
}

// live works until the power fails.
func (m *machine) live() {
	ctx, cancel := context.WithCancel(m.Context())
	var writers sync.WaitGroup
	for range 6 {
		own := rand.New(rand.NewPCG(m.random.Uint64(), 0))
		writers.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(own.Int64N(int64(2 * time.Millisecond))))
				if err := m.write(own); err != nil {
					m.Error(err)
					return
				}
			}
		})
	}
	time.Sleep(time.Duration(m.random.Int64N(int64(50 * time.Millisecond))))
	m.fail()
	cancel()
	writers.Wait()
	m.shutDown()
}

// write does one of the things that a server does, and notes what it may promise then.
func (m *machine) write(random *rand.Rand) error {
	m.mu.Lock()
	m.n++
	name := fmt.Sprintf("%d-%d", time.Now().UnixNano(), m.n)
	m.mu.Unlock()
	if m.quiet {
		return m.putRecord(false, "")
	}
	switch random.IntN(6) {
	case 0:
		return m.count()
	case 1:
		return m.putAction(name)
	case 2:
		return m.acceptOnce(name)
	case 3:
		return m.putRecord(random.IntN(2) == 0, "")
	case 4:
		return m.putRecord(false, strings.Repeat("x", random.IntN(100<<10)))
	default:
		return m.set(name, strings.Repeat("x", random.IntN(100<<10)))
	}
}

func redisCommand(words ...string) state.Command {
	c := state.Command{Space: "s"}
	for _, word := range words {
		c.Args = append(c.Args, []byte(word))
	}
	return c
}

func (m *machine) count() error {
	m.mu.Lock()
	m.said.attempts++
	m.mu.Unlock()
	replies, v, err := m.store.Exec(context.Background(), nil, []state.Command{redisCommand("INCR", "a"), redisCommand("INCR", "z")})
	if err = errors.Join(err, m.store.Durable(context.Background(), v)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said.counted = max(m.said.counted, replies[0].Int)
	m.said.newest = max(m.said.newest, v)
	return nil
}

func (m *machine) set(name, value string) error {
	_, v, err := m.store.Do(context.Background(), redisCommand("SET", name, value))
	if err = errors.Join(err, m.store.Durable(context.Background(), v)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said.values[name] = value
	m.said.newest = max(m.said.newest, v)
	return nil
}

func (m *machine) putAction(name string) error {
	_, err := m.registry.PutAction(context.Background(), nameOf(name), false, func(*forerun.Action) (*forerun.Action, error) {
		return &forerun.Action{Exec: forerun.Exec{Kind: "python:3", Code: name}}, nil
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said.actions = append(m.said.actions, name)
	return nil
}

func nameOf(name string) forerun.Name { return forerun.Name{Namespace: "guest", Entity: name} }

func (m *machine) putRecord(sync bool, line string) error {
	a := &forerun.Activation{ID: forerun.NewActivationID(time.Now()), Namespace: "guest", Action: nameOf("a"), Start: time.Now(), Logs: []string{line}}
	if err := activation.Open(m.store, sync).Put(context.Background(), a); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said.records[a.ID] = time.Now()
	if !sync {
		m.said.records[a.ID] = time.Now().Add(lazily)
	}
	return nil
}

func (m *machine) acceptOnce(name string) error {
	a := &forerun.Activation{ID: forerun.NewActivationID(time.Now()), Namespace: "guest", Action: nameOf("a"), Start: time.Now()}
	id, err := activation.Open(m.store, false).AcceptOnce(context.Background(), a, once(name))
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said.requests[name] = id
	return nil
}

func once(key string) *activation.Once {
	return &activation.Once{Namespace: "guest", Action: nameOf("a"), Key: key}
}

// mustHold looks for what was promised, and notes what the counters stand at.
func (m *machine) mustHold(said *promises) {
	m.Helper()
	ctx, log := m.Context(), activation.Open(m.store, false)
	for name, value := range said.values {
		if r, err := m.store.Get(ctx, forerun.Key{Space: "s", Name: name}); err != nil || string(r[0].Data) != value {
			m.Errorf("the value %s has %d bytes, not %d, %v", name, len(r[0].Data), len(value), err)
		}
	}
	for _, name := range said.actions {
		if a, err := m.registry.Action(ctx, nameOf(name)); err != nil || a.Exec.Code != name {
			m.Errorf("the action %s: %v", name, err)
		}
	}
	for name, want := range said.requests {
		if id, err := log.FindOnce(ctx, once(name)); id != want || err != nil {
			m.Errorf("the request %s was carried out as %s, not %s, %v", name, id, want, err)
		}
	}
	for id, at := range said.records {
		if _, err := log.Get(ctx, "guest", id); err != nil {
			m.Errorf("the record %s, on disk since %v: %v", id, at, err)
		}
	}
	m.mustCount(said)
	m.listsMustAgree(log)
	if v, _ := m.store.Apply(ctx, state.Txn{Ops: []state.Command{redisCommand("SET", "v", "")}}); v <= said.newest {
		m.Errorf("version %d comes after %d", v, said.newest)
	}
}

func (m *machine) mustCount(said *promises) {
	m.Helper()
	r, err := m.store.Get(m.Context(), forerun.Key{Space: "s", Name: "a"}, forerun.Key{Space: "s", Name: "z"})
	if err != nil {
		m.Fatal(err)
	}
	n, _ := strconv.ParseInt(string(r[0].Data), 10, 64) // 0 if there is none
	if string(r[0].Data) != string(r[1].Data) || n < said.counted || n > said.attempts {
		m.Errorf("the counters are %s and %s; they were %d, and %d were tried", r[0].Data, r[1].Data, said.counted, said.attempts)
	}
	said.counted, said.attempts = n, n
}

// listsMustAgree checks that of a record all is there or nothing.
func (m *machine) listsMustAgree(log *activation.Log) {
	m.Helper()
	records, err := 0, error(nil)
	for _, err = range log.Whole(m.Context(), "guest", activation.Query{Limit: 1 << 30}) {
		records++
	}
	byTime, err2 := log.Count(m.Context(), "guest", activation.Query{})
	byName, err3 := log.Count(m.Context(), "guest", activation.Query{Name: "a"})
	if err = errors.Join(err, err2, err3); err != nil || records != byTime || byTime != byName {
		m.Errorf("%d records, %d by time, %d by name, %v", records, byTime, byName, err)
	}
}
