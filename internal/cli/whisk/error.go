package whisk

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Error is an answer that refuses a request.
type Error struct {
	Status      int    // HTTP status
	Message     string // what the server said, in one sentence
	Transaction string // under which the server logged the request; may be empty
	Request     string // "PUT http://..."
}

func (e *Error) Error() string {
	message := fmt.Sprintf("%s (HTTP %d, %s)", e.Message, e.Status, e.Request)
	if e.Transaction != "" {
		message = strings.TrimSuffix(message, ")") + ", request id " + e.Transaction + ")"
	}
	return message
}

// IsStatus reports whether err is an answer with this HTTP status.
func IsStatus(err error, status int) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Status == status
}

// refusal reads the server's error document; an answer of something else (a proxy) is told by its status.
func (a *Answer) refusal(method, url string) *Error {
	e := &Error{Status: a.Status, Request: method + " " + url}
	var document struct {
		Error string          `json:"error"`
		Code  json.RawMessage `json:"code"` // a string, or a number in old versions
	}
	if json.Unmarshal(a.Body, &document) == nil {
		e.Message, e.Transaction = document.Error, strings.Trim(string(document.Code), `"`)
	}
	if e.Message == "" {
		e.Message = "The server answered " + http.StatusText(a.Status)
	}
	return e
}
