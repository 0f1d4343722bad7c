package native

import "sync"

// refusalsRoom is how many refusals wait to be asked for; more are dropped.
const refusalsRoom = 64

// refusals are sentences about connections of one sandbox that were refused, until they are asked for.
type refusals struct {
	some chan struct{} // has one when there are any

	mu        sync.Mutex // guards sentences
	sentences []string
}

func newRefusals() *refusals { return &refusals{some: make(chan struct{}, 1)} }

func (r *refusals) add(sentence string) {
	r.mu.Lock()
	if len(r.sentences) < refusalsRoom {
		r.sentences = append(r.sentences, sentence)
	}
	r.mu.Unlock()
	select {
	case r.some <- struct{}{}:
	default:
	}
}

func (r *refusals) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.sentences
	r.sentences = nil
	return taken
}

// awaitTold returns when the helper's earlier refusals and waits have all arrived. The end of their activation comes on another way, which
// may be faster.
func (m *Maker) awaitTold() {
	told := m.shared.told.Load()
	if m.heard.Load() >= told {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.heard.Load() < told && !m.hasEnded() {
		m.hearsMore.Wait()
	}
}

func (m *Maker) hasEnded() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}
