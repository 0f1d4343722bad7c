package microtasks

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/bench/workloads"
)

// objects is a server of objects in memory. Each request waits for the latency before it is answered, so that what reads or writes waits.
type objects struct {
	Address  string
	latency  atomic.Int64 // nanoseconds
	requests atomic.Int64
	server   *http.Server

	mu     sync.RWMutex // guards stored
	stored map[string][]byte
}

// startObjects starts a server where functions may reach it.
func startObjects() (*objects, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(workloads.ReadAddress, "0"))
	if err != nil {
		return nil, err
	}
	o := &objects{Address: l.Addr().String(), stored: make(map[string][]byte)}
	o.server = &http.Server{Handler: o, ReadHeaderTimeout: time.Minute}
	go func() { _ = o.server.Serve(l) }() // ends with Close
	return o, nil
}

// ServeHTTP implements http.Handler: GET and PUT.
func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.requests.Add(1)
	wait(r.Context(), time.Duration(o.latency.Load()))
	if r.Method == http.MethodPut {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		o.put(r.URL.Path[1:], data)
		return
	}
	data, ok := o.get(r.URL.Path[1:])
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(data) // the client has left if that fails
}

func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (o *objects) put(name string, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stored[name] = data
}

func (o *objects) get(name string) (data []byte, ok bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	data, ok = o.stored[name]
	return data, ok
}

// keep forgets all objects but those whose names satisfy a condition.
func (o *objects) keep(is func(name string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.stored {
		if !is(name) {
			delete(o.stored, name)
		}
	}
}
