package openwhisk

import (
	"net/http"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// document is a JSON object without a shape of its own.
type document map[string]any

// apiInfo answers GET /api/v1.
func (a *API) apiInfo(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return wrongMethod(http.MethodGet)
	}
	info := document{
		"description": "OpenWhisk API", "api_version": "1.0.0", "api_version_path": "v1",
		"build": "Forerun", "buildno": a.Version,
	}
	if a.WebURL != "" {
		info["web_url"] = a.WebURL
	}
	gateway.WriteJSON(w, http.StatusOK, info)
	return nil
}

// outside answers what is not below /api/v1: GET / says what the platform is.
func (a *API) outside(w http.ResponseWriter, r *http.Request) error {
	switch {
	case r.URL.Path != "/":
		return forerun.Errorf(forerun.NotFound, r.URL.Path, "The requested resource could not be found.")
	case r.Method != http.MethodGet:
		return wrongMethod(http.MethodGet)
	}
	const mib = 1 << 20
	gateway.WriteJSON(w, http.StatusOK, document{
		"description": "OpenWhisk", "implementation": "Forerun " + a.Version, "api_paths": []string{"/api/v1"},
		"limits": document{
			"sequence_length":     forerun.MaxComponents,
			"min_action_duration": minTimeout, "max_action_duration": a.Bounds.Timeout,
			"min_action_memory": minMemory * mib, "max_action_memory": a.Bounds.Memory * mib,
			"min_action_logs": minLogs * mib, "max_action_logs": a.Bounds.Logs * mib,
		},
		"runtimes": a.runtimes(),
	})
	return nil
}

// runtimes lists the kinds by language, as OpenWhisk does; the first of a language is its default.
func (a *API) runtimes() map[string][]document {
	languages := make(map[string][]document)
	for _, kind := range a.kinds() {
		language, _, _ := strings.Cut(kind, ":")
		languages[language] = append(languages[language], document{
			"kind": kind, "default": languages[language] == nil, "deprecated": false, "attached": true, "requireMain": false,
		})
	}
	return languages
}

// listNamespaces answers GET /namespaces with the caller's own.
func (a *API) listNamespaces(c *call) error {
	gateway.WriteJSON(c.w, http.StatusOK, []string{c.caller.Namespace})
	return nil
}
