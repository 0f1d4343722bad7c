package native

import (
	"errors"
	"os"
	"sync"

	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// heldPart is the part of its processor share that a sandbox keeps while its activation is speculative (C5). With much less, anything that
// wants a processor for a moment interrupts it, the server too. That costs more processor time than it gives the others.
const heldPart = 4

// outlet is the server's control of a sandbox whose activation becomes speculative, or is promoted. It shuts or lifts the helper's gate,
// and sets the sandbox's weight. The server asks the helper only where something may go out all the same, and where something waits. The
// zero value is the outlet of a sandbox that is not made yet, or has been closed.
type outlet struct {
	mu       sync.Mutex // guards the rest
	gate     *guard.Switch
	weight   weight
	usual    int  // that weight, while its activation is in order
	light    bool // it weighs a heldPart of that
	unshared bool // its initializer has nothing that its handlers share, and never will
}

var errNoOutlet = errors.New("the sandbox has ended")

// shut shuts it, and reports whether nothing goes out any more but to hosts that the helper lets pass: else it is to be asked.
func (o *outlet) shut() (surely bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gate == nil {
		return false, errNoOutlet
	}
	o.gate.Shut()
	return o.unshared && !o.gate.Connected(), o.lighten(true)
}

// lift lifts it, and reports whether the helper is to be told.
func (o *outlet) lift() (waiting bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gate == nil {
		return false, errNoOutlet
	}
	err = o.lighten(false)
	return o.gate.Lift(), err
}

// weigh sets the weight that the sandbox has while its activation is in order.
func (o *outlet) weigh(usual int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gate == nil {
		return errNoOutlet
	}
	o.usual = usual
	return o.weight.set(o.present(o.light))
}

func (o *outlet) present(light bool) int {
	if light {
		return max(1, o.usual/heldPart)
	}
	return o.usual
}

// hurry gives it its usual weight, though it stays shut: a killed process needs the processors to end.
func (o *outlet) hurry() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gate == nil {
		return errNoOutlet
	}
	return o.lighten(false)
}

// lighten gives the sandbox the small weight, or its usual one. mu is held.
func (o *outlet) lighten(light bool) error {
	if o.light == light {
		return nil
	}
	err := o.weight.set(o.present(light))
	if err == nil {
		o.light = light
	}
	return err
}

// noteUnshared notes that nothing is shared.
func (o *outlet) noteUnshared() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unshared = true
}

// asked is what the helper has counted; known is false if the sandbox has been closed.
func (o *outlet) asked() (asked sandbox.Asked, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gate == nil {
		return asked, false
	}
	asked.Reads, asked.Others = o.gate.Asked()
	return asked, true
}

// close stops all changes: the gate may become another sandbox's.
func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gate = nil
	closeAll([]*os.File{o.weight.file})
}
