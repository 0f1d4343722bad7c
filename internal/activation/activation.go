// Package activation is the log of activations: their records, stored, found by
// id and listed by time and by the action's name.
//
// It promises that the records of one Put are in the log, all of them, when Put
// returns (and on disk within 10 ms, or at once if the log was opened so), that
// whoever asks afterwards finds them, and that neither finding nor listing
// takes longer the more records there are.
package activation

import (
	"context"
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// space is the room of the store that holds the log.
const space = "activations"

// largeRecord is the size from which a record has a summary beside it: lists read that, not the result and the logs.
const largeRecord = 4 << 10

// Store is what a log needs of a store (embedded.Store).
type Store interface {
	state.Store
	// Add writes records that are not there yet, and removes others, in one step. They are in the log when Add returns.
	Add(ctx context.Context, a state.Addition) error
}

// Log is the log of one server. Its methods may be called concurrently.
type Log struct {
	store  Store
	sync   bool
	keeper *Keeper // holds records to their part of what a tenant may store; nil: nothing does
}

// Open returns the log in store. With sync, records are on disk before Put returns.
func Open(store Store, sync bool) *Log { return &Log{store: store, sync: sync} }

// HoldTo has a keeper hold the records that are put from now on to their part of what a tenant may store. It is called before the log is in use.
func (l *Log) HoldTo(k *Keeper) { l.keeper = k }

// Put adds the records of one invocation, in place of their notes, all of them or none.
func (l *Log) Put(ctx context.Context, records ...*forerun.Activation) error {
	b := buffers.Get().(*buffer)
	defer b.release()
	added := state.Addition{Space: space, Records: b.added[:0], Gone: b.gone[:0], Lazy: !l.sync}
	for _, a := range records {
		whole, taken, err := l.fit(b, a)
		if err != nil {
			return err
		}
		if taken > 0 {
			defer l.keeper.giveBack(a.Namespace, taken)
		}
		var brief []byte // where lists read no more than they show, if that is much less
		if len(whole) > largeRecord {
			if brief, err = b.record(summary(a)); err != nil {
				return err
			}
		}
		added.Records = append(added.Records, state.Added{Name: b.text(appendIDKey, a), Data: whole},
			state.Added{Name: b.text(appendTimeKey, a), Data: brief}, state.Added{Name: b.text(appendNameKey, a)})
		if a.Noted {
			added.Gone = append(added.Gone, b.text(appendAcceptedKey, a))
		}
	}
	b.added, b.gone = added.Records, added.Gone
	return l.store.Add(ctx, added)
}

// Erase removes all that the log holds of a namespace.
func (l *Log) Erase(ctx context.Context, namespace string) error {
	for _, kind := range []string{"id", "time", "name", "accepted", "once"} {
		prefix := kind + "/" + namespace
		if err := state.Erase(ctx, l.store, state.Range{Space: space, From: prefix + "/", To: prefix + "0"}); err != nil { // '0' follows '/'
			return err
		}
	}
	return nil
}

// Get finds a record. The error is forerun.NotFound if the namespace has none of that id.
func (l *Log) Get(ctx context.Context, namespace string, id forerun.ActivationID) (*forerun.Activation, error) {
	found, err := l.read(ctx, idKey(namespace, id))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, forerun.Errorf(forerun.NotFound, "activation "+string(id), "The requested resource does not exist.")
	}
	return found[0], nil
}

// read reads and decodes records; one that is not there is left out.
func (l *Log) read(ctx context.Context, names ...string) ([]*forerun.Activation, error) {
	found, err := l.fetch(ctx, names...)
	if err != nil {
		return nil, err
	}
	list := make([]*forerun.Activation, 0, len(names))
	for i, data := range found {
		if data == nil {
			continue
		}
		a, err := decode(names[i], data)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// fetch reads what is stored under names; nil for one that is not there.
func (l *Log) fetch(ctx context.Context, names ...string) ([][]byte, error) {
	if len(names) == 0 {
		return nil, nil
	}
	keys := make([]forerun.Key, len(names))
	for i, name := range names {
		keys[i] = forerun.Key{Space: space, Name: name}
	}
	records, err := l.store.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	found := make([][]byte, len(names))
	for i, record := range records {
		if record.Version != 0 {
			found[i] = record.Data
		}
	}
	return found, nil
}

// summary is what a list shows of a record.
func summary(a *forerun.Activation) *forerun.Activation {
	s := *a
	s.Result, s.Logs, s.Timeline, s.Calls, s.Tally = nil, nil, forerun.Timeline{}, nil, nil
	return &s
}

func decode(name string, data []byte) (*forerun.Activation, error) {
	a := new(forerun.Activation)
	if err := json.Unmarshal(data, a); err != nil {
		return nil, forerun.Errorf(forerun.Internal, name, "The activation's record is damaged: %w", err)
	}
	return a, nil
}

func set(name string, value []byte) state.Command {
	return state.Command{Space: space, Args: [][]byte{[]byte("SET"), []byte(name), value}}
}

// setNew is set for what is not there yet, or counts for no tenant.
func setNew(name string, value []byte) state.Command {
	c := set(name, value)
	c.Fresh = true
	return c
}

func del(name string) state.Command {
	return state.Command{Space: space, Args: [][]byte{[]byte("DEL"), []byte(name)}}
}
