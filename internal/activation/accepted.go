package activation

import (
	"context"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// An accepted activation is one whose client was told its id before its end. What is known of it lies in the log until
// its record does, so that it ends with one even if the server does not live to see it.

// acceptedPrefix begins the names of what is known of accepted activations.
const acceptedPrefix = "accepted/"

func acceptedKey(a *forerun.Activation) string {
	return acceptedPrefix + a.Namespace + "/" + string(a.ID)
}

// Accept keeps what is known of an activation that has not ended. It is in the log when Accept returns.
func (l *Log) Accept(ctx context.Context, a *forerun.Activation) error {
	data, err := encode(a)
	if err != nil {
		return err
	}
	_, err = l.store.Apply(ctx, state.Txn{Ops: []state.Command{set(acceptedKey(a), data)}, Lazy: !l.sync, Owed: true})
	return err
}

// Forget drops what Accept kept, once the activation's record is in the log.
func (l *Log) Forget(ctx context.Context, a *forerun.Activation) error {
	_, err := l.store.Apply(ctx, state.Txn{Ops: []state.Command{del(acceptedKey(a))}, Lazy: true, Owed: true})
	return err
}

// Recover ends the accepted activations that an earlier server left without a record, with end, and returns their number.
func (l *Log) Recover(ctx context.Context, end func(*forerun.Activation)) (int, error) {
	left, err := l.accepted(ctx)
	if err != nil {
		return 0, err
	}
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
