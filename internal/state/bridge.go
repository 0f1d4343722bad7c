package state

import (
	"context"

	"forerun.dev/forerun/internal/forerun"
)

// Bridge stands between activations that are part of an invocation which runs ahead, and the store. Its methods are those
// of a RESP session; they wait as long as the activation may not be answered, and fail when it is over. What is returned rests on
// writes up to the version, as with Store.Do.
type Bridge interface {
	Do(ctx context.Context, by Asker, c Command) (Reply, forerun.Version, error)
	Exec(ctx context.Context, by Asker, space string, expect []Expect, commands [][][]byte) ([]Reply, forerun.Version, error)
	Versions(ctx context.Context, by Asker, keys []forerun.Key) ([]Expect, error)
	// Hold returns when the activation may do what cannot be done ahead. why is for the trace. If there is
	// something to begin then, such as to listen, it has begun that before anything is done that the activation has asked for since.
	Hold(ctx context.Context, by Asker, why *forerun.Reason, begin func()) error
	// Notes are commands that keep notes of an activation that is to be Noted, but not bridged. They belong into the same step as its
	// first command that may write. None: it has its notes, or needs none.
	Notes(id forerun.ActivationID) []Command
	// Noted tells that the Notes of an activation were executed.
	Noted(id forerun.ActivationID)
}

// Asker is a connection of an activation that asks something.
type Asker struct {
	Activation forerun.ActivationID
	// Listen is for what waits for the activation's turn: the context that it returns ends with ctx, and when the other end is
	// closed, until stop is called. Who has gone is to get nothing any more. nil: only ctx tells.
	Listen func(ctx context.Context) (heard context.Context, stop func())
}
