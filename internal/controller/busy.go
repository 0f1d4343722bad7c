package controller

import "sync"

// busy counts what is on its way: executions that are accepted, have slots or records to write, and what they ask the store for. The zero
// value is ready.
type busy struct {
	mu sync.Mutex // guards of
	of map[string]*traffic
}

// everywhere stands for all namespaces.
const everywhere = ""

// traffic is what is on its way for a namespace.
type traffic struct {
	n    int
	over chan struct{} // closed when it is nothing any more; nil: nothing waits for that
}

func (b *busy) begin(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[string]*traffic)
	}
	for _, name := range [...]string{everywhere, namespace} {
		if b.of[name] == nil {
			b.of[name] = new(traffic)
		}
		b.of[name].n++
	}
}

func (b *busy) end(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range [...]string{everywhere, namespace} {
		t := b.of[name]
		if t.n--; t.n > 0 {
			continue
		}
		if t.over != nil {
			close(t.over)
		}
		delete(b.of, name)
	}
}

// over returns what is closed when nothing is on its way for a namespace.
func (b *busy) over(namespace string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.of[namespace]; t != nil {
		if t.over == nil {
			t.over = make(chan struct{})
		}
		return t.over
	}
	over := make(chan struct{})
	close(over)
	return over
}
