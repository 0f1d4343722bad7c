package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Step is what one request does, as one: a command, the commands of a transaction, or a look at versions. It says of itself which
// records it needs, so that it can be executed on images of those. But for its time it is immutable.
type Step struct {
	space  string
	at     time.Time
	expect []state.Expect
	look   bool
	ops    []operation

	reads, writes KeySet
	settled       []bool          // of each of writes: it gets its value whatever it was, unless the command is refused
	args, size    int             // how many arguments its commands have, and how many bytes these take
	held          *forerun.Reason // why it is; nil: it is not
	inexact       string          // the name of the first command that is
}

// operation is a command of a step.
type operation struct {
	spec    *Spec // nil: it is refused
	refusal state.Reply
	args    [][]byte
	writes  []int // which of the step's writes are its own
}

// NewStep makes a step of a command that is executed at a time. It copies args.
func NewStep(space string, at time.Time, args [][]byte) *Step {
	return newStep(space, at, nil, [][][]byte{args})
}

// NewTransaction makes a step of commands that are executed, at a time, if the expectations hold. It copies them.
func NewTransaction(space string, at time.Time, expect []state.Expect, commands [][][]byte) *Step {
	return newStep(space, at, slices.Clone(expect), commands)
}

// NewLook makes a step that only tells the versions of records, which are in one space.
func NewLook(keys []forerun.Key) *Step {
	s := &Step{look: true}
	for _, k := range keys {
		s.space = k.Space
		s.expect = append(s.expect, state.Expect{Key: k})
		s.reads.Add(k)
	}
	return s
}

func newStep(space string, at time.Time, expect []state.Expect, commands [][][]byte) *Step {
	s := &Step{space: space, at: at, expect: expect, ops: make([]operation, len(commands))}
	for _, e := range expect {
		s.reads.Add(e.Key)
	}
	for i, args := range commands {
		op := &s.ops[i]
		op.args = s.copyArgs(args)
		if op.spec, op.refusal = Find(op.args); op.spec != nil {
			s.classify(op)
		}
	}
	return s
}

func (s *Step) copyArgs(args [][]byte) [][]byte {
	own := make([][]byte, len(args))
	for i, arg := range args {
		own[i] = append([]byte{}, arg...)
		s.size += len(arg)
	}
	s.args += len(args)
	return own
}

// classify adds what a command needs and does.
func (s *Step) classify(op *operation) {
	if s.held == nil && op.spec.needs(op.args)&Unbufferable != 0 {
		s.held = Held(op.spec.Name)
	}
	if s.held == nil && op.spec.writesUndeclared(op.args) {
		s.held = heldAs(forerun.ReasonReadsUnnamed, op.spec.Name)
	}
	if s.inexact == "" && !op.spec.IsExact(op.args) {
		s.inexact = strings.ToUpper(op.spec.Name)
	}
	for i, role := range op.spec.Roles(op.args) {
		key := forerun.Key{Space: s.space, Name: string(op.args[i])}
		if role&Read != 0 {
			s.reads.Add(key)
		}
		if role&Write != 0 {
			at := s.writes.Add(key)
			if at == len(s.settled) {
				s.settled = append(s.settled, true)
			}
			s.settled[at] = s.settled[at] && role&Read == 0
			op.writes = append(op.writes, at)
		}
	}
	if s.least() > maxWork {
		if s.held == nil {
			s.held = tooLong(op.spec.Name)
		}
		s.reads, s.writes, s.settled = KeySet{}, KeySet{}, nil // to go over them would take long as well
	}
}

// least is the work that the step is at least, whatever its records are: also of those that it only writes the heads are read.
func (s *Step) least() int {
	reads, writes := len(s.reads.List), len(s.writes.List)
	return workOfRead*max(reads, writes) + writeCost*writes + workOfArg*s.args + workOfCopying(s.size)
}

// Reads are the records whose value before the step its replies or its writes depend on; none if there are so many that the step holds.
func (s *Step) Reads() []forerun.Key { return s.reads.List }

// Writes are the records that the step may change; none if there are so many that it holds.
func (s *Step) Writes() []forerun.Key { return s.writes.List }

// Holds says whether the step cannot be executed on images, nor be taken back: it must wait until it may reach the store.
func (s *Step) Holds() bool { return s.held != nil }

// Held is why the step waits; nil: it need not.
func (s *Step) Held() *forerun.Reason { return s.held }

// Inexact is the name of a command whose reply or writes depend on more than what Reads were: on the time, on chance, on other records. It
// is empty if there is none.
func (s *Step) Inexact() string { return s.inexact }

// Name is the name of the first command; of a look, WATCH.
func (s *Step) Name() string {
	switch {
	case s.look:
		return "WATCH"
	case s.ops[0].spec == nil:
		return "?"
	}
	return strings.ToUpper(s.ops[0].spec.Name)
}

// Looks says whether the step is but a look at the versions of Reads.
func (s *Step) Looks() bool { return s.look }

// Expect are the versions that the step demands.
func (s *Step) Expect() []state.Expect {
	if s.look {
		return nil
	}
	return s.expect
}

