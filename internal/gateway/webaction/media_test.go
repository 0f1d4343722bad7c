package webaction

import (
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMedia: what a body is made of, for types of every kind.
func TestMedia(t *testing.T) {
	for _, c := range []struct {
		charset charset
		types   string
	}{
		{openCharset, `text/plain text/html text/css text/csv text/markdown text/xml text/calendar text/x-c text/vnd.wap.wml
			application/javascript application/xml application/xhtml+xml application/atom+xml application/problem+xml
			application/soap+xml application/vnd.google-earth.kml+xml`},
		{fixedCharset, `application/json application/problem+json application/vnd.api+json application/merge-patch+json
			application/x-www-form-urlencoded text/event-stream`},
		{noCharset, `multipart/form-data multipart/mixed multipart/alternative multipart/related multipart/signed multipart/encrypted
			multipart/byteranges multipart/unheard application/octet-stream application/pdf application/zip application/cbor
			application/postscript application/msword application/grpc+proto application/vnd.ms-excel
			application/vnd.openxmlformats-officedocument.spreadsheetml.sheet application/vnd.oasis.opendocument.text
			application/x-tar application/x-gzip image/png image/jpeg image/gif image/webp image/svg+xml image/tiff audio/mpeg audio/ogg
			audio/wav video/mp4 video/webm font/woff font/woff2 message/rfc822 message/http`},
		// Not registered, so bytes unless a charset is named: also of the text types and what is made of JSON or XML.
		{noCharset, `application/unheard application/gzip application/hal+json application/ld+json application/mathml+xml
			application/graphql application/x-yaml application/vnd.unheard.v1 text/unheard text/javascript text/yaml image/avif
			image/vnd.unheard audio/flac video/unheard font/ttf model/stl chemical/x-pdb`},
	} {
		for name := range strings.FieldsSeq(c.types) {
			if got := charsetOf(name, false); got != c.charset {
				t.Errorf("%s has the charset %d, want %d", name, got, c.charset)
			}
			want := c.charset
			if _, known := registered()[name]; !known && !strings.HasPrefix(name, "multipart/") {
				want = openCharset
			}
			if got := charsetOf(name, true); got != want {
				t.Errorf("%s with a named charset has the charset %d, want %d", name, got, want)
			}
		}
	}
	for _, name := range []string{"Application/PDF", "IMAGE/PNG", "application/vnd.ms-excel.sheet.macroEnabled.12", "Multipart/Form-Data; boundary=b"} {
		if m, ok := parseMedia(name + "; charset=utf-8"); !ok || !m.binary || strings.Contains(m.header, "charset") {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestEveryMedia sends bytes and text of every registered type, and of others, both ways.
func TestEveryMedia(t *testing.T) {
	const bytes = "--b\r\n\x89PNG\x00\xff\xfe\x80"
	types := []string{"multipart/form-data; boundary=b", "multipart/mixed; boundary=b", "multipart/unheard", "application/unheard", "text/unheard", "model/stl", "application/unheard; charset=utf-8"}
	for name := range registered() {
		types = append(types, name)
	}
	for _, contentType := range types {
		m, ok := parseMedia(contentType)
		if !ok {
			t.Fatalf("%s is not a media type", contentType)
		}
		content, written := bytes, base64.StdEncoding.EncodeToString([]byte(bytes))
		if !m.binary {
			content, written = "<é>", "<é>"
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		r.Header.Set("Content-Type", contentType)
		got, _ := text((&request{Request: r, body: []byte(content)}).opaque())
		if isEncoded := m.name == jsonMedia; !isEncoded && got != written || isEncoded && got != base64.StdEncoding.EncodeToString([]byte(content)) {
			t.Errorf("a request of %s comes in as %q, want %q", contentType, got, written)
		}
		result, err := json.Marshal(map[string]any{"headers": map[string]string{"Content-Type": contentType}, "body": written})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := answerHTTP(&page{ResponseWriter: w}, result); err != nil || w.Body.String() != content {
			t.Errorf("a response of %s is sent as %q (%v), want %q", contentType, w.Body, err, content)
		}
		if got := w.Header().Get("Content-Type"); got != m.header {
			t.Errorf("a response of %s is sent as %s, want %s", contentType, got, m.header)
		}
	}
}
