package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/internal/proc"
	"forerun.dev/forerun/test/history"
	"forerun.dev/forerun/test/server"
)

// Where the slots of a chain come by while its first function waits, and where when it does not wait any more.
var (
	aheadOfGate = []string{
		"resolved leaf", "resolved link3", "resolved link4", "queued leaf", "queued link3", "queued link4",
		"begun link2", "begun link3", "begun leaf", "begun link4", "attached leaf", "held link2", "finished leaf", "finished link3", "finished link4",
	}
	behindOfGate = []string{
		"told link1", "promoting link2", "promoting link3", "promoting link4", "conflicting link3", "applied link2", "applied link3", "applied link4",
		"committed link1", "committed link2", "committed leaf", "committed link3", "committed link4", "committed chain",
		"squashed link2", "squashed leaf", "squashed link3", "squashed link4",
	}
	victims = []string{"handler", "sandbox", "server"}
)

// TestAheadStages kills a handler, a sandbox and the server at each stage that a slot comes to: of the slots that come there a seed
// draws one. What was acknowledged is there once, what goes on ends well, and of what was killed nothing is left.
func TestAheadStages(t *testing.T) {
	needPackages(t)
	t.Parallel()
	random, goOn := rand.New(rand.NewPCG(history.Seed(t), 5)), history.Soak(t)
	points := newPoints(t)
	w := &staged{T: t, points: points, pointed: buildPointed(t, points), data: filepath.Join(t.TempDir(), "data"), random: random}
	w.begin()
	for round := 0; round == 0 || goOn(); round++ {
		for _, victim := range victims {
			for _, stage := range stages {
				all := slices.DeleteFunc(slices.Concat(aheadOfGate, behindOfGate), func(point string) bool { return !strings.HasPrefix(point, stage+" ") })
				w.kill(all[random.IntN(len(all))], victim)
			}
		}
	}
	w.s.records()
	w.mustHaveSent(0)
	w.s.end()
	t.Logf("%d faults; %d invocations went well, %d did not", w.faults, w.well, w.ill)
}

// staged is a server whose chain waits in its first function until the test lets it go, again and again.
type staged struct {
	*testing.T
	points        *points
	pointed, data string
	random        *rand.Rand
	kept          *language // of the second and the fourth function, whose processes serve several activations; nil: Python with a process for each, as for the others
	s             *stormy
	news          <-chan *redis.Message // that the second function sends
	n             int                   // that the first function gives, and the third reads
	faults        int
	tookOver      int // processes that were killed beside one that stands by
	well, ill     int // invocations of a fault
}

