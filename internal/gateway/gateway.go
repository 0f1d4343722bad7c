// Package gateway is the front door: what every request passes before a REST
// API sees it, and the failures that every API answers in one way.
//
// It promises that each answer names its transaction (X-Request-ID), that a
// panic ends its own request alone, that no body is read beyond its limit and
// no connection kept for a client that neither sends nor reads, and that a
// failure of ours is written to the log with its transaction while the client
// learns no more than that.
package gateway

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"forerun.dev/forerun/internal/audit"
	"forerun.dev/forerun/internal/forerun"
)

// Config is what a front door is made of.
type Config struct {
	API     http.Handler // everything but what is below
	Web     http.Handler // /api/v1/web/: web actions
	Admin   http.Handler // /admin/: the operator's; nil: there is none
	Offload http.Handler // /offload/: streams of Java applications and their functions; nil: there is none
	Page    http.Handler // GET / for browsers, and /docs/; nil: there is none
	Metrics http.Handler // GET /metrics; nil: neither it nor GET /healthz is served here
	Gate    *Gate        // lets in all but the page, /metrics and GET /healthz, which tells whether it is open
	Traffic *Traffic     // counts; may be nil
	Log     *slog.Logger
	Audit   *audit.Log // may be nil
}

// New returns the front door's handler.
func New(c Config) http.Handler {
	mux := http.NewServeMux()
	if c.Metrics != nil {
		mux.Handle("GET /metrics", c.Metrics)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := c.Gate.Open(); err != nil {
			Fail(w, r, err)
			return
		}
		WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { NotAllowed(w, r, http.MethodGet, http.MethodHead) })
	if c.Traffic == nil {
		c.Traffic = new(Traffic)
	}
	c.API, c.Web = c.Gate.Guard(c.API), c.Gate.Guard(c.Web)
	if c.Admin != nil {
		c.Admin = c.Gate.Guard(c.Admin)
	}
	if c.Offload != nil {
		c.Offload = c.Gate.Guard(c.Offload)
	}
	return &door{Config: c, own: mux}
}

// door wraps the API in what every request passes.
type door struct {
	Config
	own http.Handler
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.Traffic.request(r)
	transaction := transactionOf(r)
	w.Header().Set("X-Request-ID", transaction)
	r = r.WithContext(context.WithValue(r.Context(), passKey{}, &pass{transaction: transaction, early: isEarly(r), log: d.Log, audit: d.Audit}))
	if isShared(r) {
		answer := newPatient(w)
		defer answer.begin() // what is still to be sent is sent when the handler has returned
		w = answer
	}
	defer d.recover(w, r)
	if r.ContentLength != 0 {
		await(w) // for a body that nobody reads, too
	}
	body := r.Body // in its place quotas put one that counts
	if !d.tooEarly(w, r) {
		d.dispatch(w, r)
	}
	drain(r, body)
}

// WebPrefix begins the paths of web actions.
const WebPrefix = "/api/v1/web/"

// systemPrefix begins the paths at which `wsk api` looks for OpenWhisk's API management. The API answers them.
const systemPrefix = WebPrefix + "whisk.system/"

// dispatch gives a request to the handler of its path. A proxy compares paths as they were sent, so an encoded letter of "/admin/" leads
// nowhere.
func (d *door) dispatch(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if path == "/" && d.Page != nil {
		w.Header().Set("Vary", "Accept")
	}
	switch {
	case d.Metrics != nil && (path == "/healthz" || path == "/metrics"):
		d.own.ServeHTTP(w, r)
	case d.Page != nil && wantsPage(r):
		d.Page.ServeHTTP(w, r)
	case d.Admin != nil && strings.HasPrefix(path, "/admin/"):
		d.Admin.ServeHTTP(w, r)
	case d.Offload != nil && strings.HasPrefix(path, "/offload/"):
		d.Offload.ServeHTTP(w, r)
	case strings.HasPrefix(path, WebPrefix) && !strings.HasPrefix(path, systemPrefix):
		d.Web.ServeHTTP(w, r)
	default:
		d.API.ServeHTTP(w, r)
	}
}

func (d *door) recover(w http.ResponseWriter, r *http.Request) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		Fail(w, r, forerun.Errorf(forerun.Internal, r.Method+" "+r.URL.Path, "panic: %v\n%s", p, debug.Stack()))
	}
}

// pass is what the front door gives a request on its way.
type pass struct {
	transaction string
	early       bool // it came as early data
	log         *slog.Logger
	audit       *audit.Log
}

type passKey struct{}

// Transaction is the transaction id of a request that came through the front door.
func Transaction(r *http.Request) string {
	if p, ok := r.Context().Value(passKey{}).(*pass); ok {
		return p.transaction
	}
	return ""
}

// transactionOf takes the client's transaction id if it is a sensible one, else makes one.
func transactionOf(r *http.Request) string {
	id := r.Header.Get("X-Request-ID")
	unsafe := func(c rune) bool { return c <= ' ' || c > '~' }
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, unsafe) {
		return rand.Text()
	}
	return id
}
