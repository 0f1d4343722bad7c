package openwhisk

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// route is one line of the table: what answers a method on the paths of a pattern, whose segments in braces are
// variables, and which query parameters it knows. The caller needs one of the rights.
type route struct {
	method   string
	segments []string
	handle   func(*call) error
	query    []string
	rights   forerun.Rights
}

// on makes a route, for which a caller must have the right to read or to change. query names the parameters that it knows, with white
// space between.
func on(method, pattern string, handle func(*call) error, query string) route {
	rights := forerun.MayChange
	if method == http.MethodGet {
		rights = forerun.MayRead
	}
	return route{method, strings.Split(pattern, "/"), handle, strings.Fields(query), rights}
}

// needing returns a route that needs one of these rights instead.
func (r route) needing(rights forerun.Rights) route {
	r.rights = rights
	return r
}

// page and put are query parameters that several routes know.
const (
	pageQuery = "limit skip count docs" // docs is the clients' wish for whole documents, which lists of activations alone grant
	putQuery  = "overwrite"
)

// table lists the API below /api/v1/. The first route that fits counts.
func (a *API) table() []route {
	return []route{
		on("GET", "namespaces", a.listNamespaces, "").needing(forerun.AllRights),

		on("GET", "namespaces/{namespace}/actions", a.listActions, pageQuery),
		on("GET", "namespaces/{namespace}/actions/{package}/", a.listActions, pageQuery),
		on("GET", "namespaces/{namespace}/actions/{name}", a.getAction, "code secrets"),
		on("GET", "namespaces/{namespace}/actions/{package}/{name}", a.getAction, "code secrets"),
		on("PUT", "namespaces/{namespace}/actions/{name}", a.putAction, putQuery),
		on("PUT", "namespaces/{namespace}/actions/{package}/{name}", a.putAction, putQuery),
		on("DELETE", "namespaces/{namespace}/actions/{name}", a.deleteAction, ""),
		on("DELETE", "namespaces/{namespace}/actions/{package}/{name}", a.deleteAction, ""),
		on("POST", "namespaces/{namespace}/actions/{name}", a.invoke, "blocking result timeout").needing(forerun.MayInvoke),
		on("POST", "namespaces/{namespace}/actions/{package}/{name}", a.invoke, "blocking result timeout").needing(forerun.MayInvoke),

		on("GET", "namespaces/{namespace}/activations", a.listActivations, pageQuery+" name since upto"),
		on("GET", "namespaces/{namespace}/activations/{id}", a.getActivation, "trace").needing(forerun.MayRead | forerun.MayInvoke),
		on("GET", "namespaces/{namespace}/activations/{id}/trace", a.getTrace, "").needing(forerun.MayRead | forerun.MayInvoke),
		on("GET", "namespaces/{namespace}/activations/{id}/result", a.getResult, "").needing(forerun.MayRead | forerun.MayInvoke),
		on("GET", "namespaces/{namespace}/activations/{id}/logs", a.getLogs, ""),

		on("GET", "namespaces/{namespace}/feed", a.follow, "name"),

		on("GET", "namespaces/{namespace}/cache", a.cacheStats, ""),
		on("GET", "namespaces/{namespace}/cache/rows", a.cacheRows, "action show limit skip"),
		on("GET", "namespaces/{namespace}/cache/advice", a.cacheAdvice, "action"),
		on("POST", "namespaces/{namespace}/cache/purge", a.purgeCache, ""),
		on("POST", "namespaces/{namespace}/cache/resume", a.resumeCache, ""),
		on("POST", "namespaces/{namespace}/cache/explain", a.explainCache, "").needing(forerun.MayRead),

		on("GET", "namespaces/{namespace}/limits", a.namespaceLimits, ""),
		on("GET", "namespaces/{namespace}/limits/{name}", a.oneLimit, ""),

		on("GET", "namespaces/{namespace}/packages", a.listEntities(registry.Packages, packageSummaryOf), pageQuery+" public"),
		on("GET", "namespaces/{namespace}/packages/{name}", a.getPackage, "secrets"),
		on("PUT", "namespaces/{namespace}/packages/{name}", a.putPackage, putQuery),
		on("DELETE", "namespaces/{namespace}/packages/{name}", a.deletePackage, "force"),

		on("GET", "namespaces/{namespace}/triggers", a.listEntities(registry.Triggers, triggerSummaryOf), pageQuery),
		on("GET", "namespaces/{namespace}/triggers/{name}", a.getTrigger, "secrets"),
		on("PUT", "namespaces/{namespace}/triggers/{name}", a.putTrigger, putQuery),
		on("DELETE", "namespaces/{namespace}/triggers/{name}", a.deleteTrigger, ""),
		on("POST", "namespaces/{namespace}/triggers/{name}", a.fire, "").needing(forerun.MayInvoke),
		on("GET", "namespaces/{namespace}/triggers/{name}/timer", a.getTimer, ""),
		on("PUT", "namespaces/{namespace}/triggers/{name}/timer", a.putTimer, ""),
		on("PATCH", "namespaces/{namespace}/triggers/{name}/timer", a.patchTimer, ""),
		on("DELETE", "namespaces/{namespace}/triggers/{name}/timer", a.deleteTimer, ""),

		on("GET", "namespaces/{namespace}/rules", a.listEntities(registry.Rules, ruleSummaryOf), pageQuery),
		on("GET", "namespaces/{namespace}/rules/{name}", a.getRule, ""),
		on("PUT", "namespaces/{namespace}/rules/{name}", a.putRule, putQuery),
		on("DELETE", "namespaces/{namespace}/rules/{name}", a.deleteRule, ""),
		on("POST", "namespaces/{namespace}/rules/{name}", a.setRule, ""),
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
func find(routes []route, method, path string) (*route, variables, error) {
	segments, err := split(path)
	if err != nil {
		return nil, variables{}, err
	}
	var methods []string
	for i := range routes {
		r := &routes[i]
		switch vars, ok := r.match(segments); {
		case !ok:
		case r.method == method:
			return r, vars, nil
		case !slices.Contains(methods, r.method):
			methods = append(methods, r.method)
		}
	}
	if methods != nil {
		return nil, variables{}, wrongMethod(methods...)
	}
	return nil, variables{}, forerun.Errorf(forerun.NotFound, path, "The requested resource could not be found.")
}

func wrongMethod(methods ...string) error {
	allow, message := gateway.WrongMethod(methods)
	return &refusal{status: http.StatusMethodNotAllowed, allow: allow, message: message}
}

// parse reads the query of a request, and refuses what the route does not know: a client that asks for something must not be answered as if it
// had not.
func (r *route) parse(query string) (url.Values, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "query", "The query of the URL is malformed: %w.", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case slices.Contains(r.query, name):
		case len(r.query) == 0:
			return nil, forerun.Errorf(forerun.Invalid, name, "The query parameter '%s' is not known here: this request takes none.", name)
		default:
			return nil, forerun.Errorf(forerun.Invalid, name, "The query parameter '%s' is not known here. This request takes: %s.", name, strings.Join(r.query, ", "))
		}
	}
	return values, nil
}

