package worker

import (
	"context"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

// The worker tells how far an activation reached to the outside. A sandbox counts what its processes ask for, and does not know which process asks. So an
// activation answers for everything that was asked for since its process was made: by its code as that was loaded, by an earlier activation
// of a process that stays, whose connection may still be open, and by another process of the sandbox meanwhile. That is sometimes too
// much, and never too little.

// confine gives the sandbox the lists of what its action may reach, before its code is loaded.
func (b *pooledSandbox) confine(a *forerun.Action) error {
	lists := egress.Lists{Action: egress.OfAction(a.Annotations)}
	if b.w.config.Egress != nil {
		lists.Tenant = b.w.config.Egress(b.pool().key.namespace)
	}
	if !lists.Bounds() {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	return b.sandbox.Confine(ctx, lists)
}

// permit tells the sandbox from which hosts the action only reads.
func (b *pooledSandbox) permit(a *forerun.Action) error {
	hosts := hostsOf(a)
	if len(hosts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	return b.sandbox.Permit(ctx, hosts)
}

// noteAsked notes what was asked for before the next process is made, unless that was noted before: a launcher makes its first process as it
// is given the code, and hands it out later.
func (b *pooledSandbox) noteAsked() {
	asked, _ := b.sandbox.Asked() // if the sandbox has ended there will be no process
	b.asked.CompareAndSwap(nil, &asked)
}

// noteLoaded notes how far the code reached as it was loaded into the initializer, from which handlers are forked.
func (b *pooledSandbox) noteLoaded() {
	b.loadReach = forerun.Inside
	if !b.language.launched {
		b.loadReach = b.reachSince(sandbox.Asked{})
	}
}

// remembers reports whether the process of an activation may remember earlier activations. It may if it served one, or if the code made something
// while it was loaded that all handlers share: a thread, or memory.
func (b *pooledSandbox) remembers(r *run) bool {
	return b.spare.served || b.spare.threads || r.Bridged && !b.language.launched && b.sharesMemory()
}

// sharesMemory reports whether handlers can change something for each other. When it cannot be told, they can. That never changes after the
// code was loaded, so the helper is asked once.
func (b *pooledSandbox) sharesMemory() bool {
	if b.shares == nil {
		if b.held { // what waits would be let go
			return true
		}
		held, err := b.shut(b.pool().action)
		if err == nil {
			err = b.letOut()
		}
		if err != nil {
			return true
		}
		b.shares = &held.Shared
	}
	return *b.shares
}

// reach is how far the activation of a process has reached.
func (b *pooledSandbox) reach(s *spare) forerun.Reach { return min(b.loadReach, b.reachSince(s.asked)) }

func (b *pooledSandbox) reachSince(before sandbox.Asked) forerun.Reach {
	asked, known := b.sandbox.Asked()
	switch {
	case !known, asked.Others != before.Others:
		return forerun.Outside
	case asked.Reads != before.Reads:
		return forerun.ReadHosts
	}
	return forerun.Inside
}
