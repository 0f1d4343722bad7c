package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// patience is how long Await waits: long, so that a busy machine fails no test.
const patience = 10 * time.Minute

// Client speaks OpenWhisk's REST API to one server.
type Client struct {
	URL, Auth string
	HTTP      *http.Client
}

// Client returns a client that keeps up to connections open.
func (s *Server) Client(connections int) *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true, TLSClientConfig: s.TLS()}
	return &Client{URL: s.URL, Auth: s.Auth, HTTP: &http.Client{Transport: transport}}
}

// Close closes the idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Record is an activation record, or the answer of a blocking invocation.
type Record struct {
	ActivationID string     `json:"activationId"`
	Name         string     `json:"name"`
	Cause        string     `json:"cause"`
	Start        int64      `json:"start"`
	End          int64      `json:"end"`
	Duration     int64      `json:"duration"`
	Logs         []string   `json:"logs"`
	Annotations  []KeyValue `json:"annotations"`
	Response     struct {
		Status  string          `json:"status"`
		Success bool            `json:"success"`
		Result  json.RawMessage `json:"result"`
	} `json:"response"`
}

// KeyValue is a parameter or an annotation.
type KeyValue struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Annotation returns the value under key, or nil.
func (r *Record) Annotation(key string) json.RawMessage {
	for _, a := range r.Annotations {
		if a.Key == key {
			return a.Value
		}
	}
	return nil
}

// Do sends one request to a path under the caller's own namespace, like "actions/hello", and returns status and body.
func (c *Client) Do(ctx context.Context, method, path string, body any) (int, []byte, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+"/api/v1/namespaces/_/"+path, content)
	if err != nil {
		return 0, nil, err
	}
	user, password, _ := strings.Cut(c.Auth, ":")
	req.SetBasicAuth(user, password)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// expect decodes the answer of a request that must end with one of the statuses.
func (c *Client) expect(ctx context.Context, method, path string, body, into any, statuses ...int) error {
	status, answer, err := c.Do(ctx, method, path, body)
	if err != nil {
		return err
	}
	for _, s := range statuses {
		if status == s {
			return json.Unmarshal(answer, into)
		}
	}
	return fmt.Errorf("%s %s answered %d: %s", method, path, status, answer)
}

// PutPython creates or updates a Python action.
func (c *Client) PutPython(ctx context.Context, name, code string) error {
	return c.Put(ctx, name, map[string]any{"exec": map[string]any{"kind": "python:3", "code": code}})
}

// Put creates or updates an action: its document as OpenWhisk's API takes it.
func (c *Client) Put(ctx context.Context, name string, action any) error {
	return c.expect(ctx, http.MethodPut, "actions/"+name+"?overwrite=true", action, new(any), http.StatusOK)
}

// Get fetches a document.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.expect(ctx, http.MethodGet, path, nil, into, http.StatusOK)
}

// PutSequence creates or updates a sequence of actions of the same namespace.
func (c *Client) PutSequence(ctx context.Context, name string, components ...string) error {
	qualified := make([]string, len(components))
	for i, component := range components {
		qualified[i] = "/_/" + component
	}
	body := map[string]any{"exec": map[string]any{"kind": "sequence", "components": qualified}}
	return c.expect(ctx, http.MethodPut, "actions/"+name+"?overwrite=true", body, new(any), http.StatusOK)
}

// Delete removes an action.
func (c *Client) Delete(ctx context.Context, name string) error {
	return c.expect(ctx, http.MethodDelete, "actions/"+name, nil, new(any), http.StatusOK)
}

// Invoke invokes an action and waits for its record, whether the action succeeded or failed. On a busy machine that can take longer
// than the server lets a client wait: Invoke then asks for the record.
func (c *Client) Invoke(ctx context.Context, name string, params any) (*Record, error) {
	r := new(Record)
	err := c.expect(ctx, http.MethodPost, "actions/"+name+"?blocking=true", params, r, http.StatusOK, http.StatusBadGateway, http.StatusAccepted)
	if err == nil && r.Response.Status == "" {
		return c.Await(ctx, r.ActivationID)
	}
	return r, err
}

// Result invokes an action that must succeed, and decodes its result. It waits as Invoke does.
func (c *Client) Result(ctx context.Context, name string, params, into any) error {
	var answer json.RawMessage
	if err := c.expect(ctx, http.MethodPost, "actions/"+name+"?blocking=true&result=true", params, &answer, http.StatusOK, http.StatusAccepted); err != nil {
		return err
	}
	return c.Awaited(ctx, answer, into)
}

// Awaited decodes the result that a client was answered, or waits for the activation that the answer tells instead: it must succeed.
func (c *Client) Awaited(ctx context.Context, answer json.RawMessage, into any) error {
	var accepted struct{ ActivationID string }
	if err := json.Unmarshal(answer, &accepted); err != nil || accepted.ActivationID == "" {
		return json.Unmarshal(answer, into)
	}
	r, err := c.Await(ctx, accepted.ActivationID)
	if err != nil {
		return err
	}
	if !r.Response.Success {
		return fmt.Errorf("%s ended with %s: %s", r.ActivationID, r.Response.Status, r.Response.Result)
	}
	return json.Unmarshal(r.Response.Result, into)
}

// Await waits for the record of an activation.
func (c *Client) Await(ctx context.Context, id string) (*Record, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		status, answer, err := c.Do(ctx, http.MethodGet, "activations/"+id, nil)
		if err != nil {
			return nil, err
		}
		if status == http.StatusOK {
			r := new(Record)
			return r, json.Unmarshal(answer, r)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("there is no record of %s", id)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Activation fetches a record.
func (c *Client) Activation(ctx context.Context, id string) (*Record, error) {
	r := new(Record)
	err := c.expect(ctx, http.MethodGet, "activations/"+id, nil, r, http.StatusOK)
	return r, err
}
