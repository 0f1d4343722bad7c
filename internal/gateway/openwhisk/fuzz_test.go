package openwhisk

import (
	"encoding/json"
	"net/http"
	"testing"
)

// FuzzPut checks that every body gets an answer in the API's shape, and that what was accepted can be read back.
func FuzzPut(f *testing.F) {
	for _, seed := range []string{
		`{"exec":{"kind":"python:3","code":"echo"},"parameters":[{"key":"a","value":null}],"limits":{"memory":256}}`,
		`{"exec":{"kind":"sequence","components":["/_/echo"]},"annotations":[{"key":"conductor","value":{"type":"empty"}}]}`,
		`{"exec":null,"limits":{"timeout":1e3},"version":"1.1.1","publish":false}`, `[`, ``,
	} {
		f.Add([]byte(seed))
	}
	w := newWorld(f)
	w.deploy("echo", "echo")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := w.request("PUT", actions+"new?overwrite=true", string(body), "Content-Type", "application/json")
		if !json.Valid([]byte(r.body)) || r.status >= 500 && r.status != http.StatusNotImplemented {
			t.Fatalf("%q: %d %s", body, r.status, r.body)
		}
		if r.status != http.StatusOK {
			return
		}
		if got := w.request("GET", actions+"new", ""); got.body != r.body {
			t.Errorf("%q: put %s, got %s", body, r.body, got.body)
		}
		w.request("DELETE", actions+"new", "")
	})
}

// FuzzEntities checks that every body of a package, a trigger and a rule gets an answer in the API's shape, and that what was
// accepted can be read back, listed and deleted.
func FuzzEntities(f *testing.F) {
	for _, seed := range []string{
		`{"parameters":[{"key":"a","value":1}],"annotations":[{"key":"feed","value":"/a/b"}],"publish":true,"version":"1.0.0"}`,
		`{"binding":{"namespace":"_","name":"p"}}`, `{"binding":{}}`, `{"trigger":"/_/t","action":"guest/echo"}`,
		`{"trigger":{"path":"_","name":"t"},"action":{"path":"_","name":"echo"},"status":"active"}`, `{"trigger":"//","action":[]}`, `[`, ``,
	} {
		f.Add([]byte(seed))
	}
	w := newWorld(f)
	w.deploy("echo", "echo")
	w.pack("p", "")
	w.must(w.request("PUT", namespaces+"_/triggers/t", ""))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, collection := range []string{"packages", "triggers", "rules"} {
			path := namespaces + "_/" + collection
			r := w.request("PUT", path+"/new", string(body), "Content-Type", "application/json")
			if !json.Valid([]byte(r.body)) || r.status >= 500 {
				t.Fatalf("%s %q: %d %s", collection, body, r.status, r.body)
			}
			if r.status != http.StatusOK {
				continue
			}
			for _, got := range []reply{w.request("GET", path+"/new", ""), w.request("GET", path, ""), w.request("DELETE", path+"/new", "")} {
				if got.status != http.StatusOK || !json.Valid([]byte(got.body)) {
					t.Errorf("%s %q: then %d %s", collection, body, got.status, got.body)
				}
			}
		}
	})
}

// FuzzInvoke checks that a function is given exactly the JSON objects, and gets back what it returns.
func FuzzInvoke(f *testing.F) {
	for _, seed := range []string{`{"a":1.0,"b":[1e400,"\u0000"]}`, `{"a":{}, "a":2}`, `[]`, `"`, `{"\ud800":1}`, "{\"a\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	w := newWorld(f)
	w.deploy("echo", "echo")
	f.Fuzz(func(t *testing.T, body []byte) {
		r := w.request("POST", actions+"echo?blocking=true&result=true", string(body), "Content-Type", "application/json")
		if !json.Valid([]byte(r.body)) || r.status != http.StatusOK && r.status != http.StatusBadRequest {
			t.Fatalf("%q: %d %s", body, r.status, r.body)
		}
		if r.status == http.StatusOK && len(body) > 0 && !json.Valid(body) {
			t.Errorf("%q was accepted", body)
		}
	})
}
