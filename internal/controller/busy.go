package controller

import "sync"

// busy counts what is on its way: executions that have slots or records to write, and what they ask the store for. The zero value is ready.
type busy struct {
	all sync.WaitGroup
	mu  sync.Mutex // guards of
	of  map[string]*traffic
}

// traffic is what is on its way for a namespace.
type traffic struct {
	n    int
	over chan struct{} // closed when it is nothing any more
}

func (b *busy) begin(namespace string) {
	b.all.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.of[namespace]
	if t == nil {
		if b.of == nil {
			b.of = make(map[string]*traffic)
		}
		t = &traffic{over: make(chan struct{})}
		b.of[namespace] = t
	}
	t.n++
}

func (b *busy) end(namespace string) {
	defer b.all.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.of[namespace]
	if t.n--; t.n == 0 {
		close(t.over)
		delete(b.of, namespace)
	}
}

// over returns what is closed when nothing is on its way for a namespace.
func (b *busy) over(namespace string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.of[namespace]; t != nil {
		return t.over
	}
	over := make(chan struct{})
	close(over)
	return over
}
