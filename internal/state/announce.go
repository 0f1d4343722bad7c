package state

import (
	"context"

	"forerun.dev/forerun/internal/forerun"
)

// Announcer is a Store that every write goes through, whoever makes it. So a version that it has told holds until it announces a change
// of the record, if no record's life ends before.
type Announcer interface {
	Store
	// Announce calls f with each record that is about to change, before any client can see the change, until stop is called. A deletion is a
	// change, and so is the removal of a record whose life has ended. A change that is announced may fail. f must not block, nor call the
	// store or stop.
	Announce(f func(forerun.Key)) (stop func())
	// Standing is Versions that also reports whether the records are lasting: none of them has a life that ends, or has ended.
	Standing(ctx context.Context, keys ...forerun.Key) (now []Expect, lasting bool, err error)
}
