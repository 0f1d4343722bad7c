package worker

// EndNamespace ends the sandboxes of a namespace, those that work or are being started, too, and returns when nothing of them is left: their
// processes may remember what was its tenant's, and the next tenant of that name may have the same code. What ran for it was given up before.
func (w *Worker) EndNamespace(namespace string) {
	for _, b := range w.endBoxes(namespace) {
		<-b.closed
	}
}

// endBoxes has the boxes of a namespace end. They are given no run any more.
func (w *Worker) endBoxes(namespace string) (ending []*box) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, p := range w.pools {
		if key.namespace == namespace {
			ending = append(ending, p.boxes...)
		}
	}
	for _, b := range ending {
		b.stop()
		if b.state == boxIdle { // the others are forgotten as they come free
			w.unidle(b)
			w.forget(b)
		}
	}
	return ending
}
