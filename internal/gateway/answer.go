package gateway

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
)

// Appender is a document that many requests ask for: it writes its JSON without reflection.
type Appender interface {
	AppendJSON(b []byte) []byte
}

// WriteJSON answers with a JSON document.
func WriteJSON(w http.ResponseWriter, status int, document any) {
	body := bodies.Get().(*bytes.Buffer)
	body.Reset()
	if own, ok := document.(Appender); ok {
		body.Write(own.AppendJSON(body.AvailableBuffer()))
	} else if err := canonical.MarshalTo(body, document); err != nil {
		panic(err) // it is none
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client has left if that fails
	if body.Cap() <= maxPooled {
		bodies.Put(body)
	}
}

// bodies are buffers for answers, of at most maxPooled bytes.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxPooled = 64 << 10

// Marshal is the JSON of a document of ours.
func Marshal(document any) []byte {
	body, err := canonical.Marshal(document)
	if err != nil {
		panic(err) // it is none
	}
	return body
}

// failure is OpenWhisk's shape of an error.
type failure struct {
	Error string `json:"error"`
	Code  string `json:"code"` // the transaction id
}

// Fail answers with an error.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	status, message := Explain(w, r, err)
	Refuse(w, r, status, message)
}

// Explain finds how an error is answered: its kind decides the status, its message is for the client. A failure of ours
// goes to the log instead. What is to be said in headers is set. Where the request was given up as its client has gone there is no answer:
// who has closed its sending half alone sees that, and takes none for one.
func Explain(w http.ResponseWriter, r *http.Request, err error) (status int, message string) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	kind, message := forerun.KindOf(err), err.Error()
	if e, ok := errors.AsType[*forerun.Error](err); ok {
		message = e.Message
	}
	if kind == forerun.Internal {
		if p, ok := r.Context().Value(passKey{}).(*pass); ok {
			p.log.Error("a request failed", "request", r.Method+" "+r.URL.Path, "transaction", p.transaction, "early", p.early, "error", err)
		}
		message = "There was an internal server error."
	}
	if t, ok := errors.AsType[*throttled](err); ok {
		w.Header().Set("Retry-After", t.after)
	}
	return kind.HTTPStatus(), message
}

// Refuse answers with a status and a sentence.
func Refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	WriteJSON(w, status, failure{Error: message, Code: Transaction(r)})
}

// NotAllowed answers a method that a path does not have, with those that it has.
func NotAllowed(w http.ResponseWriter, r *http.Request, methods ...string) {
	allow, message := WrongMethod(methods)
	w.Header().Set("Allow", allow)
	Refuse(w, r, http.StatusMethodNotAllowed, message)
}

// WrongMethod is what the answer with status 405 says, in its header Allow and in words.
func WrongMethod(methods []string) (allow, message string) {
	allow = strings.Join(methods, ", ")
	return allow, "HTTP method not allowed, supported methods: " + allow
}
