package webaction

import (
	"mime"
	"strings"
	"sync"
)

const (
	jsonMedia = "application/json"
	formMedia = "application/x-www-form-urlencoded"
	htmlMedia = "text/html"
)

// charset says what a media type is made of.
type charset int

const (
	noCharset    charset = iota // bytes: base64 in parameters and results
	fixedCharset                // text, always UTF-8: its header names no charset
	openCharset                 // text in a charset that its header names
)

// family lists the subtypes that a main type has with one charset.
type family struct {
	main     string
	charset  charset
	subtypes string // separated by white space, in lower case
}

// families is the one table that tells text from bytes, of requests and of responses. It holds the types that Apache Pekko HTTP 1.1
// registers (its MediaTypes), which OpenWhisk goes by. A type that is not here is text if a charset is named with it, else bytes;
// every multipart type is bytes, as its parts may be.
func families() []family {
	return []family{
		{"application", openCharset, `
			atom+xml base64 javascript problem+xml rss+xml soap+xml vnd.google-earth.kml+xml x-latex x-vrml xhtml+xml xml xml-dtd`},
		{"application", fixedCharset, `
			json json-patch+json merge-patch+json problem+json vnd.api+json x-www-form-urlencoded`},
		{"application", noCharset, `
			cbor gnutar grpc+proto java-archive lha lzx msword octet-stream pdf postscript zip
			vnd.google-earth.kmz vnd.ms-excel vnd.ms-excel.addin.macroenabled.12 vnd.ms-excel.sheet.binary.macroenabled.12
			vnd.ms-excel.sheet.macroenabled.12 vnd.ms-excel.template.macroenabled.12 vnd.ms-fontobject vnd.ms-powerpoint
			vnd.ms-powerpoint.addin.macroenabled.12 vnd.ms-powerpoint.presentation.macroenabled.12
			vnd.ms-powerpoint.slideshow.macroenabled.12 vnd.ms-word.document.macroenabled.12 vnd.ms-word.template.macroenabled.12
			vnd.oasis.opendocument.chart vnd.oasis.opendocument.database vnd.oasis.opendocument.formula vnd.oasis.opendocument.graphics
			vnd.oasis.opendocument.image vnd.oasis.opendocument.presentation vnd.oasis.opendocument.spreadsheet
			vnd.oasis.opendocument.text vnd.oasis.opendocument.text-master vnd.oasis.opendocument.text-web
			vnd.openxmlformats-officedocument.presentationml.presentation vnd.openxmlformats-officedocument.presentationml.slide
			vnd.openxmlformats-officedocument.presentationml.slideshow vnd.openxmlformats-officedocument.presentationml.template
			vnd.openxmlformats-officedocument.spreadsheetml.sheet vnd.openxmlformats-officedocument.spreadsheetml.template
			vnd.openxmlformats-officedocument.wordprocessingml.document vnd.openxmlformats-officedocument.wordprocessingml.template
			x-7z-compressed x-ace-compressed x-apple-diskimage x-arc-compressed x-bzip x-bzip2 x-chrome-extension x-compress
			x-compressed x-debian-package x-dvi x-font-opentype x-font-truetype x-gtar x-gzip x-rar-compressed
			x-redhat-package-manager x-shockwave-flash x-tar x-tex x-texinfo x-x509-ca-cert x-xpinstall`},
		{"audio", noCharset, `
			aiff basic midi mod mpeg ogg voc vorbis voxware wav webm x-pn-realaudio x-psid xm`},
		{"font", noCharset, `woff woff2`},
		{"image", noCharset, `
			gif jpeg pict png svg+xml tiff webp x-icon x-ms-bmp x-pcx x-pict x-quicktime x-rgb x-xbitmap x-xpixmap`},
		{"message", noCharset, `delivery-status http rfc822`},
		{"text", openCharset, `
			asp cache-manifest calendar css csv html markdown mcf plain richtext tab-separated-values uri-list vnd.wap.wml
			vnd.wap.wmlscript x-asm x-c x-component x-h x-java-source x-pascal x-script x-scriptcsh x-scriptelisp x-scriptksh
			x-scriptlisp x-scriptperl x-scriptperl-module x-scriptphyton x-scriptrexx x-scriptscheme x-scriptsh x-scripttcl
			x-scripttcsh x-scriptzsh x-server-parsed-html x-setext x-sgml x-speech x-uuencode x-vcalendar x-vcard xml`},
		{"text", fixedCharset, `event-stream`},
		{"video", noCharset, `
			avs-video divx gl mp4 mpeg ogg quicktime webm x-dv x-flv x-motion-jpeg x-ms-asf x-msvideo x-sgi-movie`},
	}
}

// registered finds the charset of a registered type by its name.
var registered = sync.OnceValue(func() map[string]charset {
	all := make(map[string]charset)
	for _, r := range families() {
		for sub := range strings.FieldsSeq(r.subtypes) {
			all[r.main+"/"+sub] = r.charset
		}
	}
	return all
})

// charsetOf tells what a type is made of; named: its header names a charset.
func charsetOf(name string, named bool) charset {
	known, ok := registered()[name]
	switch {
	case ok:
		return known
	case named && !strings.HasPrefix(name, "multipart/"):
		return openCharset
	}
	return noCharset
}

// media is a media type. Bodies of binary types are written as base64 in parameters and results.
type media struct {
	name   string // "text/html"
	binary bool
	header string // as Content-Type
}

// isJSON reports whether a media type is JSON or made of it.
func isJSON(name string) bool { return name == jsonMedia || strings.HasSuffix(name, "+json") }

// parseMedia reads a Content-Type; ok is false if it is not a valid one.
func parseMedia(header string) (m media, ok bool) {
	name, params, err := mime.ParseMediaType(header)
	main, sub, slash := strings.Cut(name, "/")
	if err != nil || !slash || main == "" || sub == "" {
		return media{}, false
	}
	_, named := params["charset"]
	delete(params, "charset")
	charset := charsetOf(name, named)
	m = media{name: name, binary: charset == noCharset, header: mime.FormatMediaType(name, params)}
	if charset == openCharset {
		m.header += "; charset=UTF-8"
	}
	return m, true
}