// begin starts a server and has it learn the chain.
func (w *staged) begin() {
	w.Helper()
	w.s = newStormyOf(w.T, w.pointed, w.data, w.random)
	if w.faults == 0 {
		w.deploy()
	}
	w.closeGate()
	news := w.s.state.Subscribe(w.Context(), "news")
	if _, err := news.Receive(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.news = news.Channel()
	w.Cleanup(func() { news.Close() })
	w.learn()
}

// closeGate takes back what lets the first function go on and nobody has taken: on a busy machine its client may have given up waiting.
func (w *staged) closeGate() {
	w.Helper()
	if err := w.s.state.Del(w.Context(), "go").Err(); err != nil {
		w.Fatal(err)
	}
}

// learn has the chain run until it is known.
func (w *staged) learn() {
	w.Helper()
	w.awaitNoticed()
	before := w.s.wentWell()
	for range learning {
		w.s.letGo()
		w.s.invoke(w.Context())
	}
	if well := w.s.wentWell() - before; well != learning {
		w.Errorf("of %d invocations where nothing is killed %d went well: %s", learning, well, w.s.why)
	}
}

// learning is how many invocations it takes until the chain runs ahead as far as it can.
const learning = 2

// deploy deploys the chain with processes that can be told by their names.
func (w *staged) deploy() {
	w.Helper()
	chain(w.T, w.s.client)
	actions := map[string]string{"leaf": "import os, redis, time\nstate = redis.Redis.from_url(os.environ['REDIS_URL'], socket_timeout=None)\ndef main(args):\n    time.sleep(0.02)\n    return args\n"}
	for n := 1; n <= chainLength; n++ {
		actions[fmt.Sprint("link", n)] = strings.ReplaceAll(link, "NUMBER", fmt.Sprint(n))
	}
	actions["link1"] = strings.Replace(actions["link1"], "def main(args):\n", "def main(args):\n    state.blpop('go')\n", 1)
	for name, code := range actions {
		code = strings.Replace(code, "def main(args):\n", "def main(args):\n    if args.get('stay'): state.incr('stays'), state.blpop('never')\n", 1)
		const setName = 15 // PR_SET_NAME
		actions[name] = fmt.Sprintf("import ctypes\nctypes.CDLL(None).prctl(%d, b'%s')\n%s", setName, name, code)
	}
	for name, code := range actions {
		put(w.T, w.s.client, name, map[string]any{
			"exec":        map[string]any{"kind": "python:3", "code": code},
			"annotations": []any{map[string]any{"key": "fresh-process", "value": w.kept == nil}},
		})
	}
	if w.kept != nil && w.kept.code != nil {
		for _, n := range []int{2, 4} {
			put(w.T, w.s.client, fmt.Sprint("link", n), map[string]any{
				"exec":       map[string]any{"kind": w.kept.kind, "code": w.kept.code(w.T)},
				"parameters": []any{map[string]any{"key": "link", "value": n}},
			})
		}
	}
}

// occupy has the action's sandbox do something else, until it is killed: who is killed before it has read what it is to do has another do it.
func (w *staged) occupy(action string) {
	w.Helper()
	before := w.s.state.Get(w.Context(), "stays").Val()
	if code, answer := status(w.T, w.s.client, http.MethodPost, "actions/"+action, map[string]bool{"stay": true}); code != http.StatusAccepted {
		w.Fatalf("%d %s", code, answer)
	}
	eventually(w.T, func() bool { return w.s.state.Get(w.Context(), "stays").Val() != before })
}

// change has the first function give something else than is expected of it, when it has not given anything yet, and what the third
// has read be out of date.
func (w *staged) change() {
	w.Helper()
	w.n++
	w.s.set("n", w.n)
}

// goOn lets the first function go on so that a slot comes to the point.
func (w *staged) goOn(point string) {
	w.Helper()
	stage, _, _ := strings.Cut(point, " ")
	if stage == "squashed" || stage == "told" && w.random.IntN(2) == 0 {
		w.change()
	}
	if stage != "conflicting" {
		w.s.letGo()
		return
	}
	w.points.stopAt("applied link2")
	w.s.letGo()
	c := w.await("applied link2")
	w.change()
	w.points.stopAt(point)
	c.Close()
}

// await waits until a slot has come to the point, where it stays until the connection is closed.
func (w *staged) await(point string) net.Conn {
	w.Helper()
	select {
	case c := <-w.points.reached:
		return c
	case <-time.After(patience):
		w.Fatalf("%s: no slot came there; they came to %q", point, w.points.passed)
	}
	return nil
}

// kill kills the victim when a slot has come to the point, and looks at what is left.
func (w *staged) kill(point, victim string) {
	w.Helper()
	defer func() {
		if w.Failed() {
			w.Logf("%s was killed when %s; slots came to %q; the last invocation that went ill: %s", victim, point, w.points.passed, w.s.why)
			w.Log(w.s.server.Log())
		}
	}()
	w.closeGate()
	before, n := w.did(), w.n
	early := slices.Contains(aheadOfGate, point)
	stage, action, _ := strings.Cut(point, " ")
	if stage == "queued" {
		w.occupy(action)
	}
	w.points.stopAt(point)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.s.invoke(w.Context())
	}()
	if !early {
		for _, point := range []string{"held link2", "finished link3", "finished link4"} {
			w.awaitEnd(point)
		}
		failed := w.points.hasPassed("failed "+action) || w.points.hasPassed("failed link2")
		if failed && stage != "committed" { // it runs again as a head, and has nothing to promote
			w.points.stopAt("")
			w.s.letGo()
			<-ended
			w.kill(point, victim)
			return
		}
		w.goOn(point)
	}
	c := w.await(point)
	defer c.Close()
	w.faults++
	if victim == "server" {
		w.killServer(point, ended, before)
		return
	}
	action = w.killInside(point, victim)
	squashed, held := w.points.times("squashed "+action), w.points.times("held "+action)
	c.Close()
	if early { // when its turn comes, it is known that it failed, or that its connections have ended, if it had not finished
		eventually(w.T, func() bool {
			return w.hasEnded("finished "+action) || w.points.times("squashed "+action) > squashed ||
				w.points.times("held "+action) > held // another handler has it, if the one that was killed had not read it yet
		})
		w.s.letGo()
	}
	<-ended
	w.settle(point, victim, before)
	if w.n != n {
		w.learn()
	}
}

