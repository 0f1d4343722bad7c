package whisk

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// notThere is what OpenWhisk says of an entity that does not exist, whatever it is.
const notThere = "The requested resource does not exist."

// Error is an answer that refuses a request.
type Error struct {
	Status      int    // HTTP status
	Message     string // what the server said, in one sentence
	Transaction string // under which the server logged the request; may be empty
	Method      string // of the request
	URL         string // that was asked
	Path        string // the part of URL below the API's root, without the query
}

func (e *Error) Error() string {
	message := fmt.Sprintf("%s (HTTP %d, %s %s)", e.said(), e.Status, e.Method, e.URL)
	if e.Transaction != "" {
		message = strings.TrimSuffix(message, ")") + ", request id " + e.Transaction + ")"
	}
	return message
}

// said is the message, with the name of what is missing where the server does not tell it.
func (e *Error) said() string {
	switch what, name := e.Missing(); what {
	case "":
		return e.Message
	case "activation": // the server says the same of one that runs
		return "there is no record of an activation " + name
	default:
		return "there is no " + what + " " + name
	}
}

// Missing tells what an answer 404 is about, as a person names it: "action" and "hello" or "/other/hello". Both are empty
// for other answers and where the server's message says more.
func (e *Error) Missing() (what, name string) {
	if e.Status != http.StatusNotFound || e.Message != notThere {
		return "", ""
	}
	parts := strings.Split(e.Path, "/") // namespaces/NAMESPACE/COLLECTION/NAME...
	if len(parts) < 4 || parts[0] != "namespaces" {
		return "", ""
	}
	for i := range parts {
		if plain, err := url.PathUnescape(parts[i]); err == nil {
			parts[i] = plain
		}
	}
	collection, names := parts[2], parts[3:]
	switch {
	case collection == Activations:
		return "activation", names[0]
	case collection == Actions && len(names) == 2 && (names[1] == "" || e.Method == http.MethodPut):
		collection, names = Packages, names[:1] // a list of its actions, or a new one in it
	}
	name = strings.Join(names, "/")
	if parts[1] != "_" {
		name = "/" + parts[1] + "/" + name
	}
	return strings.TrimSuffix(collection, "s"), name
}

// IsStatus reports whether err is an answer with this HTTP status.
func IsStatus(err error, status int) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Status == status
}

// refusal reads the server's error document; an answer of something else (a proxy) is told by its status.
func (c *Client) refusal(a *Answer, method, path string) *Error {
	e := &Error{Status: a.Status, Method: method, URL: c.base + c.root + path, Path: path}
	var document struct {
		Error string          `json:"error"`
		Code  json.RawMessage `json:"code"` // a string, or a number in old versions
	}
	if json.Unmarshal(a.Body, &document) == nil {
		e.Message, e.Transaction = document.Error, strings.Trim(string(document.Code), `"`)
	}
	if e.Message == "" {
		e.Message = fmt.Sprintf("The server answered %q, and not as OpenWhisk does: is this the address of the API?", http.StatusText(a.Status))
	}
	return e
}