// segment is a part of a path between slashes, as it was sent and as it is meant.
type segment struct{ sent, meant string }

func split(path string) ([]segment, error) {
	segments := make([]segment, 0, strings.Count(path, "/")+1)
	for s := range strings.SplitSeq(path, "/") {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return nil, forerun.Errorf(forerun.Invalid, path, "The path is not a valid URL path: %w", err)
		}
		segments = append(segments, segment{s, decoded})
	}
	return segments, nil
}

// match compares a path with the route's. A GET may end in a slash. Only names may be percent-encoded: a proxy compares paths as they were sent.
func (r *route) match(path []segment) (vars variables, ok bool) {
	n := len(r.segments)
	if len(path) == n+1 && path[n].sent == "" && r.method == http.MethodGet {
		path = path[:n]
	}
	if len(path) != n {
		return vars, false
	}
	for i, s := range r.segments {
		switch {
		case s == path[i].sent:
		case s != "" && s[0] == '{' && path[i].sent != "":
			vars.set(s[1:len(s)-1], path[i].meant)
		default:
			return vars, false
		}
	}
	return vars, true
}

// variables are the variable segments of a path, by their names in the route's pattern.
type variables struct {
	n    int
	list [maxVariables]struct{ name, value string }
}

// maxVariables is how many a pattern has at most.
const maxVariables = 3

func (v *variables) set(name, value string) {
	v.list[v.n].name, v.list[v.n].value = name, value
	v.n++
}

// get is the value of a variable; empty: the route has none of that name.
func (v *variables) get(name string) string {
	for i := range v.list[:v.n] {
		if v.list[i].name == name {
			return v.list[i].value
		}
	}
	return ""
}
