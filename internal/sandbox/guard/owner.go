package guard

import (
	"slices"
	"sync"
	"time"

	"forerun.dev/forerun/internal/sandbox"
)

// Host is what the supervisors of all sandboxes share: the ports of the machine that they run on. The owners of sandboxes have their
// parts of them.
type Host struct {
	sockets *sandbox.Shares // in the sandboxes, or on their way there
	copies  *sandbox.Shares // of descriptors with which calls were made that are being executed, or wait

	mu     sync.Mutex // guards the rest, and the sandboxes of all owners
	owners map[string]*Owner
	looked time.Time // when it was looked which sockets are gone
}

// Owner is whose some sandboxes are.
type Owner struct {
	host  *Host
	name  string
	boxes []*Supervisor
}

// socketsAtMost bounds the sockets in all sandboxes: each takes one of the ports that bindPort chooses from.
const socketsAtMost = 24 << 10

// copiesPart is the part of this process's descriptors that copies may be: a call that connects to the outside takes two more, and the
// sandboxes themselves some.
const copiesPart = 8

// lookAtAll is how long an owner that may have no more sockets waits until it is looked which are gone, also of others: those of a sandbox
// that is idle, or gone itself, count until then.
const lookAtAll = 2 * time.Second

// NewHost is for the supervisors of one network.
func NewHost() *Host {
	return &Host{
		sockets: sandbox.NewShares(socketsAtMost), copies: sandbox.NewShares(sandbox.Descriptors() / copiesPart), owners: make(map[string]*Owner),
	}
}

// enter makes a sandbox, with so many sockets, that of an owner.
func (h *Host) enter(name string, s *Supervisor, sockets int) *Owner {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owners[name]
	if o == nil {
		o = &Owner{host: h, name: name}
		h.owners[name] = o
	}
	o.boxes = append(o.boxes, s)
	o.count(sockets)
	return o
}

// leave ends that.
func (o *Owner) leave(s *Supervisor, sockets int) {
	h := o.host
	h.mu.Lock()
	defer h.mu.Unlock()
	o.boxes = slices.DeleteFunc(o.boxes, func(other *Supervisor) bool { return other == s })
	o.count(-sockets)
	if len(o.boxes) == 0 {
		delete(h.owners, o.name)
	}
}

// count counts more sockets, or fewer.
func (o *Owner) count(more int) { o.host.sockets.Count(o.name, more) }

// room reports whether the owner may have the sockets that it has, the one on its way included.
func (o *Owner) room() bool {
	fits, boxes := o.fits()
	for _, s := range boxes {
		s.lookForGone()
	}
	if len(boxes) > 0 {
		fits, _ = o.fits()
	}
	return fits
}

// fits lists the sandboxes of which some may be gone if it is time to look.
func (o *Owner) fits() (fits bool, look []*Supervisor) {
	h := o.host
	if h.sockets.Fits(o.name) {
		return true, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.looked) < lookAtAll {
		return false, nil
	}
	h.looked = time.Now()
	for _, owner := range h.owners {
		look = append(look, owner.boxes...)
	}
	return false, look
}
