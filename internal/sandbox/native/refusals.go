package native

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

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

// awaitTold returns when everything was heard that the helper has refused before, or has wait: the end of the activation whose it is
// comes on another way, which may be the faster one.
func (m *Maker) awaitTold() {
	told := m.told.load()
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

// counter is a number that two processes share: the helper counts, the server reads.
type counter struct{ value *atomic.Uint64 }

// newCounter makes one, and the file through which another process gets it.
func newCounter() (*counter, *os.File, error) {
	page, err := memoryFile(make([]byte, os.Getpagesize()))
	if err != nil {
		return nil, nil, err
	}
	c, err := mapCounter(page)
	if err != nil {
		page.Close()
		return nil, nil, err
	}
	return c, page, nil
}

// mapCounter is the counter of a file. It lasts as long as the process.
func mapCounter(page *os.File) (*counter, error) {
	memory, err := unix.Mmap(int(page.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("sharing a page between the server and its helper: %w", err)
	}
	return &counter{value: (*atomic.Uint64)(unsafe.Pointer(&memory[0]))}, nil
}

func (c *counter) add()         { c.value.Add(1) }
func (c *counter) load() uint64 { return c.value.Load() }
