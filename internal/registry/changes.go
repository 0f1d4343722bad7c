package registry

// Changes counts the changes of what Resolve finds: what it finds is the same as long as that does not grow.
func (r *Registry) Changes() uint64 { return r.changes.Load() }

// OnChange has f called each time that Changes has grown, in place of a function that was set before. f must not block, nor call the
// registry.
func (r *Registry) OnChange(f func()) { r.listener.Store(&f) }

func (r *Registry) changed() {
	r.changes.Add(1)
	if f := r.listener.Load(); f != nil {
		(*f)()
	}
}
