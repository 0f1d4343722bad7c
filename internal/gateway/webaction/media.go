package webaction

import (
	"mime"
	"strings"
)

const (
	jsonMedia = "application/json"
	formMedia = "application/x-www-form-urlencoded"
	htmlMedia = "text/html"
)

// media is a media type. Bodies of binary types are written as base64 in parameters and results.
type media struct {
	name   string // "text/html"
	binary bool
	header string // as Content-Type
}

// isJSON reports whether a media type is JSON or made of it.
func isJSON(name string) bool { return name == jsonMedia || strings.HasSuffix(name, "+json") }

// Which types are text is Pekko HTTP's knowledge, which OpenWhisk goes by: those it does not know are binary, unless a
// charset is named. Of the text types, JSON and its kin are always UTF-8 and their header names no charset.
const (
	applicationText = " atom+xml base64 javascript rss+xml soap+xml vnd.google-earth.kml+xml x-latex x-vrml xhtml+xml xml-dtd xml problem+xml "
	applicationUTF8 = " json json-patch+json merge-patch+json problem+json vnd.api+json x-www-form-urlencoded "
	textText        = " asp cache-manifest calendar css csv html markdown mcf plain richtext tab-separated-values uri-list vnd.wap.wml " +
		"vnd.wap.wmlscript x-asm x-c x-component x-h x-java-source x-pascal x-script x-scriptcsh x-scriptelisp x-scriptksh x-scriptlisp " +
		"x-scriptperl x-scriptperl-module x-scriptphyton x-scriptrexx x-scriptscheme x-scriptsh x-scripttcl x-scripttcsh x-scriptzsh " +
		"x-server-parsed-html x-setext x-sgml x-speech x-uuencode x-vcalendar x-vcard xml "
	textUTF8 = " event-stream "
)

// parseMedia reads a Content-Type; ok is false if it is none.
func parseMedia(header string) (m media, ok bool) {
	name, params, err := mime.ParseMediaType(header)
	main, sub, slash := strings.Cut(name, "/")
	if err != nil || !slash || main == "" || sub == "" {
		return media{}, false
	}
	_, hasCharset := params["charset"]
	delete(params, "charset")
	var text, utf8 bool
	switch main {
	case "application":
		text, utf8 = contains(applicationText, sub), contains(applicationUTF8, sub)
	case "text":
		text, utf8 = contains(textText, sub), contains(textUTF8, sub)
	case "multipart":
		text = true
	}
	known := text || utf8 || isKnownBinary(main, sub)
	text = text || !known && hasCharset
	m = media{name: name, binary: !text && !utf8, header: mime.FormatMediaType(name, params)}
	if text {
		m.header += "; charset=UTF-8"
	}
	return m, true
}

func contains(list, name string) bool { return strings.Contains(list, " "+name+" ") }

// isKnownBinary reports whether a type stays binary even if a charset is named with it.
func isKnownBinary(main, sub string) bool {
	switch main {
	case "audio", "font", "image", "message", "video":
		return true
	}
	return main == "application" && contains(" octet-stream pdf zip cbor msword postscript ", sub)
}
