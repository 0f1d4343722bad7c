package openwhisk

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// route is one line of the table: what answers a method on the paths of a pattern, whose segments in braces are
// variables.
type route struct {
	method   string
	segments []string
	handle   func(*call) error
}

func on(method, pattern string, handle func(*call) error) route {
	return route{method, strings.Split(pattern, "/"), handle}
}

// table lists the API below /api/v1/. The first route that fits counts.
func (a *API) table() []route {
	return []route{
		on("GET", "namespaces", a.listNamespaces),

		on("GET", "namespaces/{namespace}/actions", a.listActions),
		on("GET", "namespaces/{namespace}/actions/{package}/", a.listActions),
		on("GET", "namespaces/{namespace}/actions/{name}", a.getAction),
		on("GET", "namespaces/{namespace}/actions/{package}/{name}", a.getAction),
		on("PUT", "namespaces/{namespace}/actions/{name}", a.putAction),
		on("PUT", "namespaces/{namespace}/actions/{package}/{name}", a.putAction),
		on("DELETE", "namespaces/{namespace}/actions/{name}", a.deleteAction),
		on("DELETE", "namespaces/{namespace}/actions/{package}/{name}", a.deleteAction),
		on("POST", "namespaces/{namespace}/actions/{name}", a.invoke),
		on("POST", "namespaces/{namespace}/actions/{package}/{name}", a.invoke),

		on("GET", "namespaces/{namespace}/activations", a.listActivations),
		on("GET", "namespaces/{namespace}/activations/{id}", a.getActivation),
		on("GET", "namespaces/{namespace}/activations/{id}/result", a.getResult),
		on("GET", "namespaces/{namespace}/activations/{id}/logs", a.getLogs),

		on("GET", "namespaces/{namespace}/limits", a.namespaceLimits),
		on("GET", "namespaces/{namespace}/limits/{name}", a.oneLimit),

		on("GET", "namespaces/{namespace}/packages", a.listEntities(registry.Packages, packageSummaryOf)),
		on("GET", "namespaces/{namespace}/packages/{name}", a.getPackage),
		on("PUT", "namespaces/{namespace}/packages/{name}", a.putPackage),
		on("DELETE", "namespaces/{namespace}/packages/{name}", a.deletePackage),

		on("GET", "namespaces/{namespace}/triggers", a.listEntities(registry.Triggers, triggerSummaryOf)),
		on("GET", "namespaces/{namespace}/triggers/{name}", a.getTrigger),
		on("PUT", "namespaces/{namespace}/triggers/{name}", a.putTrigger),
		on("DELETE", "namespaces/{namespace}/triggers/{name}", a.deleteTrigger),
		on("POST", "namespaces/{namespace}/triggers/{name}", a.fire),

		on("GET", "namespaces/{namespace}/rules", a.listEntities(registry.Rules, ruleSummaryOf)),
		on("GET", "namespaces/{namespace}/rules/{name}", a.getRule),
		on("PUT", "namespaces/{namespace}/rules/{name}", a.putRule),
		on("DELETE", "namespaces/{namespace}/rules/{name}", a.deleteRule),
		on("POST", "namespaces/{namespace}/rules/{name}", a.setRule),
	}
}

// cutPrefix returns what follows /api/v1/ in a path, and whether the path is in the API at all.
func cutPrefix(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "/api/v1")
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(rest, "/"), true
}

// find looks up what answers a request.
func find(routes []route, method, path string) (func(*call) error, map[string]string, error) {
	segments, err := split(path)
	if err != nil {
		return nil, nil, err
	}
	var methods []string
	for _, r := range routes {
		switch vars, ok := r.match(segments); {
		case !ok:
		case r.method == method:
			return r.handle, vars, nil
		case !slices.Contains(methods, r.method):
			methods = append(methods, r.method)
		}
	}
	if methods != nil {
		return nil, nil, wrongMethod(methods...)
	}
	return nil, nil, forerun.Errorf(forerun.NotFound, path, "The requested resource could not be found.")
}

func wrongMethod(methods ...string) error {
	allow, message := gateway.WrongMethod(methods)
	return &refusal{status: http.StatusMethodNotAllowed, allow: allow, message: message}
}

func split(path string) ([]string, error) {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return nil, forerun.Errorf(forerun.Invalid, path, "The path is not a valid URL path: %w", err)
		}
		segments[i] = decoded
	}
	return segments, nil
}

// match compares a path with the route's. A GET may end in a slash.
func (r route) match(path []string) (map[string]string, bool) {
	n := len(r.segments)
	if len(path) == n+1 && path[n] == "" && r.method == http.MethodGet {
		path = path[:n]
	}
	if len(path) != n {
		return nil, false
	}
	var vars map[string]string
	for i, s := range r.segments {
		switch {
		case s == path[i]:
		case s != "" && s[0] == '{' && path[i] != "":
			if vars == nil {
				vars = make(map[string]string, 3)
			}
			vars[s[1:len(s)-1]] = path[i]
		default:
			return nil, false
		}
	}
	return vars, true
}
