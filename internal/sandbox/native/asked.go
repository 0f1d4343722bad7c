package native

import (
	"context"
	"sync/atomic"

	"forerun.dev/forerun/internal/sandbox"
)

// asked counts what a relay of the server has taken of a sandbox.
type asked struct{ reads, others atomic.Uint32 }

func (a *asked) saw(reads bool) {
	if reads {
		a.reads.Add(1)
	} else {
		a.others.Add(1)
	}
}

// Permit implements sandbox.Sandbox.
func (b *serverSandbox) Permit(ctx context.Context, hosts []string) error {
	permit := b.hosts.name(hosts)
	if len(permit) == 0 {
		return nil
	}
	_, err := b.maker.ask(ctx, request{kind: kindPermit, id: b.id, permit: permit})
	return err
}

// Asked implements sandbox.Sandbox. The helper counts in shared memory. The relays first take what has arrived at their sockets.
func (b *serverSandbox) Asked() (sandbox.Asked, bool) {
	total, known := b.outlet.asked()
	if !known {
		return total, false
	}
	b.names.takeArrived()
	b.datagrams.takeArrived()
	for _, a := range []*asked{&b.names.asked, &b.datagrams.asked} {
		total.Reads += a.reads.Load()
		total.Others += a.others.Load()
	}
	return total, true
}
