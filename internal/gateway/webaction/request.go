package webaction

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// The parameters that tell an action about the request. A request cannot set them itself.
const (
	methodParameter  = "__ow_method"
	headersParameter = "__ow_headers"
	pathParameter    = "__ow_path"
	userParameter    = "__ow_user"
	queryParameter   = "__ow_query"
	bodyParameter    = "__ow_body"
)

// parameters are those of an invocation.
type parameters map[string]json.RawMessage

func (p parameters) set(name, value string) { p[name] = quote(value) }

// quote writes a string as JSON; what is not UTF-8 in it is replaced.
func quote(value string) json.RawMessage {
	quoted, _ := json.Marshal(value) // strings always marshal
	return quoted
}

// request is a request to a web action.
type request struct {
	*http.Request
	body []byte
	rest string // of the path
	user string // the namespace of who asks; empty if that is not known
}

// input makes the parameters of the invocation. An action with the annotation raw-http gets query and body as they are;
// others get what is in them as parameters, as long as that replaces nothing reserved or final. The error is forerun.Invalid.
func (r *request) input(action *forerun.Action) (json.RawMessage, error) {
	p := make(parameters)
	if isTrue(action, "raw-http") {
		p.set(queryParameter, r.URL.RawQuery)
		p.set(bodyParameter, "")
		if len(r.body) > 0 {
			p[bodyParameter] = r.opaque()
		}
	} else if err := r.unpack(p, action); err != nil {
		return nil, err
	}
	r.describe(p)
	input, err := json.Marshal(p)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "web action", "The request content was malformed:\n%w", err)
	}
	return canonical.Object(input)
}

// unpack adds what query and body hold; of one name in both, the body's counts.
func (r *request) unpack(p parameters, action *forerun.Action) error {
	if err := p.addPairs(r.URL.RawQuery); err != nil {
		return err
	}
	whole, err := r.unpackBody(p)
	if err != nil {
		return err
	}
	if name, found := p.refused(action); found {
		return forerun.Errorf(forerun.Invalid, name, "Request defines parameters that are not allowed (e.g., reserved properties).")
	}
	if whole != nil {
		p[bodyParameter] = whole
	}
	return nil
}

// unpackBody adds the members of a JSON object or the fields of a form; any other body is returned, as one value.
func (r *request) unpackBody(p parameters) (whole json.RawMessage, err error) {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // of none, or a wrong one, nothing is known
	switch {
	case len(r.body) == 0:
		return nil, nil
	case media == formMedia:
		return nil, p.addPairs(string(r.body))
	case !isJSON(media):
		return r.opaque(), nil
	}
	if !json.Valid(r.body) {
		return nil, forerun.Errorf(forerun.Invalid, "body", "The request content was malformed:\nThe content is not valid JSON.")
	}
	var members parameters
	if json.Unmarshal(r.body, &members) != nil || members == nil { // it is not an object
		return r.body, nil
	}
	maps.Copy(p, members)
	return nil, nil
}

// addPairs adds the pairs of a query or a form; of several with one name the last counts.
func (p parameters) addPairs(text string) error {
	for pair := range strings.SplitSeq(text, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return forerun.Errorf(forerun.Invalid, "query", "The request content was malformed:\n%w", err)
		}
		p.set(name, value)
	}
	return nil
}

// refused finds a parameter that requests must not set: a reserved one, or one to which a final action has given a value.
func (p parameters) refused(action *forerun.Action) (name string, found bool) {
	for _, name := range []string{methodParameter, headersParameter, pathParameter, userParameter, queryParameter, bodyParameter} {
		if _, ok := p[name]; ok {
			return name, true
		}
	}
	if !isTrue(action, "final") {
		return "", false
	}
	for i := range action.Parameters {
		kv := &action.Parameters[i]
		if _, ok := p[kv.Key]; ok && kv.IsSet() {
			return kv.Key, true
		}
	}
	return "", false
}

// opaque is the body as one string: in base64 if its type is binary, and, as it always was, if it is JSON.
func (r *request) opaque() json.RawMessage {
	if t, ok := parseMedia(r.Header.Get("Content-Type")); !ok || t.binary || t.name == jsonMedia {
		return quote(base64.StdEncoding.EncodeToString(r.body))
	}
	return quote(strings.ToValidUTF8(string(r.body), "\uFFFD"))
}

// describe adds what is to be known of the request itself.
func (r *request) describe(p parameters) {
	p.set(methodParameter, strings.ToLower(r.Method))
	p.set(pathParameter, r.rest)
	if r.user != "" {
		p.set(userParameter, r.user)
	}
	headers := make(map[string]string, len(r.Header)+1)
	if !holdsKey(r.Host) {
		headers["host"] = r.Host
	}
	for name, values := range r.Header {
		value := values[len(values)-1]
		if name == "Cookie" {
			if value = gateway.WithoutConsole(value); value == "" {
				continue
			}
		}
		if !r.isSecret(name, values) {
			headers[strings.ToLower(name)] = value
		}
	}
	p[headersParameter], _ = json.Marshal(headers) // strings always marshal
}

// isSecret reports whether the action must not see a header field: it would learn its caller's key, or the secret that opens its own door.
// Credentials for the action itself, such as a bearer token, are not secret.
func (r *request) isSecret(name string, values []string) bool {
	return name == secretHeader || name == "Authorization" && r.user != "" || slices.ContainsFunc(values, holdsKey)
}
