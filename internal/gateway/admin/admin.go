// Package admin is the operator's API below /admin/v1/: it makes tenants, sets
// their quotas, rotates their keys, suspends and deletes them, it gives out backups,
// and it switches speculation and the result cache off and on.
//
// It is no part of OpenWhisk's API. It promises that no tenant's key and no
// function's token opens it, only the operator's own, and that a tenant who was
// deleted is gone, with all that was theirs, when the answer is given: should
// the server die meanwhile, the next one finishes.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/audit"
	"forerun.dev/forerun/internal/backup"
	"forerun.dev/forerun/internal/certificate"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state"
)

// Prefix begins the paths of the API.
const Prefix = "/admin/v1/"

// Config is what the API works with.
type Config struct {
	Operator     string // the operator's key, "uuid:key"
	Registry     *registry.Registry
	Activations  *activation.Log
	Controller   *controller.Controller
	Quotas       *gateway.Quotas
	EndSandboxes func(namespace string)                                   // ends those of a namespace, and returns when they are gone
	EraseState   func(ctx context.Context, namespace string) error        // removes the state of a namespace's functions
	KeysChanged  func(namespace, auth string) error                       // a tenant's keys are void; auth is the new one, or empty
	Stored       func(namespace string) (stored state.Stored, most int64) // what a tenant stores, and how many bytes it may
	Pairs        func(ctx context.Context) iter.Seq2[backup.Pair, error]  // all that the store holds, for a backup
	Audited      func(since time.Time, most int) ([]audit.Entry, error)   // the last entries of the audit log
	Certificate  *certificate.Keeper                                      // the server's; nil: it has none
	Listeners    []Listener                                               // the server's
	Traffic      *gateway.Traffic                                         // what came through them
	EarlyData    bool                                                     // clients of HTTP/3 may send it
	Version      string                                                   // of Forerun
	Log          *slog.Logger
}

// API serves the operator's API.
type API struct {
	Config
	mux       *http.ServeMux
	changing  sync.Mutex // held while tenants are made, suspended or deleted: what one erases or ends another has not made
	switching sync.Mutex // held while speculation or the cache is switched: what is kept is what holds
}

// New returns the API.
func New(c Config) *API {
	a := &API{Config: c, mux: http.NewServeMux()}
	methods := make(map[string][]string) // by path
	for _, route := range []struct {
		method, path string
		handle       func(http.ResponseWriter, *http.Request) error
		query        string // the query parameters that it knows, with white space between
	}{
		{"GET", "tenants", a.list, ""},
		{"GET", "tenants/{name}", a.get, ""},
		{"PUT", "tenants/{name}", a.put, "overwrite"},
		{"DELETE", "tenants/{name}", a.delete, ""},
		{"POST", "tenants/{name}/rotate", a.rotate, ""},
		{"POST", "tenants/{name}/suspend", a.suspend, ""},
		{"POST", "tenants/{name}/resume", a.resume, ""},
		{"GET", "backup", a.backup, ""},
		{"GET", "audit", a.audited, "since limit"},
		{"GET", "speculation", a.getSpeculation, ""},
		{"PUT", "speculation", a.putSpeculation, ""},
		{"GET", "cache", a.getCache, ""},
		{"PUT", "cache", a.putCache, ""},
		{"GET", "status", a.getStatus, ""},
		{"GET", "certificate", a.getCertificate, ""},
		{"POST", "certificate/renew", a.renewCertificate, ""},
	} {
		methods[route.path] = append(methods[route.path], route.method)
		if route.method == http.MethodGet { // which the mux answers HEAD with
			methods[route.path] = append(methods[route.path], http.MethodHead)
		}
		a.mux.HandleFunc(route.method+" "+Prefix+route.path, func(w http.ResponseWriter, r *http.Request) {
			err := checkQuery(r, route.query)
			if err == nil {
				err = route.handle(w, r)
			}
			if err != nil {
				gateway.Fail(w, r, err)
			}
		})
	}
	for path, allowed := range methods {
		a.mux.HandleFunc(Prefix+path, func(w http.ResponseWriter, r *http.Request) { gateway.NotAllowed(w, r, allowed...) })
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		gateway.Fail(w, r, forerun.Errorf(forerun.NotFound, r.URL.Path, "The requested resource could not be found."))
	})
	return a
}

// checkQuery refuses query parameters other than those that a route knows.
func checkQuery(r *http.Request, known string) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return forerun.Errorf(forerun.Invalid, "query", "The query of the URL is malformed: %w.", err)
	}
	for name := range query {
		if !slices.Contains(strings.Fields(known), name) {
			return forerun.Errorf(forerun.Invalid, name, "The query parameter '%s' is not known here.", name)
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.isOperator(r) {
		gateway.NoteFailure(r)
		w.Header().Set("WWW-Authenticate", `Forerun realm="operator"`) // for Basic a browser would ask, and then send the key with all that a page makes it request
		gateway.Fail(w, r, forerun.Errorf(forerun.Unauthorized, "", "This API is the operator's: send the key in the file operator of the server's data folder."))
		return
	}
	if err := gateway.SeatOperator(w, r); err != nil {
		gateway.Fail(w, r, err)
		return
	}
	answer := &answered{ResponseWriter: w}
	defer func() { gateway.NoteDetail(r, audit.Operator, "", answer.status, answer.detail) }() // also of a backup that was cut
	a.mux.ServeHTTP(answer, r)
}

// answered is an answer of which is kept what the audit log shall say.
type answered struct {
	http.ResponseWriter
	status int    // 0 before there is one
	detail string // what the request sets
}

// note has the audit log say what a request sets.
func note(w http.ResponseWriter, detail string) {
	if a, ok := w.(*answered); ok {
		a.detail = detail
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (a *answered) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// isOperator compares hashes: how long that takes tells nothing of the key.
func (a *API) isOperator(r *http.Request) bool {
	uuid, key, ok := r.BasicAuth()
	given, want := sha256.Sum256([]byte(uuid+":"+key)), sha256.Sum256([]byte(a.Operator))
	return ok && strings.Contains(a.Operator, ":") && subtle.ConstantTimeCompare(given[:], want[:]) == 1
}