// awaitEnd waits until a slot has come to the point or is known to have failed, as it does where a sandbox begins it that the fault
// before had killed and that is not known to be dead.
func (w *staged) awaitEnd(point string) {
	w.Helper()
	eventually(w.T, func() bool { return w.hasEnded(point) })
}

func (w *staged) hasEnded(point string) bool {
	_, action, _ := strings.Cut(point, " ")
	return w.points.hasPassed(point) || w.points.hasPassed("failed "+action)
}

// killInside kills the handlers, or the first processes, of the action of a point, and returns the action's name.
func (w *staged) killInside(point, victim string) (action string) {
	w.Helper()
	_, action, _ = strings.Cut(point, " ")
	switch {
	case action == "chain":
		action = "link4"
	case point == "told link1":
		action = "link2" // which ran ahead of it
	case point == "attached leaf" && w.random.IntN(2) == 0:
		action = "link3" // which waits for it
	}
	pids := w.victims(action, victim)
	if len(pids) == 0 && (w.kept == nil || !strings.HasPrefix(point, "squashed ")) { // else the server was quicker
		w.Errorf("%s: there was no %s to be killed", point, victim)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
	eventually(w.T, func() bool { return !slices.ContainsFunc(pids, func(pid int) bool { return identity(pid) != "" }) })
	return action
}

// victims are the processes that are to be killed: the first ones of an action's sandboxes, or all below them, or of these the one
// that serves and not the one that stands by.
func (w *staged) victims(action, victim string) (pids []int) {
	w.Helper()
	for _, first := range firsts(w.s.server) {
		all, serving := below(first), serving(first, action)
		switch {
		case len(serving) == 0:
		case victim == "sandbox":
			pids = append(pids, first)
		case victim == "process":
			pids = append(pids, serving...)
			if len(all) > len(serving) {
				w.tookOver++
			}
		default:
			pids = append(pids, all...)
		}
	}
	return pids
}

// serving are the processes of a sandbox that have the action's name.
func serving(first int, action string) []int {
	return slices.DeleteFunc(append(below(first), first), func(pid int) bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // empty if it has ended
		return strings.TrimSpace(string(name)) != action
	})
}

// awaitStandby waits until a process stands by beside each that serves the action: on a busy machine that has more than one sandbox. A
// sandbox tries it when it is idle, for up to ten seconds, and gives up one that is being loaded as an activation comes; where its code
// came to an end too often while it was loaded, it never does.
func (w *staged) awaitStandby(action string) {
	w.Helper()
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end) && !w.standsBy(action); {
		time.Sleep(5 * time.Millisecond)
	}
}

// standsBy tells a process that stands by from one that is being loaded: that is not stopped yet.
func (w *staged) standsBy(action string) (stands bool) {
	for _, first := range firsts(w.s.server) {
		serve := serving(first, action)
		if len(serve) > 0 && !slices.ContainsFunc(below(first), func(pid int) bool { return !slices.Contains(serve, pid) && proc.IsStopped(pid) }) {
			return false
		}
		stands = stands || len(serve) > 0
	}
	return stands
}

// firsts are the first processes of a server's sandboxes.
func firsts(s *server.Server) (pids []int) {
	for _, helper := range childrenOf(s.PID()) {
		pids = append(pids, childrenOf(helper)...)
	}
	return pids
}

