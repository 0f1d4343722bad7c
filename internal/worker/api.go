package worker

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// headerLimit is how long a function may take to send the head of a request.
const headerLimit = 10 * time.Second

// apiServer serves the API doors of all sandboxes with one HTTP server.
type apiServer struct {
	server  *http.Server
	conns   chan net.Conn // from the doors to the server
	once    sync.Once
	closed  chan struct{} // by close
	serving sync.WaitGroup
}

func newAPIServer() *apiServer {
	return &apiServer{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// ServeAPI answers the requests that functions send to their API door with handler, from now on; requests before wait. It
// is to be called once. In the context of a request is the activation that sent it (see Caller).
func (w *Worker) ServeAPI(handler http.Handler) {
	s := w.api
	s.server = &http.Server{
		Handler:           s.guard(handler),
		ReadHeaderTimeout: headerLimit,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	s.serving.Go(func() { _ = s.server.Serve(s) }) // ends with Close
}

type (
	connKey   struct{} // a *doorConn
	tenureKey struct{} // a *tenure
)

// Caller returns the activation that sent a request through its API door; empty for a request that came otherwise.
func Caller(ctx context.Context) forerun.ActivationID {
	if t, ok := ctx.Value(tenureKey{}).(*tenure); ok {
		return t.activation
	}
	return ""
}

// Asker is who sent a request through its API door; of no activation for a request that came otherwise.
func Asker(ctx context.Context) state.Asker {
	c, ok := ctx.Value(connKey{}).(*doorConn)
	if !ok {
		return state.Asker{}
	}
	return state.Asker{Activation: Caller(ctx), Listen: c.watched}
}

// guard refuses requests that no activation stands behind, and notes which one does.
func (s *apiServer) guard(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serving.Add(1)
		defer s.serving.Done()
		c := r.Context().Value(connKey{}).(*doorConn)
		t, refused := c.enter(c.ctx)
		if refused != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"error":"No activation is running: the API can be called while the function runs, not while its code is loaded."}`))
			return
		}
		c.requests.Add(1)
		t.working.RUnlock()
		defer c.requests.Add(-1)
		defer c.turns.operates(t)()
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tenureKey{}, t)))
	})
}

// take hands a connection to the server.
func (s *apiServer) take(c *doorConn) {
	select {
	case s.conns <- c:
	case <-c.ctx.Done():
		_ = c.Close()
	case <-s.closed:
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (s *apiServer) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *apiServer) Close() error { return nil }

// Addr implements net.Listener.
func (s *apiServer) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3233} }

// close ends the server and waits for the requests in progress, whose connections are cut.
func (s *apiServer) close() error {
	s.once.Do(func() { close(s.closed) })
	if s.server == nil {
		return nil
	}
	err := s.server.Close()
	s.serving.Wait()
	return err
}
