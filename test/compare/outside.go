package compare

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Outside is a host that functions send texts to, WHERE!WHAT[!COMMAND!ARGUMENT...]: it notes them, does the command as a client of the
// state that writes at just this moment, and answers how many there were of the same WHERE.
type Outside struct {
	URL     string
	execute func(ctx context.Context, args []string)
	server  *http.Server

	mu   sync.Mutex // guards the rest
	all  []string
	from map[string]int
}

// NewOutside begins to listen on a free port of the address.
func NewOutside(address string, execute func(context.Context, []string)) (*Outside, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, err
	}
	o := &Outside{URL: fmt.Sprintf("http://%v/", l.Addr()), execute: execute, from: make(map[string]int)}
	o.server = &http.Server{Handler: o, ReadHeaderTimeout: time.Minute}
	go func() { _ = o.server.Serve(l) }()
	return o, nil
}

// Close ends all connections.
func (o *Outside) Close() { _ = o.server.Close() }

func (o *Outside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		o.note("cut off", fmt.Sprintf("cut off after %q", body))
		return
	}
	where, what, _ := strings.Cut(string(body), "!")
	n := o.note(where, string(body))
	if _, command, ok := strings.Cut(what, "!"); ok {
		o.execute(r.Context(), strings.Split(command, "!"))
	}
	_, _ = fmt.Fprint(w, n)
}

func (o *Outside) note(where, what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, what)
	o.from[where]++
	return o.from[where]
}

// Sent returns what was sent and not taken, in order.
func (o *Outside) Sent() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

// Take returns what was sent with a WHERE that begins with the prefix, in order, and forgets it.
func (o *Outside) Take(prefix string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var taken, others []string
	for _, what := range o.all {
		if strings.HasPrefix(what, prefix) {
			taken = append(taken, what)
		} else {
			others = append(others, what)
		}
	}
	o.all = others
	return taken
}
