package registry

import (
	"hash/maphash"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// Bounds of what is kept in memory.
const (
	maxActionBytes = 64 << 20
	maxEntityBytes = 64 << 20
	maxKeys        = 10_000
)

// cache keeps what was read from the store. A change of a record forgets its entry; what was read before a change but
// comes in behind it is not kept: each change makes a new epoch, of the few keys that share one.
type cache[K comparable, V any] struct {
	max    int // of the sum of weights
	weight func(V) int
	seed   maphash.Seed

	mu      sync.RWMutex // guards the rest
	entries map[K]V
	used    int
	epochs  [256]uint64
}

func newCache[K comparable, V any](bound int, weight func(V) int) *cache[K, V] {
	return &cache[K, V]{max: bound, weight: weight, seed: maphash.MakeSeed(), entries: make(map[K]V)}
}

// epoch is that of a key.
func (c *cache[K, V]) epoch(key K) *uint64 {
	return &c.epochs[maphash.Comparable(c.seed, key)%uint64(len(c.epochs))]
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.entries[key]
	return v, ok
}

// begin is called before the store is read.
func (c *cache[K, V]) begin(key K) (epoch uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return *c.epoch(key)
}

// put keeps what was read since epoch began, and returns the value that all readers are to share.
func (c *cache[K, V]) put(key K, v V, epoch uint64) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, ok := c.entries[key]; ok {
		return kept
	}
	weight := c.weight(v)
	if *c.epoch(key) != epoch || weight > c.max {
		return v
	}
	for other := range c.entries { // any one: the bound is meant to hold all that is in use
		if c.used+weight <= c.max {
			break
		}
		c.drop(other)
	}
	c.entries[key] = v
	c.used += weight
	return v
}

func (c *cache[K, V]) forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.epoch(key)++
	c.drop(key)
}

func (c *cache[K, V]) drop(key K) {
	if v, ok := c.entries[key]; ok {
		c.used -= c.weight(v)
		delete(c.entries, key)
	}
}

// actionBytes is about what an action takes in memory.
func actionBytes(a *forerun.Action) int {
	return 1<<10 + len(a.Exec.Code) + listBytes(a.Parameters) + listBytes(a.Annotations)
}

// entityBytes is about what an entity takes in memory.
func entityBytes(e *Entity) int {
	n := 1<<10 + listBytes(e.Parameters) + listBytes(e.Annotations)
	for rule, link := range e.Rules {
		n += 1<<8 + len(rule.Entity) + len(link.Action.Package) + len(link.Action.Entity)
	}
	return n
}

// listBytes is that of parameters or annotations.
func listBytes(kvs []forerun.KeyValue) int {
	const headers = 40 // of a string and a slice
	n := 0
	for _, kv := range kvs {
		n += headers + len(kv.Key) + len(kv.Value) + kv.Hidden.Size()
	}
	return n
}

// one is the weight where entries are counted.
func one[V any](V) int { return 1 }
