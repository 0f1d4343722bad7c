package openwhisk

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// environment is a function that answers with its environment and its arguments.
func environment(r *forerun.Run) forerun.RunEnd {
	env, err := forerun.Environment(r.Action.Parameters)
	if err != nil {
		return forerun.RunEnd{Status: forerun.DeveloperError, Result: json.RawMessage(`{"error":"it was to be refused before"}`)}
	}
	result, _ := json.Marshal(map[string]any{"env": env, "args": r.Input})
	return forerun.RunEnd{Result: result}
}

// TestInitParameters: they stay in the document, are variables of the environment, and no arguments.
func TestInitParameters(t *testing.T) {
	w := newWorld(t)
	w.functions["environment"] = environment
	exec := `"exec":{"kind":"python:3","code":"environment"}`
	w.pack("p", `{"parameters":[{"key":"STAGE","value":"of the package","init":true},{"key":"REGION","value":"eu","init":true},{"key":"x","value":0}]}`)
	r := w.must(w.request("PUT", actions+"p/a", `{`+exec+`,"parameters":[{"key":"STAGE","value":"blue","init":true},{"key":"PORT","value":80,"init":true},{"key":"plain","value":1,"init":false}],
		"annotations":[{"key":"note","value":1,"init":true,"secret":true}]}`))
	if got, want := member(t, r.body, "parameters"), `[{"init":true,"key":"STAGE","value":"blue"},{"init":true,"key":"PORT","value":80},{"key":"plain","value":1}]`; got != want {
		t.Errorf("the parameters are %s, want %s", got, want)
	}
	if got := member(t, r.body, "annotations.0"); got != `{"key":"note","value":1}` {
		t.Errorf("an annotation is %s", got)
	}
	invoke := func(path, body string) string {
		t.Helper()
		return w.must(w.request("POST", actions+path+"?blocking=true&result=true", body)).body
	}
	want := `{"args":{"plain":1,"x":2},"env":{"PORT":"80","REGION":"eu","STAGE":"blue"}}`
	if got := invoke("p/a", `{"x":2}`); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := invoke("p/a", `{"x":2,"STAGE":"green"}`); got != want {
		t.Errorf("with an argument of a variable's name: %s, want %s", got, want)
	}
	w.pack("bound", `{"binding":{"namespace":"_","name":"p"},"parameters":[{"key":"REGION","value":"us","init":true},{"key":"PORT","value":1}]}`)
	if got, want := invoke("bound/a", `{}`), `{"args":{"plain":1,"x":0},"env":{"PORT":"80","REGION":"us","STAGE":"blue"}}`; got != want {
		t.Errorf("through a binding: %s, want %s", got, want)
	}
	w.must(w.request("PUT", actions+"p/a?overwrite=true", `{"parameters":[{"key":"STAGE","value":"no variable any more"}]}`))
	if got, want := invoke("p/a", `{}`), `{"args":{"STAGE":"no variable any more","x":0},"env":{"REGION":"eu"}}`; got != want {
		t.Errorf("after an update: %s, want %s", got, want)
	}
	for body, want := range map[string]string{
		`{"key":"__OW_API_KEY","value":"x","init":true}`: "The variable '__OW_API_KEY' is set by the server: choose a name that does not begin with __OW_.",
		`{"key":"a=b","value":"x","init":true}`:          `The parameter \"a=b\" cannot be a variable of the environment: its name must not hold '=' or a NUL. Rename it.`,
		`{"key":"a","value":"x","init":"yes"}`:           "The request content was malformed:\\nparameters malformed!",
		`{"key":"a","secret":true}`:                      "The request content was malformed:\\nThe secret parameter 'a' has no value: send one.",
		`{"key":"a","value":null,"secret":true}`:         "The request content was malformed:\\nThe secret parameter 'a' has no value: send one.",
	} {
		if r := w.request("PUT", actions+"b", `{`+exec+`,"parameters":[`+body+`]}`); r.status != 400 || member(t, r.body, "error") != `"`+want+`"` {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := w.request("PUT", namespaces+"_/triggers/t", `{"parameters":[{"key":"A","value":"x","init":true}]}`); r.status != 400 || !strings.Contains(r.body, "A trigger has no environment") {
		t.Errorf("a trigger: %d %s", r.status, r.body)
	}
}

// TestSecretsAreHidden: no answer shows them unless it was asked for by their owner.
func TestSecretsAreHidden(t *testing.T) {
	w := newWorld(t)
	w.functions["environment"] = environment
	const hidden, put = "hunter2", `{"exec":{"kind":"python:3","code":"environment"},"parameters":[{"key":"TOKEN","value":"hunter2","init":true,"secret":true},{"key":"pin","value":"hunter2","secret":true}]}`
	w.pack("p", `{"parameters":[{"key":"OF","value":"hunter2","init":true,"secret":true}]}`)
	pkg, action, trigger := namespaces+"_/packages/p", actions+"p/a", namespaces+"_/triggers/t"
	for _, r := range []reply{
		w.must(w.request("PUT", action, put)),
		w.must(w.request("PUT", trigger, `{"parameters":[{"key":"pin","value":"hunter2","secret":true}]}`)),
		w.must(w.request("GET", action, "")), w.must(w.request("GET", pkg, "")), w.must(w.request("GET", trigger, "")),
		w.must(w.request("GET", action+"?secrets=false", "")),
		w.must(w.request("GET", namespaces+"_/actions", "")), w.must(w.request("GET", namespaces+"_/packages", "")), w.must(w.request("GET", namespaces+"_/triggers", "")),
	} {
		if strings.Contains(r.body, hidden) {
			t.Errorf("it is shown: %s", r.body)
		}
	}
	want := `[{"init":true,"key":"TOKEN","secret":true,"value":null},{"key":"pin","secret":true,"value":null},{"init":true,"key":"OF","secret":true,"value":null}]`
	if got := member(t, w.request("GET", action, "").body, "parameters"); got != want {
		t.Errorf("the parameters are %s, want %s", got, want)
	}
	for _, path := range []string{action, pkg, trigger} {
		if r := w.request("GET", path+"?secrets=true", ""); !strings.Contains(r.body, hidden) {
			t.Errorf("%s is not shown to its owner: %d %s", path, r.status, r.body)
		}
	}
	const runs = `{"args":{"pin":"hunter2"},"env":{"OF":"hunter2","TOKEN":"hunter2"}}`
	if r := w.request("POST", action+"?blocking=true&result=true", `{}`); r.body != runs {
		t.Errorf("%d %s", r.status, r.body)
	}

	// What a document shows can be put back: the values stay.
	shown := member(t, w.request("GET", action, "").body, "parameters")
	own := strings.Replace(shown, `,{"init":true,"key":"OF","secret":true,"value":null}`, "", 1)
	if r := w.must(w.request("PUT", action+"?overwrite=true", `{"parameters":`+own+`}`)); strings.Contains(r.body, hidden) {
		t.Errorf("it is shown: %s", r.body)
	}
	if r := w.request("POST", action+"?blocking=true&result=true", `{}`); r.body != runs {
		t.Errorf("after an update: %d %s", r.status, r.body)
	}
	if r := w.request("PUT", actions+"p/final?overwrite=true", strings.Replace(put, "{", `{"annotations":[{"key":"final","value":true}],`, 1)); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, argument := range []string{"TOKEN", "pin"} {
		if r := w.request("POST", actions+"p/final?blocking=true", `{"`+argument+`":1}`); r.status != 400 {
			t.Errorf("a final action takes %s: %d %s", argument, r.status, r.body)
		}
	}

	// The annotation makes all variables secret, also those that are there already.
	w.must(w.request("PUT", actions+"all", `{"exec":{"kind":"python:3","code":"environment"},"parameters":[{"key":"TOKEN","value":"hunter2","init":true},{"key":"x","value":1}]}`))
	r := w.must(w.request("PUT", actions+"all?overwrite=true", `{"annotations":[{"key":"secret-env","value":true}]}`))
	if got := member(t, r.body, "parameters"); got != `[{"init":true,"key":"TOKEN","secret":true,"value":null},{"key":"x","value":1}]` {
		t.Errorf("with secret-env: %s", got)
	}
	if r := w.request("DELETE", actions+"all", ""); r.status != 200 || strings.Contains(r.body, hidden) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestSecretsOfOthers: those of a shared package reach its functions, and nobody but its owner reads them.
func TestSecretsOfOthers(t *testing.T) {
	w := newWorld(t)
	w.functions["environment"] = environment
	w.foreign()
	_, err := w.api.Registry.PutEntity(t.Context(), registry.Packages, forerun.Name{Namespace: "other", Entity: "open"}, true, func(*registry.Entity) (*registry.Entity, error) {
		return &registry.Entity{Publish: true, Parameters: []forerun.KeyValue{forerun.Hide("THEIRS", json.RawMessage(`"hunter2"`), true)}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.pack("bound", `{"binding":{"namespace":"other","name":"open"},"parameters":[{"key":"MINE","value":"mine","init":true,"secret":true}]}`)
	for path, isMine := range map[string]bool{
		"_/packages/bound": true, "_/actions/bound/a": true, "other/packages/open": false, "other/actions/open/a": false,
	} {
		r := w.request("GET", namespaces+path+"?secrets=true", "")
		if r.status != 200 || strings.Contains(r.body, "hunter2") || strings.Contains(r.body, `"value":"mine"`) != isMine || !strings.Contains(r.body, "THEIRS") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	c := &call{caller: gateway.Caller{Namespace: "guest", Cause: "0123456789abcdef0123456789abcdef"}, query: url.Values{"secrets": {"true"}}}
	if _, err := c.secretsOf(); forerun.KindOf(err) != forerun.Forbidden {
		t.Errorf("a function is shown secrets: %v", err)
	}
}

// TestDoorsOfOthers: the secret that opens a web action is shown to its owner alone; who else may call it is shown to all that see the action.
func TestDoorsOfOthers(t *testing.T) {
	w := newWorld(t)
	w.foreign()
	w.pack("bound", `{"binding":{"namespace":"other","name":"open"}}`)
	for value, isHidden := range map[string]bool{`"door-secret"`: true, `8642`: true, `-8642`: true, `true`: false, `["guest"]`: false} {
		put := func(namespace, pkg string) {
			_, err := w.api.Registry.PutAction(t.Context(), forerun.Name{Namespace: namespace, Package: pkg, Entity: "door"}, true, func(*forerun.Action) (*forerun.Action, error) {
				annotations := []forerun.KeyValue{{Key: "web-export", Value: json.RawMessage("true")}, {Key: "require-whisk-auth", Value: json.RawMessage(value)}}
				return &forerun.Action{Exec: forerun.Exec{Kind: "python:3", Code: "echo"}, Limits: forerun.DefaultLimits(), Annotations: annotations}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		put("other", "open")
		put("guest", "")
		for path, isMine := range map[string]bool{
			"_/actions/door": true, "_/actions": true,
			"other/actions/open/door": false, "other/actions/open/": false, "other/packages/open": false, "_/actions/bound/door": false, "_/packages/bound": false,
		} {
			r := w.request("GET", namespaces+path, "")
			shown := strings.Contains(r.body, `"require-whisk-auth","value":`+value)
			if r.status != 200 || shown != (isMine || !isHidden) || !strings.Contains(r.body, `"require-whisk-auth"`) {
				t.Errorf("%s with %s: %d %s", path, value, r.status, r.body)
			}
		}
	}
}

// TestQueryParameters: each route refuses what it does not know, by name, and takes what clients send.
func TestQueryParameters(t *testing.T) {
	w := newWorld(t)
	variables := strings.NewReplacer("{namespace}", "_", "{name}", "x", "{package}", "p", "{id}", strings.Repeat("0", 32))
	known := make(map[string]bool)
	w.feed.Close() // an answer of the feed would not end
	for _, route := range w.api.routes {
		path := "/api/v1/" + variables.Replace(strings.Join(route.segments, "/"))
		r := w.request(route.method, path+"?version=1.0.0", "{}")
		if r.status != 400 || !strings.HasPrefix(member(t, r.body, "error"), `"The query parameter 'version' is not known here`) {
			t.Errorf("%s %s?version=: %d %s", route.method, path, r.status, r.body)
		}
		if r := w.request(route.method, path+"?a=%zz", "{}"); r.status != 400 || !strings.Contains(r.body, "malformed") {
			t.Errorf("%s %s?a=%%zz: %d %s", route.method, path, r.status, r.body)
		}
		for _, name := range route.query {
			known[name] = true
			if r := w.request(route.method, path+"?"+name+"=", "{}"); strings.Contains(r.body, "not known here") {
				t.Errorf("%s %s?%s=: %s", route.method, path, name, r.body)
			}
		}
	}
	want := strings.Fields("action blocking code count docs force limit name overwrite public result secrets show since skip timeout trace upto")
	if got := slices.Sorted(maps.Keys(known)); !slices.Equal(got, want) {
		t.Errorf("the query parameters are %q, want %q", got, want)
	}
	// What the official clients send.
	for _, line := range strings.Fields(`
		GET:actions?limit=30&skip=0 GET:actions?count=true GET:triggers?limit=0&skip=0 GET:rules?limit=30&skip=0&docs=true GET:packages?public=true&limit=30&skip=0
		GET:activations?limit=30&skip=0&since=1&upto=2&docs=true&name=p%2Fa GET:actions/x?code=false PUT:actions/x?overwrite=false PUT:triggers/x?overwrite=true
		PUT:packages/x?overwrite=true PUT:rules/x?overwrite=true DELETE:packages/x?force=true POST:actions/x?blocking=true&result=true&timeout=1000 POST:triggers/x`) {
		method, path, _ := strings.Cut(line, ":")
		if r := w.request(method, namespaces+"_/"+path, "{}"); strings.Contains(r.body, "query parameter") {
			t.Errorf("%s: %d %s", line, r.status, r.body)
		}
	}
}

// TestSystemNamespace: what is not there is missing and not forbidden.
func TestSystemNamespace(t *testing.T) {
	w := newWorld(t)
	const forbid = "The supplied authentication is not authorized to access '%s'."
	steps{
		{"GET", "whisk.system/packages/none", ``, 404, missing},
		{"GET", "whisk.system/actions/none/a", ``, 404, missing},
		{"GET", "whisk.system/actions/none/", ``, 404, missing},
		{"GET", "whisk.system/actions/a", ``, 404, missing},
		{"POST", "whisk.system/actions/a", `{}`, 404, missing},
		{"POST", "whisk.system/actions/none/a?blocking=true", `{}`, 404, missing},
		{"DELETE", "whisk.system/packages/none", ``, 404, missing},
		{"DELETE", "whisk.system/actions/none/a", ``, 404, missing},
		{"GET", "whisk.system/triggers/t", ``, 404, missing},
		{"POST", "whisk.system/triggers/t", `{}`, 404, missing},
		{"GET", "whisk.system/rules/r", ``, 404, missing},
		{"GET", "whisk.system/activations/" + strings.Repeat("0", 32), ``, 404, missing},
		{"PUT", "_/packages/b", `{"binding":{"namespace":"whisk.system","name":"none"}}`, 400, "Binding references a package that does not exist."},
		{"PUT", "_/actions/s", `{"exec":{"kind":"sequence","components":["/whisk.system/none/a"]}}`, 400, "Sequence component does not exist."},
		{"PUT", "whisk.system/packages/mine", `{}`, 403, strings.Replace(forbid, "%s", "whisk.system/mine", 1)},
	}.run(t, w)
	_, err := w.api.Registry.PutEntity(t.Context(), registry.Packages, forerun.Name{Namespace: registry.System, Entity: "shut"}, false, func(*registry.Entity) (*registry.Entity, error) {
		return new(registry.Entity), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	steps{
		{"GET", "whisk.system/packages/shut", ``, 403, strings.Replace(forbid, "%s", "whisk.system/shut", 1)},
		{"DELETE", "whisk.system/packages/shut", ``, 403, strings.Replace(forbid, "%s", "whisk.system/shut", 1)},
	}.run(t, w)
}
