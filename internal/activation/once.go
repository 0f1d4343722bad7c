package activation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// OnceFor is how long a request that is carried out once is remembered.
const OnceFor = 24 * time.Hour

// Once is a request that is carried out once, however often it is made.
type Once struct {
	Namespace string // of who makes it
	Action    forerun.Name
	Key       string // that its maker chose for it
	Payload   [sha256.Size]byte
}

// kept is what is stored of a Once.
type kept struct {
	ID      forerun.ActivationID `json:"id"` // of the activation that carries it out
	Payload string               `json:"payload"`
}

// oncePrefix begins the names of requests that are carried out once.
const oncePrefix = "once/"

// name is where a Once is stored: keys may hold anything, a hash may not.
func (o *Once) name() string {
	sum := sha256.Sum256([]byte(o.Action.String() + "\x00" + o.Key))
	return oncePrefix + o.Namespace + "/" + hex.EncodeToString(sum[:])
}

// FindOnce finds the activation that carries a request out; the id is empty if there is none yet. The error is
// forerun.Unprocessable if the same key came with another payload.
func (l *Log) FindOnce(ctx context.Context, o *Once) (forerun.ActivationID, error) {
	records, err := l.store.Get(ctx, forerun.Key{Space: space, Name: o.name()})
	if err != nil || records[0].Version == 0 {
		return "", err
	}
	var k kept
	if err := json.Unmarshal(records[0].Data, &k); err != nil {
		return "", forerun.Errorf(forerun.Internal, o.name(), "The record of an idempotency key is damaged: %w", err)
	}
	if k.Payload != hex.EncodeToString(o.Payload[:]) {
		return "", forerun.Errorf(forerun.Unprocessable, "Idempotency-Key",
			"The Idempotency-Key %q came with another payload before: send the same payload again, or choose another key.", o.Key)
	}
	return k.ID, nil
}

// AcceptOnce is Accept for an activation that carries out a request; it is on disk when AcceptOnce returns. If another was
// accepted for the same request before, nothing is kept of this one, and the other's id is returned. The error is forerun.OverQuota if the
// tenant may store no more.
func (l *Log) AcceptOnce(ctx context.Context, a *forerun.Activation, o *Once) (forerun.ActivationID, error) {
	data, err := appendRecord(nil, a)
	if err != nil {
		return "", err
	}
	value, _ := json.Marshal(kept{a.ID, hex.EncodeToString(o.Payload[:])}) // strings always marshal
	remember := set(o.name(), value)
	remember.Args = append(remember.Args, []byte("PX"), strconv.AppendInt(nil, OnceFor.Milliseconds(), 10))
	_, err = l.store.Apply(ctx, state.Txn{
		Expect: []state.Expect{{Key: forerun.Key{Space: space, Name: o.name()}}},
		Ops:    []state.Command{remember, setNew(acceptedKey(a), data)},
	})
	if _, conflict := errors.AsType[*state.ConflictError](err); conflict {
		return l.FindOnce(ctx, o)
	}
	return a.ID, err
}
