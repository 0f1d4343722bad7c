package whisk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// The collections of a namespace.
const (
	Actions     = "actions"
	Activations = "activations"
	Packages    = "packages"
	Triggers    = "triggers"
	Rules       = "rules"
)

// Collection is the path of a collection of a namespace; pkg narrows actions down to those of a package.
func Collection(namespace, collection, pkg string) string {
	path := "namespaces/" + url.PathEscape(namespace) + "/" + collection
	if pkg != "" {
		path += "/" + url.PathEscape(pkg) + "/"
	}
	return path
}

// Path is the path of one entity.
func Path(collection string, name forerun.Name) string {
	path := Collection(name.Namespace, collection, "") + "/"
	if name.Package != "" {
		path += url.PathEscape(name.Package) + "/"
	}
	return path + url.PathEscape(name.Entity)
}

// List reads a list of documents.
func List[T any](ctx context.Context, c *Client, path string, query url.Values) ([]Document[T], error) {
	return fetch[[]Document[T]](ctx, c, http.MethodGet, path, query, nil)
}

// Get reads one document.
func Get[T any](ctx context.Context, c *Client, path string, query url.Values) (Document[T], error) {
	return fetch[Document[T]](ctx, c, http.MethodGet, path, query, nil)
}

// Put creates an entity or, with overwrite, updates it, and returns it as it is then.
func Put[T any](ctx context.Context, c *Client, path string, body any, overwrite bool) (Document[T], error) {
	query := url.Values{"overwrite": {strconv.FormatBool(overwrite)}}
	return fetch[Document[T]](ctx, c, http.MethodPut, path, query, body)
}

// fetch decodes the answer of a request.
func fetch[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (content T, err error) {
	answer, err := c.call(ctx, method, path, query, body)
	if err != nil {
		return content, err
	}
	if err := json.Unmarshal(answer.Body, &content); err != nil {
		return content, &Error{
			Status: answer.Status, Method: method, URL: c.base + c.root + path, Path: path,
			Message: fmt.Sprintf("The answer is not OpenWhisk's (%v): is this the address of the API?", err),
		}
	}
	return content, nil
}

// WebOrigin returns the URL of the server of a namespace's web actions: the API's, unless it says that they have one of their own.
func WebOrigin(ctx context.Context, c *Client, namespace string) (string, error) {
	info, err := fetch[struct {
		URL string `json:"web_url"`
	}](ctx, c, http.MethodGet, "", nil, nil)
	if _, refused := errors.AsType[*Error](err); refused || err == nil && info.URL == "" {
		return c.base, nil
	}
	if err != nil {
		return "", err
	}
	return strings.Replace(info.URL, "TENANT", strings.ToLower(url.PathEscape(namespace)), 1), nil
}

// Delete deletes an entity; force deletes a package with its actions.
func (c *Client) Delete(ctx context.Context, path string, force bool) error {
	var query url.Values
	if force {
		query = url.Values{"force": {"true"}}
	}
	_, err := c.call(ctx, http.MethodDelete, path, query, nil)
	return err
}

// SetRule makes a rule active or inactive.
func (c *Client) SetRule(ctx context.Context, path string, active bool) error {
	status := map[bool]string{true: "active", false: "inactive"}[active]
	_, err := c.call(ctx, http.MethodPost, path, nil, map[string]string{"status": status})
	return err
}

// Fire fires a trigger, and returns the id of its activation, which is empty if no rule is active.
func (c *Client) Fire(ctx context.Context, path string, event json.RawMessage) (string, error) {
	answer, err := c.call(ctx, http.MethodPost, path, nil, event)
	if err != nil || len(answer.Body) == 0 {
		return "", err
	}
	var fired struct {
		ActivationID string `json:"activationId"`
	}
	if err := json.Unmarshal(answer.Body, &fired); err != nil {
		return "", c.refusal(answer, http.MethodPost, path)
	}
	return fired.ActivationID, nil
}

// Terms are how the caller of an action wants to be answered.
type Terms struct {
	Blocking  bool          // at the end
	Result    bool          // with nothing but the result
	Wait      time.Duration // until this has passed; 0: as long as the server waits
	Speculate *string       // running ahead as this says; nil: as the action and the server say
}

// Outcome is how an invocation went.
type Outcome struct {
	Activation string          // its id
	Over       bool            // it has ended: Body is its record, or its result
	Failed     bool            // it ended with an error
	Workflow   bool            // its record, if that is what the server answered, says that it ran others
	Ahead      string          // how many of its functions ran ahead; empty: the server does not say
	Ignored    string          // what of Terms.Speculate is not in effect, and why; empty: nothing
	Body       json.RawMessage // the server's answer
}

// Invoke invokes an action. Its own failure is no error but in the outcome.
func (c *Client) Invoke(ctx context.Context, path string, input json.RawMessage, terms Terms) (*Outcome, error) {
	query := url.Values{"blocking": {strconv.FormatBool(terms.Blocking)}, "result": {strconv.FormatBool(terms.Result)}}
	if terms.Wait > 0 {
		query.Set("timeout", strconv.FormatInt(terms.Wait.Milliseconds(), 10))
	}
	var headers []header
	if terms.Speculate != nil {
		headers = []header{{"X-Forerun-Speculate", *terms.Speculate}}
	}
	answer, err := c.send(ctx, http.MethodPost, path, query, input, headers...)
	if err != nil {
		return nil, err
	}
	var record struct {
		ActivationID string             `json:"activationId"`
		Response     *Response          `json:"response"`
		Annotations  []forerun.KeyValue `json:"annotations"`
	}
	_ = json.Unmarshal(answer.Body, &record) // a result may be anything
	outcome := &Outcome{Activation: answer.Activation, Ahead: answer.Ahead, Ignored: answer.Ignored, Body: answer.Body}
	if outcome.Activation == "" && !terms.Result {
		outcome.Activation = record.ActivationID
	}
	switch failed := answer.Status == http.StatusBadGateway; {
	case !json.Valid(answer.Body): // not OpenWhisk's
	case answer.Status == http.StatusAccepted:
		if outcome.Activation == "" {
			outcome.Activation = record.ActivationID
		}
		return outcome, nil
	case answer.Status == http.StatusOK, failed && outcome.Activation != "":
		outcome.Workflow = !terms.Result && string(forerun.Lookup(record.Annotations, "kind")) == `"sequence"`
		outcome.Over, outcome.Failed = true, failed || !terms.Result && record.Response != nil && !record.Response.Success
		return outcome, nil
	}
	return nil, c.refusal(answer, http.MethodPost, path)
}
