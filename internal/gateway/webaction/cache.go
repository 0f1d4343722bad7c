package webaction

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
)

// Answers of annotated actions to GET and HEAD tell a client's cache, and proxies, what they need: RFC 9110 and RFC 9211. They tell strangers
// no names of records.

// isConditional reports whether answers to a request have an entity tag, and say which way the action went.
func isConditional(r *http.Request, action *forerun.Action) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && annotation.CacheOf(action.Annotations).Kept
}

// mustExecute reports whether a request has credentials that do not count for the action's input: a known result may be another person's.
func (r *request) mustExecute(action *forerun.Action) bool {
	key := annotation.CacheOf(action.Annotations).Key
	counts := key == nil || key.Has("authorization")
	given := r.Header["Authorization"]
	if given != nil && r.isSecret("Authorization", given) { // the action is given the namespace in its place
		counts = r.user != "" && (key == nil || key.HasMember(userParameter))
	}
	return given != nil && !counts || r.Header["Cookie"] != nil && key != nil && !key.Has("cookie")
}

// tellCache says which way the action went, with the code of the reason.
func tellCache(h http.Header, record *forerun.Activation) {
	c := record.Cached
	if c == nil {
		return
	}
	status := "Forerun; "
	switch c.Outcome {
	case forerun.CacheHit:
		status += "hit"
		if c.Age > 0 {
			h.Set("Age", strconv.Itoa(int(c.Age.Seconds())))
		}
	case forerun.CacheMiss, forerun.CacheStale:
		status += "fwd=" + string(c.Outcome)
	default:
		status += "fwd=bypass"
	}
	if c.Outcome != forerun.CacheHit && c.Why != nil {
		status += "; detail=" + string(c.Why.Code)
	}
	h.Add("Cache-Status", status) // behind what the action says of caches before it
}

// tagged is an answer that is kept until its entity tag is known.
type tagged struct {
	http.ResponseWriter
	r      *http.Request
	status int
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (t *tagged) WriteHeader(status int) {
	if t.status == 0 {
		t.status = status
	}
}

// Write implements io.Writer.
func (t *tagged) Write(b []byte) (int, error) {
	t.WriteHeader(http.StatusOK)
	return t.body.Write(b)
}

// Unwrap is for http.ResponseController.
func (t *tagged) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// send sends the answer of an activation: 304 without a body if the client has it. Only a 200 has a tag, unless the action gives one.
func (t *tagged) send(record *forerun.Activation) {
	h := t.Header()
	tellCache(h, record)
	if t.status == http.StatusOK {
		if h.Get("Etag") == "" {
			h.Set("Etag", tagOf(h.Get("Content-Type"), t.body.Bytes()))
		}
		if matches(t.r.Header["If-None-Match"], h.Get("Etag")) {
			h.Del("Content-Type")
			t.ResponseWriter.WriteHeader(http.StatusNotModified)
			return
		}
	}
	t.ResponseWriter.WriteHeader(t.status)
	_, _ = t.ResponseWriter.Write(t.body.Bytes()) // the client may have left
}

// tagOf is a strong entity tag of a body and its type.
func tagOf(contentType string, body []byte) string {
	sum := sha256.New()
	sum.Write([]byte(contentType + "\n"))
	sum.Write(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:18]) + `"`
}

// matches compares the tags of an If-None-Match with one, weakly.
func matches(fields []string, tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	for part := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}
