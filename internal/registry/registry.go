// Package registry keeps what was deployed: actions (functions, sequences and
// compositions), packages, triggers and rules, and the tenants who own them, as
// String records in the space "registry" of the store; and the operator's switch.
//
// It promises that what a call has acknowledged is on disk, that an action it
// hands out is never changed, and that a reader never sees the metadata of one
// version with the code of another. Code lies in records of its own, so that
// listing reads none of it.
package registry

import (
	"context"
	"sync"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// space is the room of the store that holds the registry.
const space = "registry"

// Registry is the registry of one server. Its methods may be called concurrently.
type Registry struct {
	store     state.Store
	defaults  Limits // of tenants
	keyring   *Keyring
	actions   *cache[forerun.Name, *forerun.Action]
	entities  *cache[forerun.Name, *Entity]
	merged    *cache[forerun.Name, resolution] // by the name that was asked for
	keys      *cache[string, knownKey]         // by uuid
	tenants   *cache[string, Tenant]           // by namespace
	accounts  sync.Map                         // of *account by namespace
	inForce   sync.Map                         // of each Tenant, by namespace
	changing  sync.Mutex                       // held while a tenant's record is rewritten
	voids     voids
	changes   atomic.Uint64 // of actions and packages
	listener  atomic.Pointer[func()]
	stopWatch func()
}

// Open returns the registry in store. defaults bound the tenants who have no quotas of their own. Secret parameters are sealed with
// keyring; with nil there can be none. Close it before the store.
func Open(store state.Store, defaults Limits, keyring *Keyring) *Registry {
	r := &Registry{
		store: store, defaults: defaults, keyring: keyring,
		actions:  newCache[forerun.Name](maxActionBytes, actionBytes),
		entities: newCache[forerun.Name](maxEntityBytes, entityBytes),
		merged:   newCache[forerun.Name](maxActionBytes, resolution.bytes),
		keys:     newCache[string](maxKeys, one[knownKey]),
		tenants:  newCache[string](maxKeys, one[Tenant]),
	}
	r.stopWatch = store.Watch(func(key forerun.Key, _ forerun.Version) {
		if key.Space == space {
			r.forget(key.Name)
		}
	})
	return r
}

// Close ends the watch over the store.
func (r *Registry) Close() { r.stopWatch() }

// forget drops what is cached of a record that has changed.
func (r *Registry) forget(record string) {
	if name, ok := actionOfRecord(record); ok {
		r.actions.forget(name)
		r.changed()
	} else if name, ok := entityOfRecord(record); ok {
		r.entities.forget(name)
		r.changed()
	} else if uuid, ok := uuidOfRecord(record); ok {
		r.keys.forget(uuid)
	} else if namespace, ok := namespaceOfTenant(record); ok {
		r.tenants.forget(namespace)
	}
}

// get reads records of the registry, all at one moment.
func (r *Registry) get(ctx context.Context, names ...string) ([]state.Record, error) {
	keys := make([]forerun.Key, len(names))
	for i, name := range names {
		keys[i] = forerun.Key{Space: space, Name: name}
	}
	return r.store.Get(ctx, keys...)
}

// set and del are the commands of which the registry's transactions are made.
func set(name string, value []byte) state.Command {
	return state.Command{Space: space, Args: [][]byte{[]byte("SET"), []byte(name), value}}
}

func del(names ...string) state.Command {
	args := [][]byte{[]byte("DEL")}
	for _, name := range names {
		args = append(args, []byte(name))
	}
	return state.Command{Space: space, Args: args}
}

// unchanged says that a record must still be at the version that was read.
func unchanged(name string, version forerun.Version) state.Expect {
	return state.Expect{Key: forerun.Key{Space: space, Name: name}, Version: version}
}

// under is the range of all names that begin with prefix, which ends with a slash.
func under(prefix string) state.Range {
	return state.Range{Space: space, From: prefix, To: prefix[:len(prefix)-1] + "0"} // '0' follows '/'
}
