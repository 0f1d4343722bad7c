package resp_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/internal/state/resp"
	"forerun.dev/forerun/test/history"
)

// life is a store between two crashes, with its door.
type life struct {
	store  *embedded.Store
	hub    *resp.Hub
	server *resp.Server
	ctx    context.Context
	cancel context.CancelFunc
	conns  sync.WaitGroup

	mu   sync.RWMutex // guards dead; held while the disk is copied
	dead bool         // nobody is told anything any more
}

// crashing is a door over a store in memory, which loses in a crash what was not synced, or a part of it.
type crashing struct {
	rng  *rand.Rand
	wrap func(state.Store) state.Store // plants a fault; nil: none

	mu  sync.Mutex // guards the rest
	fs  *vfs.MemFS
	now *life
}

// begin opens the store of the next life.
func (d *crashing) begin() error {
	store, err := embedded.Open("store", embedded.Options{FS: slow{d.fs}})
	if err != nil {
		return err
	}
	l := &life{store: store}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.hub = resp.NewHub(store, nil)
	l.server = resp.NewServer(l.hub, resp.Options{})
	d.now = l
	return nil
}

// end closes what is left of a life.
func (l *life) end() error {
	l.cancel()
	l.conns.Wait()
	return errors.Join(l.hub.Close(), l.store.Close())
}

func (d *crashing) Dial(context.Context) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, mine, its := d.now, net.Conn(nil), net.Conn(nil)
	mine, its = net.Pipe()
	var store state.Store = l.store
	if d.wrap != nil {
		store = d.wrap(store)
	}
	l.conns.Go(func() { l.server.ServeConn(l.ctx, its, session{store, "tests"}) })
	return &mortal{mine, l}, nil
}

func (d *crashing) Crash() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now.mu.Lock()
	d.now.dead = true
	d.fs = d.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[d.rng.IntN(3)], RNG: d.rng})
	d.now.mu.Unlock()
	if err := d.now.end(); err != nil {
		return err
	}
	return d.begin()
}

// slow is a file system that takes its time to put files on disk, as disks do: much happens meanwhile.
type slow struct{ vfs.FS }

func (fs slow) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return slowFile{f}, nil
}

type slowFile struct{ vfs.File }

func (f slowFile) SyncData() error {
	time.Sleep(100 * time.Microsecond)
	return f.File.SyncData()
}

// mortal is a connection through which nothing is heard after the crash.
type mortal struct {
	net.Conn
	life *life
}

func (c *mortal) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.life.mu.RLock()
	defer c.life.mu.RUnlock()
	if c.life.dead {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// attack lets clients work at a store that crashes three times.
func attack(t *testing.T, seed uint64, wrap func(state.Store) state.Store) history.Result {
	t.Helper()
	d := &crashing{rng: rand.New(rand.NewPCG(seed, 1)), wrap: wrap, fs: vfs.NewCrashableMem()}
	if err := d.begin(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.now.end(); err != nil {
			t.Error(err)
		}
	}()
	result, err := history.Run(t.Context(), d, history.Plan{Seed: seed, Clients: 8, Lives: 4, Commands: 600, Space: "r"})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return result
}

// TestHistoriesAreLinearizable attacks the store with random clients and crashes: for 10 seeds, or for as long as
// FORERUN_SOAK says.
func TestHistoriesAreLinearizable(t *testing.T) {
	seed, goOn := history.Seed(t), history.Soak(t)
	rounds, commands, unanswered := 0, 0, 0
	for ; rounds < 10 || goOn(); rounds++ {
		result := attack(t, seed+uint64(rounds), nil)
		if result.Wrong != "" {
			t.Fatalf("seed %d: %s", seed+uint64(rounds), result.Wrong)
		}
		commands += result.Commands
		unanswered += result.Unanswered
	}
	t.Logf("%d histories of %d commands, %d of them not answered before a crash", rounds, commands, unanswered)
	if unanswered == 0 {
		t.Error("no crash came while commands were under way")
	}
}

// TestPlantedFaultsAreFound attacks stores with a fault: each is found within some seeds.
func TestPlantedFaultsAreFound(t *testing.T) {
	for name, wrap := range map[string]func(state.Store) state.Store{
		"answers before it is on disk":                       func(s state.Store) state.Store { return hasty{s} },
		"shows what others have not yet on disk":             func(s state.Store) state.Store { return indiscreet{s} },
		"loses an update":                                    func(s state.Store) state.Store { return careless{s} },
		"tears a transaction":                                func(s state.Store) state.Store { return tearing{s} },
		"does not look whether a watched record has changed": func(s state.Store) state.Store { return blind{s} },
	} {
		t.Run(name, func(t *testing.T) {
			seed := history.Seed(t)
			for n := range uint64(40) {
				if attack(t, seed+n, wrap).Wrong != "" {
					t.Logf("found in history %d", n)
					return
				}
			}
			t.Error("the fault was not found")
		})
	}
}

// fateful is the moment in which a fault shows.
func fateful() { time.Sleep(200 * time.Microsecond) }

// hasty is a store that does not wait for the disk.
type hasty struct{ state.Store }

func (hasty) Durable(context.Context, forerun.Version) error { return nil }

// indiscreet is one whose replies to readers do not rest on what they read.
type indiscreet struct{ state.Store }

func (s indiscreet) Do(ctx context.Context, c state.Command) (state.Reply, forerun.Version, error) {
	reply, v, err := s.Store.Do(ctx, c)
	if string(c.Args[0]) == "get" || string(c.Args[0]) == "hgetall" || string(c.Args[0]) == "lrange" {
		v = 0
	}
	return reply, v, err
}

func (s indiscreet) Durable(ctx context.Context, v forerun.Version) error {
	fateful()
	return s.Store.Durable(ctx, v)
}

// careless is one that reads and writes in two steps.
type careless struct{ state.Store }

func (s careless) Do(ctx context.Context, c state.Command) (state.Reply, forerun.Version, error) {
	if string(c.Args[0]) != "incrby" {
		return s.Store.Do(ctx, c)
	}
	old, _, err := s.Store.Do(ctx, state.Command{Space: c.Space, Args: [][]byte{[]byte("get"), c.Args[1]}})
	if err != nil {
		return state.Reply{}, 0, err
	}
	fateful()
	n, _ := strconv.ParseInt(string(old.Text), 10, 64) // nothing is 0
	_, v, err := s.Store.Do(ctx, state.Command{Space: c.Space, Args: [][]byte{[]byte("set"), c.Args[1], strconv.AppendInt(nil, n+1, 10)}})
	return state.Reply{Kind: state.Integer, Int: n + 1}, v, err
}

// tearing is one that executes the commands of a transaction one by one.
type tearing struct{ state.Store }

func (s tearing) Exec(ctx context.Context, expect []state.Expect, ops []state.Command) (replies []state.Reply, last forerun.Version, err error) {
	for _, op := range ops {
		reply, v, err := s.Store.Exec(ctx, expect, []state.Command{op})
		if err != nil {
			return nil, 0, err
		}
		fateful()
		replies, last, expect = append(replies, reply[0]), v, nil
	}
	return replies, last, nil
}

// blind is one that does not check what a transaction expects.
type blind struct{ state.Store }

func (s blind) Exec(ctx context.Context, _ []state.Expect, ops []state.Command) ([]state.Reply, forerun.Version, error) {
	fateful()
	return s.Store.Exec(ctx, nil, ops)
}
