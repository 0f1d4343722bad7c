package worker

// EndNamespace ends all sandboxes of a namespace, including busy and starting ones, and returns when nothing of them is
// left. Their processes may remember data of the tenant, and a later tenant of that name may deploy the same code. The
// runs of the namespace were given up before.
func (w *Worker) EndNamespace(namespace string) {
	for _, b := range w.endSandboxes(namespace) {
		<-b.closed
	}
}

// endSandboxes ends the sandboxes of a namespace. They get no further run.
func (w *Worker) endSandboxes(namespace string) (ending []*pooledSandbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, p := range w.pools {
		if key.namespace == namespace {
			ending = append(ending, p.sandboxes...)
		}
	}
	for _, b := range ending {
		b.stop()
		if b.state == sandboxIdle { // the others are forgotten as they come free
			w.unidle(b)
			w.forget(b)
		}
	}
	return ending
}
