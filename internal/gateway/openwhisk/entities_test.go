package openwhisk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

// foreign makes packages of another tenant, each with an action that echoes: "open", which is published, and "shut".
func (w *world) foreign() {
	w.t.Helper()
	for _, pkg := range []string{"open", "shut"} {
		_, err := w.api.Registry.PutEntity(w.t.Context(), registry.Packages, forerun.Name{Namespace: "other", Entity: pkg}, false, func(*registry.Entity) (*registry.Entity, error) {
			return &registry.Entity{Publish: pkg == "open", Parameters: []forerun.KeyValue{{Key: "of", Value: []byte(`"other"`)}}}, nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
		_, err = w.api.Registry.PutAction(w.t.Context(), forerun.Name{Namespace: "other", Package: pkg, Entity: "a"}, false, func(*forerun.Action) (*forerun.Action, error) {
			return &forerun.Action{Exec: forerun.Exec{Kind: "python:3", Code: "echo"}, Limits: forerun.DefaultLimits()}, nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// steps are requests in their order, with what each is answered: the error, or members of the answer.
type steps []struct {
	method, path, body string // the path follows /api/v1/namespaces/
	status             int
	want               string // the error's text, or "member=value member=value"
}

func (s steps) run(t *testing.T, w *world) {
	t.Helper()
	for _, step := range s {
		r := w.request(step.method, namespaces+step.path, step.body)
		if r.status != step.status {
			t.Errorf("%s %s %s: %d %s, want %d", step.method, step.path, step.body, r.status, r.body, step.status)
			continue
		}
		if r.status >= 400 {
			if got := member(t, r.body, "error"); got != fmt.Sprintf("%q", step.want) {
				t.Errorf("%s %s %s: %s, want %q", step.method, step.path, step.body, got, step.want)
			}
			continue
		}
		for _, expectation := range strings.Fields(step.want) {
			path, want, _ := strings.Cut(expectation, "=")
			if got := member(t, r.body, path); got != want {
				t.Errorf("%s %s %s: %s is %s, want %s", step.method, step.path, step.body, path, got, want)
			}
		}
	}
}

const (
	missing    = "The requested resource does not exist."
	otherKind  = "Resource by this name exists but is not in this collection."
	notAllowed = "The supplied authentication is not authorized to access '%s'."
)

func TestPackages(t *testing.T) {
	w := newWorld(t)
	w.foreign()
	w.deploy("plain", "echo")
	steps{
		{"PUT", "_/packages/default", `{}`, 400, "Package name 'default' is reserved."},
		{"PUT", "_/packages/p", ``, 200, `namespace="guest" name="p" binding={} parameters=[] version="0.0.1" publish=false annotations=[] actions=none`},
		{"PUT", "_/packages/p", `{}`, 409, "resource already exists"},
		{"PUT", "_/packages/p?overwrite=true", `{"publish":true,"parameters":[{"key":"x","value":1}]}`, 200, `version="0.0.2" publish=true parameters.0.value=1`},
		{"PUT", "_/packages/p?overwrite=true", `{"version":"2.0.0"}`, 200, `version="2.0.0" publish=true parameters.0.value=1`},
		{"PUT", "_/packages/p?overwrite=true", `{"binding":{"namespace":"other","name":"open"}}`, 409, "Resource is a package and cannot be converted into a binding."},
		{"PUT", "_/packages/q", `{"parameters":{}}`, 400, "The request content was malformed:\nparameters malformed!"},
		{"PUT", "_/packages/q", `{"version":"1"}`, 400, "The request content was malformed:\nsemantic version malformed"},
		{"PUT", "_/packages/q", `{"binding":{"name":"p"}}`, 400, "The request content was malformed:\nA 'binding' must have a 'namespace' and a 'name'."},
		{"PUT", "_/packages/b", `{"binding":{"namespace":"_","name":"none"}}`, 400, "Binding references a package that does not exist."},
		{"PUT", "_/packages/b", `{"binding":{"namespace":"_","name":"plain"}}`, 409, "Cannot bind to a resource that is not a package."},
		{"PUT", "_/packages/b", `{"binding":{"namespace":"other","name":"shut"}}`, 403, fmt.Sprintf(notAllowed, "other/shut")},
		{"PUT", "_/packages/b", `{"binding":{"namespace":"other","name":"none"}}`, 403, fmt.Sprintf(notAllowed, "other/none")},
		{"PUT", "_/packages/b", `{"binding":{"namespace":"other","name":"open"},"annotations":[{"key":"binding","value":7}]}`, 200, `binding={"name":"open","namespace":"other"} annotations=[{"key":"binding","value":{"name":"open","namespace":"other"}}]`},
		{"PUT", "_/packages/c", `{"binding":{"namespace":"_","name":"b"}}`, 400, "Cannot bind to another package binding."},
		{"PUT", "_/packages/plain?overwrite=true", `{}`, 409, otherKind},
		{"GET", "_/packages/plain", ``, 409, otherKind},
		{"GET", "_/actions/p", ``, 409, otherKind},
		{"GET", "_/packages/none", ``, 404, missing},
		{"GET", "other/packages/open", ``, 200, `publish=true actions.0.name="a" feeds=[]`},
		{"GET", "other/packages/shut", ``, 403, fmt.Sprintf(notAllowed, "other/shut")},
		{"GET", "_/packages/b", ``, 200, `name="b" namespace="guest" parameters.0.key="of" actions.0.name="a"`},
		{"GET", "_/packages", ``, 200, `0.name="b" 0.binding={"name":"open","namespace":"other"} 1.name="p" 1.binding=false 1.parameters=none 2=none`},
		{"GET", "_/packages?limit=1&skip=1", ``, 200, `0.name="p" 1=none`},
		{"GET", "_/packages?count=true", ``, 200, `packages=2`},
		{"GET", "other/packages", ``, 200, `0.name="open" 1=none`},
		{"GET", "other/packages?count=true", ``, 200, `packages=1`},
		{"GET", "other/triggers", ``, 403, fmt.Sprintf(notAllowed, "other")},
		{"GET", "other/actions/open/", ``, 200, `0.name="a" 1=none`},
		{"GET", "_/actions/b/", ``, 200, `0.namespace="other/open" 1=none`},
		{"GET", "_/actions/none/", ``, 404, missing},
		{"PUT", "other/packages/mine", `{}`, 403, fmt.Sprintf(notAllowed, "other/mine")},
		{"DELETE", "other/packages/open", ``, 403, fmt.Sprintf(notAllowed, "other/open")},
		{"DELETE", "_/packages/b", ``, 200, `name="b"`},
		{"DELETE", "_/packages/b", ``, 404, missing},
	}.run(t, w)
}

func TestActionsInPackages(t *testing.T) {
	w := newWorld(t)
	w.foreign()
	put := `{"exec":{"kind":"python:3","code":"echo"},"parameters":[{"key":"own","value":1}]}`
	steps{
		{"PUT", "_/actions/p/a", put, 404, missing},
		{"PUT", "_/packages/p", `{"parameters":[{"key":"own","value":0},{"key":"x","value":1}]}`, 200, ``},
		{"PUT", "_/packages/b", `{"binding":{"namespace":"_","name":"p"},"parameters":[{"key":"x","value":2}]}`, 200, ``},
		{"PUT", "_/actions/p/a", put, 200, `namespace="guest/p" parameters.1=none`},
		{"PUT", "_/actions/b/a", put, 400, "Operation not permitted on package binding."},
		{"DELETE", "_/actions/b/a", ``, 400, "Operation not permitted on package binding."},
		{"PUT", "other/actions/open/b", put, 403, fmt.Sprintf(notAllowed, "other/open/b")},
		{"GET", "_/actions/p/a", ``, 200, `parameters=[{"key":"own","value":1},{"key":"x","value":1}]`},
		{"GET", "_/actions/b/a", ``, 200, `namespace="guest/p" parameters=[{"key":"own","value":1},{"key":"x","value":2}]`},
		{"GET", "other/actions/open/a", ``, 200, `exec.code="echo" parameters.0.key="of"`},
		{"GET", "other/actions/shut/a", ``, 403, fmt.Sprintf(notAllowed, "other/shut")},
		{"POST", "_/actions/b/a?blocking=true&result=true", `{"y":3}`, 200, `own=1 x=2 y=3`},
		{"POST", "other/actions/open/a?blocking=true", `{}`, 200, `namespace="guest" response.result={"of":"other"} annotations.0.value="other/open/a"`},
		{"POST", "other/actions/shut/a", `{}`, 403, fmt.Sprintf(notAllowed, "other/shut")},
		{"POST", "other/actions/a", `{}`, 403, fmt.Sprintf(notAllowed, "other/a")},
		{"POST", "_/actions/p/none", `{}`, 404, missing},
		{"GET", "_/activations?name=a", ``, 200, `0=none`},
		{"GET", "_/activations?name=b/a", ``, 200, `0.annotations.1={"key":"binding","value":"guest/b"} 1=none`},
		{"PUT", "_/actions/p/s", `{"exec":{"kind":"sequence","components":["/_/b/a","/other/open/a"]}}`, 200, `exec.components=["/guest/b/a","/other/open/a"]`},
		{"PUT", "_/actions/p/s2", `{"exec":{"kind":"sequence","components":["/other/shut/a"]}}`, 403, fmt.Sprintf(notAllowed, "other/shut")},
		{"PUT", "_/actions/p/s?overwrite=true", `{"exec":{"kind":"sequence","components":["/_/b/s"]}}`, 400, "Sequence may not refer to itself."},
		{"PUT", "_/actions/p/s2", `{"exec":{"kind":"sequence","components":["/_/p/none"]}}`, 400, "Sequence component does not exist."},
		{"POST", "_/actions/b/s?blocking=true&result=true", `{}`, 200, `own=1 x=2 of="other"`},
		{"PUT", "_/actions/p/a?overwrite=true", `{"annotations":[{"key":"final","value":true}]}`, 200, ``},
		{"POST", "_/actions/p/a", `{"x":9}`, 400, "Request defines parameters that are not allowed (e.g., reserved properties)."},
		{"DELETE", "_/packages/p", ``, 409, "Package not empty (contains 2 entities). Set force param or delete package contents."},
		{"DELETE", "_/packages/p?force=true", ``, 200, `name="p"`},
		{"POST", "_/actions/b/a", `{}`, 404, missing},
	}.run(t, w)
}

func TestTriggersAndRules(t *testing.T) {
	w := newWorld(t)
	w.foreign()
	w.deploy("a", "echo")
	steps{
		{"PUT", "_/triggers/t", `{"parameters":[{"key":"k","value":1}]}`, 200, `namespace="guest" name="t" limits={} version="0.0.1" parameters.0.value=1 rules=none`},
		{"PUT", "_/triggers/t?overwrite=true", `{"publish":true}`, 200, `version="0.0.2" publish=true parameters.0.value=1`},
		{"PUT", "_/triggers/a?overwrite=true", `{}`, 409, otherKind},
		{"PUT", "_/triggers/f", `{"annotations":[{"key":"feed","value":"/a/$"}]}`, 400, "Feed name is not valid"},
		{"GET", "_/triggers/a", ``, 409, otherKind},
		{"GET", "_/triggers", ``, 200, `0.name="t" 0.binding=none 0.parameters=none 1=none`},
		{"GET", "_/triggers?count=true", ``, 200, `triggers=1`},
		{"POST", "_/triggers/none", `{}`, 404, missing},
		{"POST", "_/triggers/t", `[]`, 400, "The request content was malformed:\nThe content must be a JSON object, not an array."},
		{"PUT", "_/rules/r", `{"trigger":"/_/t"}`, 400, "rule requires a valid trigger and a valid action"},
		{"PUT", "_/rules/r", `{"trigger":"t","action":"/_/a"}`, 400, "The request content was malformed:\nThe fully qualified name of the entity must contain at least the namespace and the name of the entity."},
		{"PUT", "_/rules/r", `{"trigger":7,"action":"/_/a"}`, 400, "The request content was malformed:\nfully qualified name malformed"},
		{"PUT", "_/rules/r", `{"trigger":"/_/none","action":"/_/none"}`, 400, "trigger /guest/none does not exist"},
		{"PUT", "_/rules/r", `{"trigger":"/_/t","action":"/_/none"}`, 400, "action /guest/none does not exist"},
		{"PUT", "_/rules/r", `{"trigger":"/_/t","action":"/_/t"}`, 400, "action /guest/t does not exist"},
		{"PUT", "_/rules/r", `{"trigger":"/other/t","action":"/other/shut/a"}`, 403, fmt.Sprintf(notAllowed, "other/shut/a, other/t")},
		{"PUT", "_/rules/r", `{"trigger":{"path":"_","name":"t"},"action":"other/open/a"}`, 200, `status="active" trigger={"name":"t","path":"guest"} action={"name":"a","path":"other/open"} parameters=none`},
		{"PUT", "_/rules/r", `{}`, 409, "resource already exists"},
		{"PUT", "_/rules/r?overwrite=true", `{"action":"/_/a"}`, 200, `status="active" version="0.0.2" action={"name":"a","path":"guest"}`},
		{"GET", "_/triggers/t", ``, 200, `rules={"guest/r":{"action":{"name":"a","path":"guest"},"status":"active"}}`},
		{"GET", "_/rules", ``, 200, `0.name="r" 0.status=none 0.trigger.name="t" 1=none`},
		{"GET", "_/rules?count=true", ``, 200, `rules=1`},
		{"POST", "_/rules/r", `{"status":"asleep"}`, 400, "The request content was malformed:\nasleep is not a recognized rule state"},
		{"POST", "_/rules/none", `{"status":"active"}`, 404, missing},
		{"POST", "_/rules/t", `{"status":"active"}`, 409, otherKind},
		{"DELETE", "_/triggers/t", ``, 200, `name="t"`},
		{"GET", "_/rules/r", ``, 200, `status="inactive"`},
		{"POST", "_/rules/r", `{"status":"active"}`, 404, "Only rules with existing triggers can be activated"},
		{"PUT", "_/rules/r?overwrite=true", `{"publish":true}`, 400, "trigger /guest/t does not exist"},
		{"DELETE", "_/rules/r", ``, 200, `status="inactive" trigger.name="t"`},
		{"GET", "_/rules/r", ``, 404, missing},
		{"PUT", "other/rules/r", `{}`, 403, fmt.Sprintf(notAllowed, "other/r")},
	}.run(t, w)
}

func TestFire(t *testing.T) {
	w := newWorld(t)
	w.deploy("a", "echo")
	w.deploy("sealed", "echo", "final", "true")
	w.must(w.request("PUT", actions+"sealed?overwrite=true", `{"parameters":[{"key":"u","value":0}]}`))
	w.must(w.request("PUT", namespaces+"_/triggers/t", `{"parameters":[{"key":"k","value":1},{"key":"u","value":2}]}`))
	fire := func(body string) reply { return w.request("POST", namespaces+"_/triggers/t", body) }
	if r := fire(`{}`); r.status != http.StatusNoContent || r.body != "" {
		t.Errorf("without a rule: %d %q", r.status, r.body)
	}
	for rule, action := range map[string]string{"r1": "a", "r2": "sealed", "r3": "a"} {
		w.must(w.request("PUT", namespaces+"_/rules/"+rule, fmt.Sprintf(`{"trigger":"/_/t","action":"/_/%s"}`, action)))
	}
	if r := w.must(w.request("POST", namespaces+"_/rules/r3", `{"status":"inactive"}`)); r.body != "OK" {
		t.Errorf("a rule is set: %q", r.body)
	}
	fired := fire(`{"u":3}`)
	id := strings.Trim(member(t, fired.body, "activationId"), `"`)
	if fired.status != http.StatusAccepted || fired.header.Get("X-Openwhisk-Activation-Id") != id {
		t.Fatalf("%d %s", fired.status, fired.body)
	}
	record := w.must(w.request("GET", activations+"/"+id, "")).body // at once
	if got, want := names(t, record), "activationId annotations logs name namespace publish response start subject version"; got != want {
		t.Errorf("the record has %s, want %s", got, want)
	}
	if got := member(t, record, "response"); got != `{"result":{"u":3},"size":7,"status":"success","success":true}` {
		t.Errorf("the response is %s", got)
	}
	var lines []string
	for i := range 3 {
		var line string
		if err := json.Unmarshal([]byte(member(t, record, fmt.Sprintf("logs.%d", i))), &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	cause := strings.Trim(member(t, lines[0], "activationId"), `"`)
	for i, want := range []string{
		fmt.Sprintf(`{"statusCode":0,"success":true,"activationId":%q,"rule":"guest/r1","action":"guest/a"}`, cause),
		`{"statusCode":1,"success":false,"error":"Request defines parameters that are not allowed (e.g., reserved properties).","rule":"guest/r2","action":"guest/sealed"}`,
		`{"statusCode":1,"success":false,"error":"Rule 'guest/r3' is inactive, action 'guest/a' was not activated.","rule":"guest/r3","action":"guest/a"}`,
	} {
		if lines[i] != want {
			t.Errorf("line %d is %s, want %s", i, lines[i], want)
		}
	}
	w.api.Controller.Close(t.Context()) // waits for its end
	invoked := w.must(w.request("GET", activations+"/"+cause, "")).body
	if got := member(t, invoked, "response.result"); got != `{"k":1,"u":3}` || member(t, invoked, "cause") != "none" {
		t.Errorf("the action was given %s: %s", got, invoked)
	}
	list := w.must(w.request("GET", activations+"?name=t", "")).body
	if got := names(t, member(t, list, "0")); got != "activationId annotations name namespace publish start version" {
		t.Errorf("the summary has %s", got)
	}
}

// TestFireGoesOnWithoutItsClient: either all rules fire or none.
func TestFireGoesOnWithoutItsClient(t *testing.T) {
	w := newWorld(t)
	w.deploy("a", "echo")
	w.must(w.request("PUT", namespaces+"_/triggers/t", ""))
	w.must(w.request("PUT", namespaces+"_/rules/r", `{"trigger":"/_/t","action":"/_/a"}`))
	w.must(w.request("POST", namespaces+"_/triggers/t", ""))
	w.must(w.request("PUT", actions+"a?overwrite=true", `{}`)) // it is to be read from the store
	ctx, leave := context.WithCancel(context.Background())
	leave()
	r := httptest.NewRequestWithContext(ctx, "POST", namespaces+"_/triggers/t", nil)
	r.SetBasicAuth(w.auth.UUID, w.auth.Key)
	recorder := httptest.NewRecorder()
	w.door.ServeHTTP(recorder, r)
	id := strings.Trim(member(t, recorder.Body.String(), "activationId"), `"`)
	if logs := member(t, w.must(w.request("GET", activations+"/"+id+"/logs", "")).body, "logs.0"); !strings.Contains(logs, `\"success\":true`) {
		t.Errorf("the log of the firing is %s", logs)
	}
}

func TestAPIRoutesAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/api/v1/web/whisk.system/apimgmt/getApi.http?accesstoken=x", namespaces + "whisk.system/actions/routemgmt/createApi"} {
		if r := w.request("POST", path, `{}`); r.status != http.StatusNotImplemented || !strings.Contains(r.body, "/api/v1/web/") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}
