package registry

import "sync"

// voids knows who is to hear when a key is void.
type voids struct {
	mu      sync.Mutex // guards the rest
	last    int
	hearers map[string]map[int]func() // by the key's uuid
}

// WhenVoid has f called once the key is void, before the call that made it so returns. f must not block, nor call the
// registry. stop ends it.
func (r *Registry) WhenVoid(uuid string, f func()) (stop func()) {
	v := &r.voids
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.hearers == nil {
		v.hearers = make(map[string]map[int]func())
	}
	if v.hearers[uuid] == nil {
		v.hearers[uuid] = make(map[int]func())
	}
	v.last++
	id := v.last
	v.hearers[uuid][id] = f
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.hearers[uuid], id)
		if len(v.hearers[uuid]) == 0 {
			delete(v.hearers, uuid)
		}
	}
}

// tell calls those who wait for a key to be void.
func (v *voids) tell(uuid string) {
	v.mu.Lock()
	hearers := v.hearers[uuid]
	delete(v.hearers, uuid)
	v.mu.Unlock()
	for _, f := range hearers {
		f()
	}
}
