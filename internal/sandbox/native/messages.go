package native

import (
	"net/netip"
	"time"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// Kinds of frames, the first number of each.
const (
	kindConfigure = iota + 1 // server -> helper, once
	kindStart                // server -> helper, with the descriptors startFDs
	kindReset
	kindStrike
	kindLimit
	kindClose
	kindHold
	kindRelease
	kindWaiting
	kindPermit
	kindConfine
	kindPin
	kindSeal
	kindReachable
	// helper -> server. Settings come with the descriptors of cgroups.openMeters. A start comes with the descriptors of readyFDs for the
	// server, of group.openMeters, of group.openWeight and of helperSandbox.sights
	kindReply
	kindExited // helper -> server, by itself
	kindDenied
	kindReached
)

// maxFrame bounds a frame; a longer message travels in a file.
const maxFrame = 64 << 10

// Descriptors that come with a start, in this order.
const (
	startSpec = iota // a memory file with the specification
	startControl
	startStdout
	startStderr
	startFDs
)

// Descriptors that the first stage hands out, in this order: those from readyTmp on stay in the helper.
const (
	readyState = iota // the doors
	readyAPI
	readyNamesUDP // 127.0.0.1:53
	readyNamesTCP
	readyPackets // where datagrams to the outside arrive
	readyTmp     // folders that handlers write to
	readyShm
	readySeal     // what makes /action read-only
	readyListener // of held calls
	readyFDs
)

const readyForServer = readyTmp

// request is a frame from the server.
type request struct {
	kind   int
	number uint64 // repeated in the reply
	id     string // the sandbox
	start  startRequest
	pids   []int            // those to keep, of a reset and a strike; those to look at, of a request if they are reachable
	owner  string           // of a limit; empty: it stays
	memory int              // of a limit, in MiB; 0: it stays
	permit []netip.AddrPort // of a hold, a permit and a pin
	lists  egress.Lists     // of a confine; without names
}

// startRequest is the part of a Spec for the helper itself; only the first stage reads the rest.
type startRequest struct {
	owner                                            string
	memoryMiB, cpuWeight, processes, tmpMiB, codeMiB int
	launcher                                         bool
	binds                                            []sandbox.Bind
}

func (r request) encode() []byte {
	var e encoder
	e.number(uint64(r.kind))
	e.number(r.number)
	e.text(r.id)
	switch r.kind {
	case kindStart:
		e.text(r.start.owner)
		for _, v := range []int{r.start.memoryMiB, r.start.cpuWeight, r.start.processes, r.start.tmpMiB, r.start.codeMiB} {
			e.number(uint64(v))
		}
		e.flag(r.start.launcher)
		encodeBinds(&e, r.start.binds)
	case kindReset, kindStrike, kindReachable:
		e.number(uint64(len(r.pids)))
		for _, pid := range r.pids {
			e.number(uint64(pid))
		}
	case kindLimit:
		e.text(r.owner)
		e.number(uint64(r.memory))
	case kindConfine:
		e.list(r.lists.Tenant)
		e.list(r.lists.Action)
	case kindHold, kindPermit, kindPin:
		e.number(uint64(len(r.permit)))
		for _, a := range r.permit {
			e.text(a.String())
		}
	}
	return e.b
}

func decodeRequest(b []byte) (request, error) {
	d := decoder{b: b}
	r := request{kind: d.small(), number: d.number(), id: d.text()}
	switch r.kind {
	case kindStart:
		r.start = startRequest{owner: d.text(), memoryMiB: d.small(), cpuWeight: d.small(), processes: d.small(), tmpMiB: d.small(), codeMiB: d.small()}
		r.start.launcher, r.start.binds = d.flag(), decodeBinds(&d)
	case kindReset, kindStrike, kindReachable:
		for range d.count() {
			r.pids = append(r.pids, d.small())
		}
	case kindLimit:
		r.owner, r.memory = d.text(), d.small()
	case kindConfine:
		r.lists = egress.Lists{Tenant: d.list(), Action: d.list()}
	case kindHold, kindPermit, kindPin:
		for range d.count() {
			a, err := netip.ParseAddrPort(d.text())
			if err != nil {
				return request{}, errFrame
			}
			r.permit = append(r.permit, a)
		}
	}
	return r, d.end()
}

func encodeBinds(e *encoder, binds []sandbox.Bind) {
	e.number(uint64(len(binds)))
	for _, b := range binds {
		e.text(b.Host)
		e.text(b.Inside)
	}
}

func decodeBinds(d *decoder) []sandbox.Bind {
	var binds []sandbox.Bind
	for range d.count() {
		binds = append(binds, sandbox.Bind{Host: d.text(), Inside: d.text()})
	}
	return binds
}

// report is a frame from the helper. problem is empty if all is well.
type report struct {
	kind     int
	number   uint64
	id       string
	problem  string
	place    int                   // of the reply to a start: the number of its gate
	shares   bool                  // of the same: its weight is on v1's scale
	killed   int                   // of the reply to a reset
	held     sandbox.Held          // of the reply to a hold
	unshared bool                  // of the same: nothing is shared, and never will be
	waited   time.Duration         // of the reply to a release
	waiting  int                   // of the reply to a request for that
	sealed   bool                  // of the reply to a seal
	hears    bool                  // of the reply to whether processes are reachable: one is
	enforced []sandbox.Enforcement // of the reply to configure
}

func (r report) encode() []byte {
	var e encoder
	e.number(uint64(r.kind))
	e.number(r.number)
	e.text(r.id)
	e.text(r.problem)
	e.number(uint64(r.place))
	e.flag(r.shares)
	e.number(uint64(r.killed))
	e.flag(r.held.Connected)
	e.flag(r.held.Shared)
	e.flag(r.unshared)
	e.number(uint64(r.waited))
	e.number(uint64(r.waiting))
	e.flag(r.sealed)
	e.flag(r.hears)
	e.number(uint64(len(r.enforced)))
	for _, f := range r.enforced {
		e.text(f.What)
		e.flag(f.On)
		e.text(f.Why)
	}
	return e.b
}

func decodeReport(b []byte) (report, error) {
	d := decoder{b: b}
	r := report{kind: d.small(), number: d.number(), id: d.text(), problem: d.text()}
	r.place, r.shares = d.small(), d.flag()
	r.killed = d.small()
	r.held, r.unshared = sandbox.Held{Connected: d.flag(), Shared: d.flag()}, d.flag()
	r.waited = time.Duration(d.number())
	r.waiting, r.sealed, r.hears = d.small(), d.flag(), d.flag()
	for range d.count() {
		r.enforced = append(r.enforced, sandbox.Enforcement{What: d.text(), On: d.flag(), Why: d.text()})
	}
	return r, d.end()
}

// settings is sent to the helper once.
type settings struct {
	dataDir    string
	bindRoots  []string
	policy     guard.Policy
	memoryMiB  int // of all sandboxes together; 0: no bound
	cpuWeight  int // the same; 0: the kernel's default
	executable string
	initArgs   []string
}

func (s settings) encode() []byte {
	var e encoder
	e.number(kindConfigure)
	e.text(s.dataDir)
	e.texts(s.bindRoots)
	e.list(s.policy.Allowed)
	e.list(s.policy.Denied)
	e.number(uint64(s.memoryMiB))
	e.number(uint64(s.cpuWeight))
	e.text(s.executable)
	e.texts(s.initArgs)
	return e.b
}

func decodeSettings(b []byte) (settings, error) {
	d := decoder{b: b}
	if d.number() != kindConfigure {
		return settings{}, errFrame
	}
	s := settings{dataDir: d.text(), bindRoots: d.texts(), policy: guard.Policy{Allowed: d.list(), Denied: d.list()}, memoryMiB: d.small(), cpuWeight: d.small()}
	s.executable, s.initArgs = d.text(), d.texts()
	return s, d.end()
}

// plan is sent by the helper to the first stage.
type plan struct {
	root      bool // id 0 is mapped: ids can be changed
	tasks     int  // so many cgroup descriptors follow, to be joined
	bindFDs   bool // the Spec's binds come as descriptors after those, else they are opened by name
	processes int  // a limit by user, 0 where a cgroup counts them
	tmpMiB    int
	codeMiB   int
	binds     []sandbox.Bind
}

func (p plan) encode() []byte {
	var e encoder
	e.flag(p.root)
	e.number(uint64(p.tasks))
	e.flag(p.bindFDs)
	e.number(uint64(p.processes))
	e.number(uint64(p.tmpMiB))
	e.number(uint64(p.codeMiB))
	encodeBinds(&e, p.binds)
	return e.b
}

func decodePlan(b []byte) (plan, error) {
	d := decoder{b: b}
	p := plan{root: d.flag(), tasks: d.small(), bindFDs: d.flag(), processes: d.small(), tmpMiB: d.small(), codeMiB: d.small()}
	p.binds = decodeBinds(&d)
	return p, d.end()
}

// program is the part of a Spec that only the first stage reads: the command and the files.
type program struct {
	argv, env []string
	files     []sandbox.File
}

func (p program) encode() []byte {
	var e encoder
	e.texts(p.argv)
	e.texts(p.env)
	e.number(uint64(len(p.files)))
	for _, f := range p.files {
		e.text(f.Path)
		e.number(uint64(f.Mode))
		e.text(string(f.Data))
	}
	return e.b
}

func decodeProgram(b []byte) (program, error) {
	d := decoder{b: b}
	p := program{argv: d.texts(), env: d.texts()}
	for range d.count() {
		p.files = append(p.files, sandbox.File{Path: d.text(), Mode: uint32(d.small()), Data: []byte(d.text())})
	}
	return p, d.end()
}
