package native

import (
	"errors"
	"os"
	"sync"

	"forerun.dev/forerun/internal/sandbox/guard"
)

// heldPart is the part of its share of the processors that a sandbox has while its activation is speculative (C5). With much less, it is
// interrupted by whatever else wants a processor for a moment, the server too, and that takes more of them than it gives the others.
const heldPart = 4

// outlet is what the server does by itself when a sandbox's activation runs ahead, and when it does no more: it shuts the helper's gate
// or lifts it, and has the sandbox weigh little or what it weighs else. The helper is asked where something may go out all the same, and
// where something waits. Its zero value is that of a sandbox that is not made yet, or has been closed.
type outlet struct {
	mu       sync.Mutex // guards the rest
	gate     *guard.Switch
	weight   weight
	usual    int  // that weight, of what does not run ahead
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

// weigh sets what it weighs when nothing runs ahead in it.
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

// hurry has it weigh what it weighs else, though it stays shut: what is killed needs the processors to end.
func (o *outlet) hurry() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gate == nil {
		return errNoOutlet
	}
	return o.lighten(false)
}

// lighten has the sandbox weigh little, or what it weighs else. mu is held.
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

// close has nobody change anything any more: the gate may become another sandbox's.
func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gate = nil
	closeAll([]*os.File{o.weight.file})
}
