// Package state is the versioned store of records and what speaks to it: the
// Store contract here, its implementation in embedded (Pebble); the command
// table in command; the RESP door in resp; the suite that every
// implementation passes in statetest.
//
// A record is one key with a typed value (string, hash, list, set, sorted set)
// and perhaps an expiry. Its version comes from one store-wide sequence, so a
// version never returns, not even after a deletion (rule R11).
package state

import (
	"context"
	"iter"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Type is the type of a record's value.
type Type byte

// The types of records, as Redis names them.
const (
	Absent Type = iota
	String
	Hash
	List
	Set
	SortedSet
)

// Record is a record as Get shows it.
type Record struct {
	Version forerun.Version // 0 if there is none
	Type    Type
	Data    []byte    // the value of a String; nil for other types
	Expires time.Time // zero: never
}

// Command is one Redis command with its arguments: Args[0] is its name, in any case.
type Command struct {
	Space string // the key space it works in
	Args  [][]byte
	At    time.Time // when it was executed before, on images; zero: it was not. Exec alone heeds it
	Fresh bool      // the records that it writes are not there yet: nothing is looked up, and what is there is lost
}

// Txn is applied whole or not at all.
type Txn struct {
	Expect []Expect  // versions that must still be current
	Ops    []Command // write commands, replayed in order (rule R11: never values)
	Lazy   bool      // in the log before Apply returns, on disk within 10 ms; else on disk before it returns
	Owed   bool      // for what was begun when the disk had room, what the operator orders, and what ends rules: while it has none it waits, where others are refused. No quota holds it
}

// Addition is a step that makes String records without commands (embedded.Store.Add).
type Addition struct {
	Space   string
	Records []Added
	Gone    [][]byte // names of records that the step removes: Strings that never expire, and count for no tenant
	Lazy    bool     // as of a Txn
}

// Added is a record that is not there yet, and never expires.
type Added struct{ Name, Data []byte }

// Expect says that a record still has the version that was read.
type Expect struct {
	Key     forerun.Key
	Version forerun.Version
}

// ConflictError says which expectations of a Txn failed. Its Kind is forerun.Exists.
type ConflictError struct{ Keys []forerun.Key }

// Image is what a record holds at one moment, whatever its type, or that there is none. It is immutable. Package command
// makes images and executes commands on them.
type Image interface {
	// Absent tells whether there is no such record.
	Absent() bool
	// Size is about how many bytes it takes.
	Size() int
}

// Fetched is a record as Fetch shows it. One that has expired is absent, and its version is 0.
type Fetched struct {
	Image   Image
	Version forerun.Version
}

// Observed is what Observe tells.
type Observed struct {
	Replies []Reply
	Version forerun.Version // the replies rest on writes up to this
	Reads   []Expect        // the records that the replies or the writes depended on, each once, as they were before
	Wrote   []forerun.Key   // what was changed, each once
	Exact   bool            // nothing else mattered: not the time, not chance, no record beside Reads
}

// Entry is one String record found by Scan.
type Entry struct {
	Name    string
	Version forerun.Version
	Data    []byte
}

// Range bounds a Scan: names from From (inclusive) to To (exclusive; "" is the end of the space).
type Range struct {
	Space    string
	From, To string
	Reverse  bool // from the end to the beginning
}

// Store holds records. All methods may be called concurrently; a returned slice belongs to the caller. If its context ends a method ends soon, with
// the context's error; then Apply, Do, Exec and Observe have changed nothing.
// What Get, Scan and Apply return is on disk (but for Lazy transactions); what Do returns is only when Durable says so.
type Store interface {
	// Get reads records, all at one moment.
	Get(ctx context.Context, keys ...forerun.Key) ([]Record, error)
	// Versions reads what versions records have, all at one moment: what expects that they still have them.
	Versions(ctx context.Context, keys ...forerun.Key) ([]Expect, error)
	// Scan walks the String records of a range in the order of their names, as of one moment.
	Scan(ctx context.Context, r Range) iter.Seq2[Entry, error]
	// Apply checks the expectations and runs the operations as one step. Two things might happen: it is applied,
	// and the version of its writes is returned; or nothing is changed, and the error says why: *ConflictError, or
	// what a command answered. Only if the disk fails (forerun.Unavailable) is it not known which of the two; from then on
	// the store refuses everything.
	Apply(ctx context.Context, t Txn) (forerun.Version, error)
	// Do executes one command at once. The reply rests on writes up to the returned version, which may not be on
	// disk yet: show it to nobody before Durable(version).
	Do(ctx context.Context, c Command) (Reply, forerun.Version, error)
	// Exec executes commands as one step at one time, each as Do would behind those before it: one that answers an error
	// changes nothing, and the others are executed all the same. If an expectation has failed, none is: *ConflictError.
	// The replies rest on writes up to the returned version.
	Exec(ctx context.Context, expect []Expect, ops []Command) ([]Reply, forerun.Version, error)
	// Observe is Exec that also tells what was read and what was written. It costs more, the more was written.
	Observe(ctx context.Context, expect []Expect, ops []Command) (Observed, error)
	// Fetch takes images of records, all of one moment. They may not be on disk yet: a transaction that expects their
	// versions, and is durable, has put them there. The error is forerun.TooLarge if together they are too large for copies.
	Fetch(ctx context.Context, keys ...forerun.Key) ([]Fetched, error)
	// Durable waits until every write up to v is on disk.
	Durable(ctx context.Context, v forerun.Version) error
	// Watch calls f after each change of a record with the version of the change, a deletion's or an expiry's too, until
	// stop is called. Changes of one record come in their order, and those of one step in the order in which its commands made them. f must not block, nor call the store or stop.
	Watch(f func(forerun.Key, forerun.Version)) (stop func())
	// Close releases the store; what was acknowledged is on disk.
	Close() error
}
