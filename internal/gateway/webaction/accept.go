package webaction

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// notAcceptable is an answer of a type that the client's header Accept does not allow.
type notAcceptable struct{ media string }

func (e *notAcceptable) Error() string {
	return "Resource representation is only available with these types:\n" + e.media
}

// page is where an answer is written, for a client who may not accept every type.
type page struct {
	http.ResponseWriter
	accept []string // the header fields
}

// send writes an answer with more header fields. Only one that says that all went well depends on what the client accepts.
func (p *page) send(status int, contentType string, body []byte, more ...field) error {
	name, _, _ := strings.Cut(contentType, ";")
	if status < 400 && !accepts(p.accept, name) {
		return &notAcceptable{contentType}
	}
	addHeaders(p.Header(), more)
	write(p, status, contentType, body)
	return nil
}

// mediaRange is one that a client accepts.
type mediaRange struct {
	name    string // "text/html", "text/*" or "*/*"
	quality float64
	params  int
}

// generality is 0 for a range of one type and grows with what it includes.
func (m mediaRange) generality() int { return strings.Count(m.name, "*") }

func (m mediaRange) matches(media string) bool {
	main, _, _ := strings.Cut(m.name, "/")
	return m.name == media || m.name == "*/*" || m.name == main+"/*" && strings.HasPrefix(media, main+"/")
}

// accepts reports whether a client accepts a media type: the most special of its ranges that match decides. No header, or one
// that cannot be read, accepts everything.
func accepts(fields []string, media string) bool {
	var ranges []mediaRange
	for part := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		m, ok := parseRange(part)
		if !ok {
			return true
		}
		ranges = append(ranges, m)
	}
	slices.SortStableFunc(ranges, func(a, b mediaRange) int {
		return cmp.Or(cmp.Compare(a.generality(), b.generality()), cmp.Compare(b.params, a.params), cmp.Compare(b.quality, a.quality))
	})
	i := slices.IndexFunc(ranges, func(m mediaRange) bool { return m.matches(media) })
	return len(ranges) == 0 || i >= 0 && ranges[i].quality > 0
}

func parseRange(text string) (mediaRange, bool) {
	name, params, err := mime.ParseMediaType(text)
	if name == "*" { // as some old clients write it
		name = "*/*"
	}
	if err != nil || strings.Count(name, "/") != 1 {
		return mediaRange{}, false
	}
	m := mediaRange{name: name, quality: 1, params: len(params)}
	if q, ok := params["q"]; ok {
		m.params--
		m.quality, err = strconv.ParseFloat(q, 64)
	}
	return m, err == nil
}
