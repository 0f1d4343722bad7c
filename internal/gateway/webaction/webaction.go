// Package webaction serves web actions, below /api/v1/web/: actions that their
// owner has exported to the web, which anybody may invoke with plain HTTP and
// which decide on the answer, as Apache OpenWhisk's do.
//
// It promises that an action without the annotation web-export cannot be told
// from one that is not there, that an invocation runs and is recorded as its
// owner's, and that nothing a request carries replaces what the action fixed.
package webaction

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// Prefix begins the paths of web actions.
const Prefix = gateway.WebPrefix

// Config is what web actions are served with.
type Config struct {
	// Resolve finds an action as a request names it, with the parameters that it inherits. The error is forerun.NotFound
	// if there is none.
	Resolve    func(ctx context.Context, name forerun.Name) (*forerun.Action, error)
	Tenants    *registry.Registry
	Controller *controller.Controller
	Keys       *gateway.Keys
	Quotas     *gateway.Quotas
	MaxPayload int64         // bytes of a body
	MaxWait    time.Duration // for an action's end
}

// Handler serves web actions.
type Handler struct{ Config }

// New returns the handler.
func New(c Config) *Handler { return &Handler{c} }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff") // a browser runs nothing that its action does not call a script
	err := h.serve(w, r)
	if refused, ok := errors.AsType[*notAcceptable](err); ok {
		gateway.Refuse(w, r, http.StatusNotAcceptable, refused.Error())
	} else if err != nil {
		fail(w, r, err)
	}
}

// fail answers with an error, indented as OpenWhisk's web actions do.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	status, message := gateway.Explain(w, r, err)
	refuse(w, r, status, message)
}

func refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(struct { // strings always encode
		Error string `json:"error"`
		Code  string `json:"code"`
	}{message, gateway.Transaction(r)})
	write(w, status, "application/json", bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // nobody is left to tell
}

// target is what a path names.
type target struct {
	action forerun.Name
	as     extension // how the result is answered
	rest   string    // of the path, for the action
}

func notFound() error {
	return forerun.Errorf(forerun.NotFound, "", "The requested resource does not exist.")
}

// parse reads a path: NAMESPACE/PACKAGE/ACTION[.EXTENSION][/REST]. The package "default" stands for none.
func parse(escapedPath string) (t target, err error) {
	segments := strings.SplitN(strings.TrimPrefix(escapedPath, Prefix), "/", 4)
	if len(segments) < 3 {
		return t, forerun.Errorf(forerun.NotFound, escapedPath, "The requested resource could not be found.")
	}
	for i, s := range segments[:3] {
		if segments[i], err = url.PathUnescape(s); err != nil || forerun.CheckSegment(segments[i]) != nil {
			return t, forerun.Errorf(forerun.NotFound, escapedPath, "The requested resource could not be found.")
		}
	}
	t.action.Namespace = segments[0]
	if segments[1] != "default" {
		t.action.Package = segments[1]
	}
	t.action.Entity, t.as = splitExtension(segments[2])
	if len(segments) == 4 {
		t.rest = "/" + segments[3]
	}
	return t, nil
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodDelete, http.MethodPost, http.MethodPut, http.MethodHead, http.MethodOptions, http.MethodPatch:
	default:
		w.Header().Set("Allow", methods)
		refuse(w, r, http.StatusMethodNotAllowed, "HTTP method not allowed, supported methods: "+methods)
		return nil
	}
	t, err := parse(r.URL.EscapedPath())
	if err != nil {
		return err
	}
	owner, action, err := h.find(r.Context(), t.action)
	if err != nil {
		return err
	}
	isOptions := r.Method == http.MethodOptions
	if !isTrue(action, "web-custom-options") {
		allowOrigins(w.Header(), r)
		if isOptions {
			w.WriteHeader(http.StatusOK)
			return nil
		}
	}
	caller := h.caller(r)
	if !isOptions && !mayCall(action, owner.Namespace, r, caller.Namespace) {
		if r.Header.Get("Authorization") != "" || r.Header[secretHeader] != nil {
			gateway.NoteFailure(r)
		}
		return forerun.Errorf(forerun.Unauthorized, "", "Authentication is possible but has failed or not yet been provided.")
	}
	if err := gateway.SeatVisit(w, r, owner.Namespace); err != nil {
		return err
	}
	asked := &request{Request: r, rest: t.rest, user: caller.Namespace}
	input, err := h.input(w, asked, action, owner.Namespace)
	if err != nil {
		return err
	}
	return h.invoke(h.Quotas.Answering(w, owner.Namespace), asked, owner, action, input, t.as)
}