// Commands are the commands of the step, for the store.
func (s *Step) Commands() []state.Command {
	commands := make([]state.Command, len(s.ops))
	for i, op := range s.ops {
		commands[i] = state.Command{Space: s.space, Args: op.args}
	}
	return commands
}

// Begin gives the step the time at which it is executed now.
func (s *Step) Begin(at time.Time) { s.at = at }

// Replay are the commands as they are executed again in the store, each at its time: a life that one gives to a record and another
// of the step's invocation saw end, or not, is as long as it was.
func (s *Step) Replay() []state.Command {
	commands := s.Commands()
	for i := range commands {
		commands[i].At = s.at
	}
	return commands
}

// Size is how many bytes the arguments of the step's commands take.
func (s *Step) Size() int { return s.size }

// Outcome is what a step answers.
type Outcome struct {
	Replies []state.Reply   // one for each command
	Seen    []state.Expect  // what a look saw
	Err     error           // *state.ConflictError: an expectation does not hold, and nothing was done
	Long    *forerun.Reason // else: why the step cannot be executed on images after all, as it takes long or needs more; nothing was done
}

// Executor executes steps on images. Its zero value is ready, and may be used concurrently.
type Executor struct {
	made atomic.Uint64 // images that commands made; each has a version of its own, so that a transaction notices
}

// ownVersions are above all versions of a store.
const ownVersions = 1 << 63

// Execute executes a step that does not hold, on images of its Reads. It returns, in the order of its Writes, images of
// what it made of them: nil of what it left alone, and no list at all if every command was refused, or the expectations
// do not hold. What Execute does is what the store does when it executes the same commands on the same records at the
// same time, but for one thing: a record of which there is an image that the store gave has not expired (rule R1).
func (e *Executor) Execute(s *Step, reads []state.Image) (Outcome, []state.Image) {
	base := newImageReader(s.space, len(reads))
	now := s.at
	for i, k := range s.reads.List {
		image := reads[i].(*Image) // there are no others
		switch end := image.expires(); {
		case end == 0 || end >= s.at.UnixMilli():
		case image.version >= ownVersions:
			image = &Image{}
		case end < now.UnixMilli():
			now = time.UnixMilli(end)
		}
		base.images[k.Name] = image
	}
	if s.look {
		return Outcome{Seen: s.seen(base)}, nil
	}
	if changed := s.unexpected(base); changed != nil {
		return Outcome{Err: &state.ConflictError{Keys: changed}}, nil
	}
	o := Outcome{Replies: make([]state.Reply, len(s.ops))}
	overlay := NewOverlay(context.Background(), base)
	overlay.most = maxWork
	wrote := make([]bool, len(s.writes.List)) // by a command that succeeded
	refused := true
	for i, op := range s.ops {
		o.Replies[i] = op.refusal
		if op.spec == nil {
			continue
		}
		var err error
		o.Replies[i], err = Execute(overlay, op.spec, s.space, now, op.args)
		switch {
		case errors.Is(err, errLong):
			return Outcome{Long: tooLong(op.spec.Name)}, nil
		case IsBeyond(err):
			beyond, _ := errors.AsType[*beyondError](err)
			return Outcome{Long: beyond.why}, nil
		case err != nil:
			return Outcome{Err: err}, nil
		}
		if o.Replies[i].Kind == state.Error && !op.spec.IsScript() {
			continue
		}
		refused = false
		for _, at := range op.writes {
			wrote[at] = true
		}
	}
	if refused {
		return o, nil
	}
	return o, e.redraft(s, base, overlay, wrote, now)
}

// maxWork is what the commands of a step may do on images: some milliseconds' work.
const maxWork = 8 << 20

// tooLong is why a step waits that comes to a command.
func tooLong(name string) *forerun.Reason { return heldAs(forerun.ReasonTakesLong, name) }

// seen tells the versions of images.
func (s *Step) seen(images *imageReader) []state.Expect {
	seen := slices.Clone(s.expect)
	for i, e := range seen {
		seen[i].Version = images.images[e.Key.Name].version
	}
	return seen
}

// unexpected are the records that have other versions than expected.
func (s *Step) unexpected(images *imageReader) (changed []forerun.Key) {
	for _, e := range s.expect {
		if images.images[e.Key.Name].version != e.Version {
			changed = append(changed, e.Key)
		}
	}
	return changed
}

// redraft makes images of what is in an overlay.
func (e *Executor) redraft(s *Step, base *imageReader, overlay *Overlay, wrote []bool, now time.Time) []state.Image {
	d := &redraft{from: base, made: make(map[string]*draft, len(s.writes.List))}
	_ = overlay.Flush(d) // a redraft takes everything
	images := make([]state.Image, len(s.writes.List))
	for i, k := range s.writes.List {
		m := d.made[k.Name]
		if m == nil && wrote[i] && s.settled[i] {
			m = &draft{} // it is gone now, whatever it was
		}
		if m != nil {
			images[i] = m.image(now.UnixMilli(), forerun.Version(ownVersions|e.made.Add(1)))
		}
	}
	return images
}
