package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// recorded is a request that an unchanged client sent to OpenWhisk, and how that answers it.
type recorded struct {
	Method, Path, Query, Body string
	Status                    int
}

// TestRecordedRequests replays what clients send, in their order, and holds the answers to OpenWhisk's own description of
// its API: the npm client openwhisk, and wsk, whose requests were recorded between it and a server.
func TestRecordedRequests(t *testing.T) {
	t.Parallel()
	needNode(t)
	for _, client := range []string{"openwhisk-client", "wsk"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			replayAll(t, "testdata/"+client+"-requests.jsonl")
		})
	}
}

func replayAll(t *testing.T, name string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s, swagger := start(t, server.Options{}), readSwagger(t)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var r recorded
		decode(t, lines.Bytes(), &r)
		status, answer := replay(t, s, r)
		if status != r.Status {
			t.Errorf("%s %s?%s %s: %d %s, want %d", r.Method, r.Path, r.Query, r.Body, status, answer, r.Status)
		}
		if status >= 400 && !(status == http.StatusBadGateway && strings.Contains(r.Query, "result=true")) { // which is a function's result
			swagger.check(t, r.Path, map[string]any{"$ref": "#/definitions/ErrorMessage"}, answer)
		} else if schema := swagger.answer(r.Method, r.Path, status); schema != nil && !strings.Contains(r.Query, "result=true") {
			swagger.check(t, r.Method+" "+r.Path, schema, answer)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// replay makes a request as it was recorded, whatever its body, and checks the headers that every answer has.
func replay(t *testing.T, s *server.Server, r recorded) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), r.Method, s.URL+r.Path+"?"+r.Query, strings.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	uuid, key, _ := strings.Cut(s.Auth, ":")
	request.SetBasicAuth(uuid, key)
	request.Header.Set("X-Request-ID", "replayed")
	if r.Body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body := new(strings.Builder)
	if _, err := bufio.NewReader(answer.Body).WriteTo(body); err != nil {
		t.Fatal(err)
	}
	if id := answer.Header.Get("X-Request-ID"); id != "replayed" {
		t.Errorf("%s %s: the request id is %q", r.Method, r.Path, id)
	}
	return answer.StatusCode, []byte(body.String())
}

// swagger is OpenWhisk's description of its API.
type swagger struct {
	Paths       map[string]map[string]json.RawMessage
	Definitions map[string]map[string]any
}

func readSwagger(t *testing.T) *swagger {
	t.Helper()
	text, err := os.ReadFile("testdata/openwhisk-apiv1swagger.json")
	if err != nil {
		t.Fatal(err)
	}
	s := new(swagger)
	decode(t, text, s)
	return s
}

// answer finds the schema of an answer; nil if the description gives none.
func (s *swagger) answer(method, path string, status int) map[string]any {
	segments := strings.Split(strings.TrimPrefix(path, "/api/v1"), "/")
	for pattern, methods := range s.Paths {
		if !slices.EqualFunc(segments, strings.Split(pattern, "/"), fits) {
			continue
		}
		var operation struct {
			Responses map[string]struct{ Schema map[string]any }
		}
		if json.Unmarshal(methods[strings.ToLower(method)], &operation) == nil {
			return operation.Responses[fmt.Sprint(status)].Schema
		}
	}
	return nil
}

func fits(segment, pattern string) bool {
	return segment == pattern || segment != "" && strings.HasPrefix(pattern, "{")
}

func (s *swagger) check(t *testing.T, what string, schema map[string]any, answer []byte) {
	t.Helper()
	var v any
	decode(t, answer, &v)
	for _, wrong := range s.violations(schema, v, "") {
		t.Errorf("%s: %s in %s", what, wrong, answer)
	}
}

// violations lists where a value is not as a schema says.
func (s *swagger) violations(schema map[string]any, v any, at string) (list []string) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = s.Definitions[strings.TrimPrefix(ref, "#/definitions/")]
	}
	switch v := v.(type) {
	case map[string]any:
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				list = append(list, fmt.Sprintf("%s/%s is missing", at, name))
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		for name, member := range v {
			if schema, ok := properties[name].(map[string]any); ok {
				list = append(list, s.violations(schema, member, at+"/"+name)...)
			}
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, item := range v {
			list = append(list, s.violations(items, item, fmt.Sprint(at, "/", i))...)
		}
	}
	// A list has "binding": false for a package, against the description.
	if want, ok := schema["type"].(string); ok && want != typeOf(v) || schema["properties"] != nil && typeOf(v) != "object" && v != false {
		list = append(list, fmt.Sprintf("%s is of type %s", at, typeOf(v)))
	}
	return list
}

// typeOf is JSON's name of a value's type, as the description uses it.
func typeOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	}
	return "null"
}
