package state

import (
	"context"

	"forerun.dev/forerun/internal/forerun"
)

// Bridge stands between activations that are part of an invocation which runs ahead, and the store. Its methods are those
// of a RESP session; they wait as long as the activation may not be answered, and fail when it is over. What is returned rests on
// writes up to the version, as with Store.Do.
type Bridge interface {
	Do(ctx context.Context, id forerun.ActivationID, c Command) (Reply, forerun.Version, error)
	Exec(ctx context.Context, id forerun.ActivationID, space string, expect []Expect, commands [][][]byte) ([]Reply, forerun.Version, error)
	Versions(ctx context.Context, id forerun.ActivationID, keys []forerun.Key) ([]Expect, error)
	// Hold returns when the activation may do what cannot be taken back.
	Hold(ctx context.Context, id forerun.ActivationID) error
}
