// Package openwhisk is OpenWhisk's REST API, version 1, as its own clients
// expect it: paths, shapes, statuses, headers and sentences are those of
// Apache OpenWhisk's controller, so that wsk, the npm client and composer work
// unchanged.
//
// What Forerun does not have (Docker images, API routes) is answered with a
// sentence that says so and what to do instead.
package openwhisk

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/feed"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// maxParameters is how many bytes the parameters of an action may have, and its annotations.
const maxParameters = 1 << 20

// maxPut is how long the body of a PUT may be, in bytes.
func (c *call) maxPut() int64 { return int64(c.bounds.Code) + 4*maxParameters }

// MaxWait is how long a blocking invocation is waited for before its client is sent away with the activation id.
const MaxWait = 60 * time.Second

// Config is what the API works with.
type Config struct {
	Registry    *registry.Registry
	Activations *activation.Log
	Controller  *controller.Controller
	Feed        *feed.Feed // the Controller's
	Keys        *gateway.Keys
	Quotas      *gateway.Quotas
	Kinds       []string                    // that actions can have, besides sequence; "LANGUAGE:default" is the first of its language
	CheckFlow   func(*forerun.Action) error // whether a sequence or composition can be run
	Bounds      forerun.Bounds              // none: the usual ones
	Version     string                      // of Forerun
	WebURL      string                      // of web actions, if they have an address of their own
}

// API serves the REST API.
type API struct {
	Config
	routes []route
	once   sync.Map // of *underWay by the id of the activation
}

// New returns the API.
func New(c Config) *API {
	c.Bounds = cmp.Or(c.Bounds, forerun.DefaultBounds())
	a := &API{Config: c}
	a.routes = a.table()
	return a
}

// call is one request on its way through the API.
type call struct {
	w        http.ResponseWriter
	r        *http.Request
	caller   gateway.Caller
	keys     *gateway.Keys
	quotas   *gateway.Quotas
	bounds   *forerun.Bounds
	query    url.Values
	registry *registry.Registry
	vars     variables
}

// body reads the request's body. Who sends it may have been deleted while it came, and the namespace be another tenant's.
func (c *call) body(limit int64) ([]byte, error) {
	body, err := c.quotas.Body(c.w, c.r, c.caller.Namespace, limit)
	if err == nil && len(body) > 0 {
		err = c.keys.IsStill(c.r, c.caller)
	}
	return body, err
}

// enter has what is begun for the caller end with its namespace, should that be erased before leave is called. The caller may have been deleted
// since it was looked at.
func (a *API) enter(c *call) (leave func(), err error) {
	leave = a.Controller.Enter(c.caller.Namespace)
	if err = c.keys.IsStill(c.r, c.caller); err != nil {
		leave()
	}
	return leave, err
}

// within changes what is stored for the caller, which is erased with its namespace, should that be before it is done.
func within[T any](a *API, c *call, change func() (T, error)) (changed T, err error) {
	leave, err := a.enter(c)
	if err != nil {
		return changed, err
	}
	defer leave()
	return change()
}

// refusal is an answer with a status that no kind of error has.
type refusal struct {
	status         int
	message, allow string
}

func (e *refusal) Error() string { return e.message }

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := a.serve(w, r)
	refused, isRefusal := errors.AsType[*refusal](err)
	switch {
	case err == nil:
	case isRefusal:
		if refused.allow != "" {
			w.Header().Set("Allow", refused.allow)
		}
		gateway.Refuse(w, r, refused.status, refused.message)
	case forerun.KindOf(err) == forerun.Unauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="OpenWhisk secure realm",charset=UTF-8`)
		gateway.Fail(w, r, err)
	default:
		gateway.Fail(w, r, err)
	}
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) error {
	path, ok := cutPrefix(r.URL.EscapedPath())
	if !ok {
		return a.outside(w, r)
	}
	if isAPIManagement(path) {
		allowOrigins(w.Header())
		return noAPIs()
	}
	allowOrigins(w.Header())
	switch {
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusOK)
		return nil
	case path == "":
		return a.apiInfo(w, r)
	}
	caller, err := a.Keys.Caller(r)
	if err != nil {
		switch kind := forerun.KindOf(err); {
		case kind == forerun.Unauthorized && r.Header.Get("Authorization") != "":
			gateway.NoteFailure(r)
		case kind == forerun.Forbidden:
			gateway.Note(r, caller.Who(), caller.Namespace, http.StatusForbidden)
		}
		return err
	}
	err = a.serveCaller(w, r, path, caller)
	if status := answerStatus(err); isChange(r) || status == http.StatusForbidden {
		gateway.Note(r, caller.Who(), caller.Namespace, status)
	}
	return err
}

// isChange reports whether a request asks for a change of entities.
func isChange(r *http.Request) bool {
	return r.Method == http.MethodPut || r.Method == http.MethodDelete || r.Method == http.MethodPatch || r.Method == http.MethodPost && strings.Contains(r.URL.EscapedPath(), "/rules/")
}

// answerStatus is the status that an error is answered with.
func answerStatus(err error) int {
	refused, isRefusal := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		return http.StatusOK
	case isRefusal:
		return refused.status
	}
	return forerun.KindOf(err).HTTPStatus()
}

// serveCaller does what a caller asks for.
func (a *API) serveCaller(w http.ResponseWriter, r *http.Request, path string, caller gateway.Caller) error {
	if err := gateway.Seat(w, r, caller.Namespace); err != nil {
		return err
	}
	route, vars, err := find(a.routes, r.Method, path)
	if err != nil {
		return err
	}
	if !caller.Rights.Any(route.rights) {
		return lacksRights(path)
	}
	query, err := route.parse(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if r.Method == http.MethodGet {
		if err := a.Quotas.Unread(caller.Namespace); err != nil {
			return err
		}
	}
	w = a.Quotas.Answering(w, caller.Namespace)
	return route.handle(&call{w: w, r: r, caller: caller, keys: a.Keys, quotas: a.Quotas, bounds: &a.Bounds, query: query, vars: vars, registry: a.Registry})
}

// allowOrigins lets pages of other origins call the API, as OpenWhisk does: every call carries its own key.
func allowOrigins(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent")
	h.Set("Access-Control-Allow-Methods", "GET, DELETE, POST, PUT, HEAD")
}
