// Package feed tells clients what activations do while they do it: that they begin, what they write, and that they have
// ended.
//
// It promises each listener the lines of an activation in order, each once, and the end after them. A listener takes a
// bounded part of the server's memory. It shares the lines of a running activation with its log, and a listener that
// leaves too much of ended activations unread is cut off. Without listeners the package keeps nothing.
//
// It does not decide what a client may see. Its callers tell of activations that are not speculative.
package feed

import (
	"errors"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

const (
	maxListeners = 64       // of a namespace
	maxUnread    = 4 << 20  // bytes of ended activations that a listener may leave unread, unless that is a single one
	perEnd       = 1 << 10  // bytes that an ended activation counts beside its lines
	maxQueue     = 64 << 10 // news that a listener may leave unread
	maxNews      = 64 << 10 // bytes of lines that are told at once, unless that is a single one
)

var (
	errSlow   = errors.New("the listener reads too slowly")
	errClosed = forerun.Errorf(forerun.Unavailable, "", "The server is shutting down. Try again when it has been started again.")
)

// Feed has the listeners of all namespaces. Its methods may be called concurrently and do not block.
type Feed struct {
	mu        sync.RWMutex // guards the rest; listeners' own are taken after it
	listeners map[string]map[*Listener]bool
	closed    bool
}

// New returns a feed without listeners.
func New() *Feed { return &Feed{listeners: make(map[string]map[*Listener]bool)} }

// Listens reports whether a namespace has listeners: without them there is nothing to tell.
func (f *Feed) Listens(namespace string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.listeners[namespace]) > 0
}

// Tell tells that an activation runs, and all lines that it has written so far. Neither may be changed afterwards.
func (f *Feed) Tell(a *forerun.Activation, lines []string) { f.tell(a, lines, false) }

// End tells that the record of an activation is in the log. It is the last call for the activation.
func (f *Feed) End(record *forerun.Activation) {
	if !f.Listens(record.Namespace) {
		return
	}
	a, lines := *record, record.Logs
	if string(forerun.Lookup(record.Annotations, "kind")) == `"sequence"` {
		lines = nil // the ids of its parts
	}
	a.Result, a.Logs, a.Calls, a.Tally = nil, nil, nil, nil
	f.tell(&a, lines, true)
}

func (f *Feed) tell(a *forerun.Activation, lines []string, ended bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for l := range f.listeners[a.Namespace] {
		l.tell(a, lines, ended)
	}
}

// Listen adds a listener for the activations of a namespace that match. Close removes it.
func (f *Feed) Listen(namespace string, match func(*forerun.Activation) bool) (*Listener, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.listeners[namespace]
	switch {
	case f.closed:
		return nil, errClosed
	case len(of) >= maxListeners:
		return nil, forerun.Errorf(forerun.TooMany, "", "Too many clients follow the feed of the namespace (allowed: %d). End some of them.", maxListeners)
	case of == nil:
		of = make(map[*Listener]bool)
		f.listeners[namespace] = of
	}
	l := &Listener{feed: f, namespace: namespace, match: match, more: make(chan struct{}, 1), known: make(map[forerun.ActivationID]*progress)}
	of[l] = true
	return l, nil
}

// Close ends all listeners, and admits no others.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, of := range f.listeners {
		for l := range of {
			l.end(errClosed)
		}
	}
}

func (f *Feed) remove(l *Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.listeners[l.namespace]
	if delete(of, l); len(of) == 0 {
		delete(f.listeners, l.namespace)
	}
}
