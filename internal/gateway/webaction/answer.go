package webaction

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// extension is the end of an action's name in a path: it says how the result is answered.
type extension struct {
	name   string
	answer func(p *page, result json.RawMessage) error
}

func extensions() []extension {
	return []extension{{".http", answerHTTP}, {".json", answerJSON}, {".html", answerHTML}, {".svg", answerSVG}, {".text", answerText}}
}

// splitExtension takes the extension off a name; one without has ".http".
func splitExtension(name string) (string, extension) {
	known := extensions()
	for _, e := range known {
		if base, ok := strings.CutSuffix(name, e.name); ok {
			return base, e
		}
	}
	return name, known[0]
}

func missingProperty() error {
	return forerun.Errorf(forerun.NotFound, "", "Response does not include requested property.")
}

func notValid(media string) error {
	return forerun.Errorf(forerun.Invalid, "", "Response is not valid '%s'.", media)
}

// projection is the member "body" of a result, else the one of this name; of what is no object, the whole.
func projection(result json.RawMessage, name string) json.RawMessage {
	if !isObject(result) {
		return result
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(result, &members) // it is an object
	if body, ok := members["body"]; ok {
		return body
	}
	return members[name]
}

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }

// text is the string that a JSON value is.
func text(value json.RawMessage) (s string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(value, &s) == nil
}

func answerHTML(p *page, result json.RawMessage) error {
	html, ok := text(projection(result, "html"))
	if !ok {
		return notValid(htmlMedia)
	}
	return p.send(http.StatusOK, "text/html; charset=UTF-8", []byte(html))
}

func answerSVG(p *page, result json.RawMessage) error {
	svg, ok := text(projection(result, "svg"))
	if !ok {
		return notValid("image/svg+xml")
	}
	return p.send(http.StatusOK, "image/svg+xml", []byte(svg))
}

func answerText(p *page, result json.RawMessage) error {
	value := projection(result, "text")
	if value == nil {
		return missingProperty()
	}
	body := pretty(value)
	if s, ok := text(value); ok {
		body = []byte(s)
	}
	return p.send(http.StatusOK, "text/plain; charset=UTF-8", body)
}

func answerJSON(p *page, result json.RawMessage) error {
	if !isObject(result) && (len(result) == 0 || result[0] != '[') {
		return notValid(jsonMedia)
	}
	return p.send(http.StatusOK, jsonMedia, pretty(result))
}

// response is a result that says itself how it is to be answered.
type response struct {
	Headers      map[string]json.RawMessage
	Status, Body json.RawMessage
}

func responseOf(result json.RawMessage) (r response, ok bool) {
	var members map[string]json.RawMessage // a struct would take members in other letters, too
	if !isObject(result) || json.Unmarshal(result, &members) != nil {
		return r, false
	}
	r.Status, r.Body = members["statusCode"], members["body"]
	headers, given := members["headers"]
	return r, !given || json.Unmarshal(headers, &r.Headers) == nil
}

func answerHTTP(p *page, result json.RawMessage) error {
	const media = "message/http"
	r, ok := responseOf(result)
	if !ok {
		return notValid(media)
	}
	contentType, headers, ok := r.headers()
	status, valid := r.status()
	if !ok || !valid {
		return notValid(media)
	}
	if r.isEmpty() {
		addHeaders(p.Header(), headers)
		if status == 0 {
			status = http.StatusNoContent
		}
		p.WriteHeader(status)
		return nil
	}
	header, body, err := r.content(contentType)
	if err != nil {
		return err
	}
	if status == 0 {
		status = http.StatusOK
	}
	return p.send(status, header, body, headers...)
}

// isEmpty reports whether the body is null, an empty string or not there.
func (r *response) isEmpty() bool {
	return r.Body == nil || string(r.Body) == "null" || string(r.Body) == `""`
}

// status reads the status code: a number or its digits. 0 if it is not given; ok is false if it is none that HTTP can end with.
func (r *response) status() (code int, ok bool) {
	if r.Status == nil {
		return 0, true
	}
	digits := string(r.Status)
	if s, ok := text(r.Status); ok {
		digits = s
	} else if f, err := strconv.ParseFloat(digits, 64); err == nil && f == float64(int(f)) { // 2e2 and 200.0 are whole
		digits = strconv.Itoa(int(f))
	}
	code, err := strconv.Atoi(digits)
	return code, err == nil && code >= 200 && code <= 599
}

// field is one line of a response's head.
type field struct{ name, value string }

// headers reads the header fields, Content-Type apart; one with an array has a line for each of its items.
func (r *response) headers() (contentType *string, fields []field, ok bool) {
	for name, value := range r.Headers {
		lines, ok := lines(value)
		if !ok {
			return nil, nil, false
		}
		for _, line := range lines {
			if !strings.EqualFold(name, "Content-Type") {
				fields = append(fields, field{name, line})
			} else if contentType == nil {
				contentType = &line
			}
		}
	}
	return contentType, fields, true
}

// lines are the values of a header field: strings, numbers, booleans and arrays of them.
func lines(value json.RawMessage) ([]string, bool) {
	if s, ok := text(value); ok {
		return []string{s}, true
	}
	var items []json.RawMessage
	switch {
	case len(value) == 0 || value[0] == '{' || value[0] == 'n':
		return nil, false
	case value[0] != '[':
		return []string{string(value)}, true
	case json.Unmarshal(value, &items) != nil:
		return nil, false
	}
	var all []string
	for _, item := range items {
		more, ok := lines(item)
		if !ok {
			return nil, false
		}
		all = append(all, more...)
	}
	return all, true
}

// addHeaders adds header fields, but for those that an action may not set.
func addHeaders(h http.Header, fields []field) {
	for _, f := range fields {
		if !isReserved(http.CanonicalHeaderKey(f.name)) {
			h.Add(f.name, inOneLine(f.value))
		}
	}
}

// inOneLine is a header's value with spaces for control characters. A client of HTTP/3 refuses an answer with them, and HTTP/2 leaves the field out.
func inOneLine(value string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, value))
}

// content is the body as it is sent, with its Content-Type: a string as text or, for a binary type, decoded; other values
// as JSON.
func (r *response) content(contentType *string) (header string, body []byte, err error) {
	s, isText := text(r.Body)
	m := media{name: jsonMedia, header: jsonMedia}
	if isText {
		m, _ = parseMedia(htmlMedia)
	}
	if contentType != nil {
		var ok bool
		if m, ok = parseMedia(*contentType); !ok && isText {
			return "", nil, forerun.Errorf(forerun.Invalid, "", "Response did not specify a known content-type.")
		}
	}
	mismatch := forerun.Errorf(forerun.Invalid, "", "Response type in header did not match generated content type.")
	switch {
	case !isText && !isJSON(m.name):
		return "", nil, mismatch
	case !isText:
		name, _, _ := strings.Cut(m.header, ";")
		return name, pretty(r.Body), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(s)
	switch isBase64 := err == nil; {
	case m.binary && !isBase64:
		return "", nil, mismatch
	case m.binary, isJSON(m.name) && isBase64:
		return m.header, decoded, nil
	}
	return m.header, []byte(s), nil
}
