package activation

import (
	"context"
	"strconv"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// An accepted activation is one whose client was told its id before its end. A noted one is about to have a durable effect. What is
// known of either lies in the log until its record does, so that it ends with one even if the server does not live to see it. It counts for
// no tenant: it is written without a look at what is there, and is gone at the end of the activation.

// acceptedPrefix begins the names of what is known of accepted activations.
const acceptedPrefix = "accepted/"

func acceptedKey(a *forerun.Activation) string {
	return string(appendAcceptedKey(nil, a))
}

// Accept keeps what is known of an activation that has not ended. It is in the log when Accept returns.
func (l *Log) Accept(ctx context.Context, a *forerun.Activation) error {
	data, err := appendRecord(nil, a)
	if err != nil {
		return err
	}
	_, err = l.store.Apply(ctx, state.Txn{Ops: []state.Command{setNew(acceptedKey(a), data)}, Lazy: !l.sync, Owed: true})
	return err
}

// Note keeps what is known of activations before they have an effect, as Accept does. It is refused while the disk has no room.
func (l *Log) Note(ctx context.Context, list ...*forerun.Activation) error {
	_, err := l.store.Apply(ctx, state.Txn{Ops: l.Notes(list...), Lazy: !l.sync})
	return err
}

// Notes are the commands by which Note keeps something, for a transaction of the same store.
func (l *Log) Notes(list ...*forerun.Activation) []state.Command {
	ops := make([]state.Command, len(list))
	for i, a := range list {
		ops[i] = setNew(acceptedKey(a), appendNote(make([]byte, 0, noteSize), a))
	}
	return ops
}

// noteSize is more bytes than most notes have.
const noteSize = 768

// appendNote appends what is known of an activation at its beginning, in the form of its record.
func appendNote(b []byte, a *forerun.Activation) []byte {
	b = appendIdentity(b, a)
	b = appendAnnotations(b, a.Annotations)
	b = appendTime(b, `,"Start":`, a.Start)
	b = strconv.AppendInt(append(b, `,"Timeline":{"Slot":`...), int64(a.Timeline.Slot), 10)
	b = appendTime(b, `,"Queued":`, a.Timeline.Queued)
	return append(b, "}}"...)
}

// Forget drops what Accept kept, once the activation's record is in the log.
func (l *Log) Forget(ctx context.Context, a *forerun.Activation) error {
	_, err := l.store.Apply(ctx, state.Txn{Ops: []state.Command{del(acceptedKey(a))}, Lazy: true, Owed: true})
	return err
}

// Recover ends the accepted and noted activations that an earlier server left without a record, with end, and returns their number.
// A program's record lists those of its functions that were left, too.
func (l *Log) Recover(ctx context.Context, end func(*forerun.Activation)) (int, error) {
	left, err := l.accepted(ctx)
	if err != nil {
		return 0, err
	}
	listParts(left)
	n := 0
	for _, a := range left {
		if _, err := l.Get(ctx, a.Namespace, a.ID); forerun.KindOf(err) == forerun.NotFound {
			end(a)
			if err := l.Put(ctx, a); err != nil {
				return n, err
			}
			n++
		}
		if err := l.Forget(ctx, a); err != nil {
			return n, err
		}
	}
	return n, nil
}

// listParts puts the ids of noted activations into the logs of the programs that they are a part of. Ids are in the order of time.
func listParts(left []*forerun.Activation) {
	programs := make(map[forerun.ActivationID]*forerun.Activation)
	for _, a := range left {
		if string(forerun.Lookup(a.Annotations, "kind")) == `"sequence"` {
			programs[a.ID] = a
		}
	}
	for _, a := range left { // by namespace, then by id
		if program := programs[a.Cause]; program != nil && program.Namespace == a.Namespace {
			program.Logs = append(program.Logs, string(a.ID))
		}
	}
}

func (l *Log) accepted(ctx context.Context) ([]*forerun.Activation, error) {
	var list []*forerun.Activation
	for entry, err := range l.store.Scan(ctx, state.Range{Space: space, From: acceptedPrefix, To: "accepted0"}) { // '0' follows '/'
		if err != nil {
			return nil, err
		}
		a, err := decode(entry.Name, entry.Data)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}