// isStill reports as an error that the owner was deleted or suspended since it was found. Strangers are not told which.
func (h *Handler) isStill(ctx context.Context, owner registry.Tenant) error {
	now, err := h.Tenants.Tenant(ctx, owner.Namespace)
	if forerun.KindOf(err) == forerun.NotFound || err == nil && (!now.Created.Equal(owner.Created) || now.Active() != nil) {
		return notFound()
	}
	return err
}

// input reads the body of a request, which counts among the owner's, and makes the parameters of the invocation.
func (h *Handler) input(w http.ResponseWriter, r *request, action *forerun.Action, owner string) (_ json.RawMessage, err error) {
	if r.body, err = h.Quotas.Body(w, r.Request, owner, h.MaxPayload); err != nil {
		return nil, err
	}
	done, err := h.Quotas.Apart(r.Context(), owner, r.body)
	if err != nil {
		return nil, err
	}
	defer done()
	return r.input(action)
}

// find finds an exported action and who owns it. A stranger cannot tell a missing owner, action or export from a suspended owner.
func (h *Handler) find(ctx context.Context, name forerun.Name) (registry.Tenant, *forerun.Action, error) {
	owner, err := h.Tenants.Tenant(ctx, name.Namespace)
	if err == nil {
		err = owner.Active()
	}
	if err == nil {
		var action *forerun.Action
		if action, err = h.Resolve(ctx, name); err == nil && isTrue(action, "web-export") {
			return owner, action, nil
		}
	}
	if err == nil || forerun.KindOf(err) != forerun.Internal {
		err = notFound()
	}
	return owner, nil, err
}

func isTrue(action *forerun.Action, annotation string) bool {
	return string(forerun.Lookup(action.Annotations, annotation)) == "true"
}

// methods are those that web actions take.
const methods = "OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH"

// allowOrigins lets pages of all origins call a web action that does not see to it itself.
func allowOrigins(header http.Header, r *http.Request) {
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Allow-Methods", methods)
	header.Set("Access-Control-Allow-Headers", "Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		header.Set("Access-Control-Allow-Headers", asked)
	}
}

// caller finds who makes the request, if it shows a valid key; web actions take requests without.
func (h *Handler) caller(r *http.Request) gateway.Caller {
	if r.Header.Get("Authorization") == "" {
		return gateway.Caller{}
	}
	caller, err := h.Keys.Caller(r)
	if err != nil || !caller.Rights.Any(forerun.MayInvoke) {
		return gateway.Caller{}
	}
	return caller
}

// mayCall checks the annotation require-whisk-auth against a request and the namespace whose key it shows, if any:
//
//   - true asks for the key of any namespace;
//   - an array asks for the key of one of the namespaces in it, of which "_" is the owner's;
//   - a string or a number asks for a header with it.
func mayCall(action *forerun.Action, owner string, r *http.Request, caller string) bool {
	required := forerun.Lookup(action.Annotations, "require-whisk-auth")
	if required == nil {
		return true
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(required))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return false
	}
	switch v := value.(type) {
	case bool:
		return !v || caller != ""
	case []any:
		return caller != "" && (slices.Contains(v, any(caller)) || caller == owner && slices.Contains(v, any("_")))
	case string:
		return hasSecret(r, v)
	case json.Number:
		return hasSecret(r, v.String())
	}
	return false
}
