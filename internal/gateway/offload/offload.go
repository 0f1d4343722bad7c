// Package offload joins a Java application and its functions: the agent in the
// application opens a stream for each call, the gateway begins an activation
// of the agent's action for it, and the function opens the other stream. From
// then on bytes are copied (offload/PROTOCOL.md); the gateway reads none.
//
// It promises that a function joins the call that its activation was begun
// for, and nothing else; that the call's activation counts against the quotas
// of the agent's tenant like any other; and that when one stream ends, so does
// the other.
package offload

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// maxMeeting is how long an agent waits for the function of its call.
const maxMeeting = 60 * time.Second

// Config is what the streams are joined with.
type Config struct {
	Registry   *registry.Registry
	Controller *controller.Controller
	Keys       *gateway.Keys
	Quotas     *gateway.Quotas
	Jar        []byte // of the agent; empty: it was not built
}

// API serves /offload/.
type API struct {
	Config
	mux *http.ServeMux

	mu       sync.Mutex // guards the rest
	meetings map[string]*meeting

	applications map[string]map[string]*known // by namespace and name
	calls        int64                        // whose streams were joined
	open         int64                        // of them, that have not ended
	bytes        int64                        // copied, of calls that have ended
}

// Totals counts the calls of all tenants since the server started.
type Totals struct {
	Calls, Open, Bytes int64
}

// Totals counts.
func (a *API) Totals() Totals {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Totals{a.calls, a.open, a.bytes}
}

// New returns the API.
func New(c Config) *API {
	a := &API{Config: c, mux: http.NewServeMux(), meetings: make(map[string]*meeting), applications: make(map[string]map[string]*known)}
	a.mux.HandleFunc("GET /offload/agent.jar", a.jar)
	a.mux.HandleFunc("GET /offload/call", answering(a.call))
	a.mux.HandleFunc("GET /offload/join", answering(a.join))
	a.mux.HandleFunc("GET /offload/applications", answering(a.list))
	a.mux.HandleFunc("GET /offload/applications/{name}", answering(a.get))
	a.mux.HandleFunc("PUT /offload/applications/{name}/mode", answering(a.setMode))
	a.mux.HandleFunc("PUT /offload/applications/{name}/processes/{process}", answering(a.report))
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

func answering(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			gateway.Fail(w, r, err)
		}
	}
}

// jar serves the agent, which holds no secret.
func (a *API) jar(w http.ResponseWriter, r *http.Request) {
	if len(a.Jar) == 0 {
		gateway.Fail(w, r, forerun.Errorf(forerun.NotFound, "", "The offload agent is not beside the server's binary. make build builds it where there is a JDK."))
		return
	}
	w.Header().Set("Content-Type", "application/java-archive")
	_, _ = w.Write(a.Jar) // a client that left needs nothing
}

// meeting is a call whose function is awaited.
type meeting struct {
	namespace  string
	begun      chan struct{}        // closed once the activation is known
	activation forerun.ActivationID // to be read after that
	joined     chan stream          // from the function's request
	over       chan struct{}        // closed when the agent's request has ended
}

// stream is a connection that was taken over, with what its client has sent already.
type stream struct {
	net.Conn
	sent *bufio.Reader
}

// call serves an agent: it begins an activation, waits for its function, and copies until one end closes.
func (a *API) call(w http.ResponseWriter, r *http.Request) error {
	caller, err := a.caller(w, r)
	if err != nil {
		return err
	}
	if caller.Cause != "" {
		return forerun.Errorf(forerun.Forbidden, "", "A function's token opens no call: an application's agent shows its tenant's key.")
	}
	id := rand.Text()
	m := &meeting{namespace: caller.Namespace, begun: make(chan struct{}), joined: make(chan stream), over: make(chan struct{})}
	a.mu.Lock()
	a.meetings[id] = m
	a.mu.Unlock()
	defer close(m.over)
	defer a.forget(id)
	invocation, err := a.begin(r, caller, id)
	if err != nil {
		return err
	}
	m.activation = invocation.ID()
	close(m.begun)
	patience := time.NewTimer(maxMeeting)
	defer patience.Stop()
	select {
	case function := <-m.joined:
		defer function.Close()
		agent, err := takeOver(w)
		if err != nil {
			return err
		}
		defer agent.Close()
		a.joined(1, 0)
		a.joined(-1, relay(agent, function))
		return nil
	case <-invocation.Done():
		return notJoined(invocation)
	case <-patience.C:
		return forerun.Errorf(forerun.Unavailable, "", "The function of the call did not begin within %v.", maxMeeting)
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

func notJoined(i *controller.Invocation) error {
	if err := i.Err(); err != nil {
		return err
	}
	return forerun.Errorf(forerun.Unavailable, "", "The function of the call ended before it joined: see activation %s.", i.ID())
}

func (a *API) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.meetings, id)
}

