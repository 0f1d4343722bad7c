// Package openwhisk calls the API of OpenWhisk, as Forerun and OpenWhisk serve it.
//
//	client, err := openwhisk.New(openwhisk.Options{})
//	...
//	defer client.Close()
//	var price struct{ Amount int }
//	err = client.Invoke(ctx, "price", map[string]string{"flight": "UA1545"}, &price)
//
// It finds the API and the key as the command line does: in the environment, or in the settings of wsk. Its Transport is an http.RoundTripper that
// speaks HTTP/3 with early data where UDP gets through, else HTTP/2 or HTTP/1.1.
package openwhisk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswer is how long an answer may be, in bytes.
const maxAnswer = 64 << 20

// ErrNotFinished reports that an action runs for longer than the API waits, which is 60 s.
var ErrNotFinished = errors.New("the action still runs: its record will have the result")

// Error is an answer of the API that is an error: it refused the request, or the action failed (status 502).
type Error struct {
	Status       int    // of HTTP
	Message      string // the API's own sentence, or the action's error
	ActivationID string // of the action that failed; empty: none
}

// Error implements error.
func (e *Error) Error() string {
	if e.Status == http.StatusBadGateway {
		return fmt.Sprintf("the action failed: %s (activation %s)", e.Message, e.ActivationID)
	}
	return fmt.Sprintf("the API refused the request (%d): %s", e.Status, e.Message)
}

// Client calls the API in one namespace. Goroutines may share it.
type Client struct {
	// HTTP sends the requests. Its Transport is a *Transport unless the caller replaces it.
	HTTP *http.Client

	settings settings
	own      *Transport
}

// Options say how the API is called. Empty fields are looked up.
type Options struct {
	Host      string // as https://HOST:PORT
	Auth      string // as UUID:KEY
	Namespace string // default: the key's
	CA        string // certificate authorities to trust beside the system's, in PEM
}

// New returns a client. The error says which setting is missing.
func New(o Options) (*Client, error) {
	found, err := find(o)
	if err != nil {
		return nil, err
	}
	transport, err := NewTransport(found.ca)
	if err != nil {
		return nil, err
	}
	return &Client{HTTP: &http.Client{Transport: transport}, settings: found, own: transport}, nil
}

// Close ends the client's connections. It waits for the tickets of the next ones, 1 s at most.
func (c *Client) Close() { c.own.Close() }

// Invoke invokes an action by NAME, PACKAGE/NAME or /NAMESPACE/PACKAGE/NAME, and decodes its result into result. Errors are *Error,
// ErrNotFinished, or those of the connection.
func (c *Client) Invoke(ctx context.Context, name string, params, result any) error {
	return c.InvokeOnce(ctx, "", name, params, result)
}

// InvokeOnce is Invoke with an idempotency key. A repeated request with the same key attaches to the first instead of running the action again.
func (c *Client) InvokeOnce(ctx context.Context, key, name string, params, result any) error {
	if params == nil {
		params = struct{}{}
	}
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("the parameters are not JSON: %w", err)
	}
	r, err := c.Request(ctx, http.MethodPost, name, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return err
	}
	return decode(answer, text, result)
}

// Request makes a request of an action that waits for its result. The caller sends it with c.HTTP.
func (c *Client) Request(ctx context.Context, method, name string, body io.Reader) (*http.Request, error) {
	namespace, path := c.settings.namespace, name
	if rest, absolute := strings.CutPrefix(name, "/"); absolute {
		var ok bool
		if namespace, path, ok = strings.Cut(rest, "/"); !ok || namespace == "" || path == "" {
			return nil, fmt.Errorf("%q is not a name: write NAME, PACKAGE/NAME or /NAMESPACE/NAME", name)
		}
	}
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		parts = append(parts, url.PathEscape(part))
	}
	where := c.settings.host + "/api/v1/namespaces/" + url.PathEscape(namespace) + "/actions/" + strings.Join(parts, "/")
	r, err := http.NewRequestWithContext(ctx, method, where+"?blocking=true&result=true", body)
	if err != nil {
		return nil, err
	}
	user, password, _ := strings.Cut(c.settings.auth, ":")
	r.SetBasicAuth(user, password)
	return r, nil
}

// decode reads the answer to an invocation.
func decode(answer *http.Response, text []byte, result any) error {
	switch {
	case answer.StatusCode == http.StatusAccepted:
		return ErrNotFinished
	case answer.StatusCode >= http.StatusMultipleChoices:
		return failure(answer, text)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("the result cannot be read: %w", err)
	}
	return nil
}

func failure(answer *http.Response, text []byte) error {
	var document struct{ Error any }
	_ = json.Unmarshal(text, &document) // a proxy's page has no sentence that helps
	message, ok := document.Error.(string)
	if !ok && document.Error != nil {
		said, _ := json.Marshal(document.Error) // it was JSON
		message = string(said)
	}
	return &Error{Status: answer.StatusCode, Message: message, ActivationID: answer.Header.Get("X-Openwhisk-Activation-Id")}
}