// awaitNoticed waits until nothing is about to end, of which threads may be left that have their sockets open, and the server knows which
// sandboxes have: what begins where something is dying may fail in its turn.
func (w *staged) awaitNoticed() {
	w.Helper()
	eventually(w.T, func() bool {
		known, all := 0, firsts(w.s.server)
		for _, first := range all {
			if slices.ContainsFunc(append(below(first), first), func(pid int) bool { return identity(pid) == "" }) {
				return false
			}
		}
		for _, state := range []string{"starting", "idle", "busy", "blank"} {
			n, _ := strconv.Atoi(gauge(w.T, w.s.server, "forerun_sandboxes_"+state)) // it is there, and a number
			known += n
		}
		return known == len(all)
	})
}

// settle looks at what an invocation did in which something was killed. Only a function whose turn has come may have failed.
func (w *staged) settle(point, victim string, before chainDid) {
	w.Helper()
	after := w.did()
	switch stage, _, _ := strings.Cut(point, " "); {
	case after.well > before.well:
		after.mustFollow(w.T, point+", "+victim, before, 1, 1)
	case stage == "told" || stage == "promoting" || stage == "applied":
		after.mustFollow(w.T, point+", "+victim, before, 0, 1)
	default:
		w.Errorf("%s, %s: the invocation went ill: %s", point, victim, w.s.why)
	}
	w.s.calm()
	if w.kept == nil { // who is kept keeps its connections
		w.mustBeDisconnected()
	}
}

// killServer kills the server, and looks at what the next one has.
func (w *staged) killServer(point string, ended <-chan struct{}, before chainDid) {
	w.Helper()
	w.mustHaveSent(1)
	f := newFootprint(w.data)
	f.observe(w.s.server.PID())
	w.s.server.Kill()
	<-ended
	f.mustVanish(w.T)
	w.begin()
	w.did().mustFollow(w.T, point+", server", before, learning, learning+1)
}

// mustBeDisconnected waits until no sandbox has a connection to a door any more.
func (w *staged) mustBeDisconnected() {
	w.Helper()
	eventually(w.T, func() bool {
		for _, first := range firsts(w.s.server) {
			connections, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", first)) // empty if it has ended
			for line := range strings.Lines(string(connections)) {
				if fields := strings.Fields(line); len(fields) > 3 && fields[3] == "01" { // established
					return false
				}
			}
		}
		return true
	})
}

// mustHaveSent looks at the messages of the server's life: one of each invocation that went well, and no more than that of each of the
// others, of which there are some that were not heard of yet.
func (w *staged) mustHaveSent(others int) {
	w.Helper()
	sent := 0
	eventually(w.T, func() bool {
		for len(w.news) > 0 {
			<-w.news
			sent++
		}
		return sent >= w.s.well
	})
	if sent > w.s.well+w.s.ill+others {
		w.Errorf("%d messages were sent by %d invocations that went well and %d others", sent, w.s.well, w.s.ill+others)
	}
	w.well, w.ill = w.well+w.s.well, w.ill+w.s.ill
}

// chainDid is what chains have done, and how many of this server's went well.
type chainDid struct {
	noted   did
	counted [chainLength]int
	well    int
}

func (w *staged) did() (c chainDid) {
	w.Helper()
	var ok bool
	if c.noted, ok = w.s.look(w.Context()); !ok {
		w.Fatal("the state cannot be read")
	}
	for i := range c.counted {
		n, err := w.s.state.Get(w.Context(), fmt.Sprint("count:", i+1)).Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			w.Fatal(err)
		}
		c.counted[i] = n
	}
	c.well = w.s.wentWell()
	return c
}

// mustFollow reports what was there before and is not, and links that did something less or more often since.
func (c chainDid) mustFollow(t *testing.T, what string, before chainDid, least, most int) {
	t.Helper()
	for i := range c.noted {
		for transaction := range before.noted[i] {
			if c.noted[i][transaction] != 1 {
				t.Errorf("%s: link %d had noted %s, and has %d times", what, i+1, transaction, c.noted[i][transaction])
			}
		}
		noted, counted := len(c.noted[i])-len(before.noted[i]), c.counted[i]-before.counted[i]
		if noted < least || noted > most || counted < least || counted > noted {
			t.Errorf("%s: link %d has noted %d and counted %d since", what, i+1, noted, counted)
		}
	}
}