// joined counts a call whose streams were joined (change 1), or have ended (-1).
func (a *API) joined(change, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls += max(change, 0)
	a.open += change
	a.bytes += bytes
}

// identify authenticates a request.
func (a *API) identify(w http.ResponseWriter, r *http.Request) (gateway.Caller, error) {
	caller, err := a.Keys.Caller(r)
	if err != nil {
		if forerun.KindOf(err) == forerun.Unauthorized && r.Header.Get("Authorization") != "" {
			gateway.NoteFailure(r)
		}
		return caller, err
	}
	return caller, gateway.Seat(w, r, caller.Namespace)
}

// caller authenticates a request that wants a stream.
func (a *API) caller(w http.ResponseWriter, r *http.Request) (gateway.Caller, error) {
	caller, err := a.identify(w, r)
	if err != nil {
		return caller, err
	}
	if r.Header.Get("Upgrade") != protocol {
		return caller, forerun.Errorf(forerun.Invalid, "", "Send the header Upgrade: %s.", protocol)
	}
	return caller, nil
}

// begin begins the activation of a call. It never runs ahead, as a tenant's invocation of a function does not, and no known result stands for it.
func (a *API) begin(r *http.Request, caller gateway.Caller, id string) (*controller.Invocation, error) {
	defer a.Controller.Enter(caller.Namespace)()
	if err := a.Keys.IsStill(r, caller); err != nil {
		return nil, err
	}
	changes := a.Registry.Changes()
	name, err := forerun.ParseName(r.URL.Query().Get("action"), caller.Namespace)
	if err != nil {
		return nil, err
	}
	if name.Namespace != caller.Namespace {
		return nil, forerun.Errorf(forerun.Forbidden, "", "An agent calls the action that it deployed for its own tenant.")
	}
	action, err := a.Registry.Resolve(r.Context(), name, caller.Namespace)
	if err != nil {
		return nil, err
	}
	flight, err := a.Quotas.Invocation(r.Context(), caller.Namespace)
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(map[string]string{"offload": id})
	if err != nil {
		return nil, err
	}
	return a.Controller.Invoke(controller.Request{
		Namespace: caller.Namespace, Subject: caller.Subject, Action: action, Changes: changes, Input: input,
		Transaction: gateway.Transaction(r), Bypass: true, Begun: flight.Begin, Ended: flight.Land, Undone: flight.Undo,
	}), nil
}

// join serves a function: its stream becomes the other end of the call's, until that is over.
func (a *API) join(w http.ResponseWriter, r *http.Request) error {
	caller, err := a.caller(w, r)
	if err != nil {
		return err
	}
	a.mu.Lock()
	m := a.meetings[r.URL.Query().Get("call")]
	a.mu.Unlock()
	if m == nil {
		return unknownCall()
	}
	if err := m.await(r.Context()); err != nil {
		return err
	}
	if caller.Cause == "" || caller.Cause != m.activation || caller.Namespace != m.namespace {
		return unknownCall()
	}
	function, err := takeOver(w)
	if err != nil {
		return err
	}
	select {
	case m.joined <- function:
		<-m.over // the activation's request lasts as long as its stream
	case <-m.over:
		_ = function.Close()
	}
	return nil
}

// await waits until the activation of the call is known.
func (m *meeting) await(ctx context.Context) error {
	select {
	case <-m.begun:
		return nil
	case <-m.over:
		return unknownCall()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func unknownCall() error {
	return forerun.Errorf(forerun.NotFound, "", "No call of this name waits for this function: a function joins the call that its activation was begun for.")
}

// protocol is the name of what follows the upgrade.
const protocol = "forerun-offload"

// takeOver answers 101 and takes the connection of a request over.
func takeOver(w http.ResponseWriter) (stream, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return stream{}, forerun.Errorf(forerun.Internal, "", "The connection cannot be taken over: %w", err)
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n"); err != nil {
		_ = conn.Close()
	}
	return stream{conn, buffered.Reader}, nil // an answer that could not be sent shows at the first read
}

// relay copies both ways until one end closes, closes both, and returns the number of bytes.
func relay(a, b stream) (bytes int64) {
	var copying sync.WaitGroup
	var copied atomic.Int64
	pipe := func(to, from stream) {
		n, _ := io.Copy(to.Conn, from.sent) // an error is a stream that ended, too
		copied.Add(n)
		_ = a.Close()
		_ = b.Close()
	}
	copying.Go(func() { pipe(a, b) })
	copying.Go(func() { pipe(b, a) })
	copying.Wait()
	return copied.Load()
}
