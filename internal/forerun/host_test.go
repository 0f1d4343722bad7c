package forerun

import (
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	long := strings.Repeat("a", 63)
	for text, want := range map[string]struct {
		host string
		port uint16
	}{
		"api.Example.com": {"api.example.com", 0}, "api.example.com.:443": {"api.example.com", 443}, "db": {"db", 0}, "a_b.c-d:65535": {"a_b.c-d", 65535}, "1.db2": {"1.db2", 0},
		"10.0.0.1": {"10.0.0.1", 0}, "10.0.0.1:80": {"10.0.0.1", 80}, "::1": {"::1", 0}, "[::1]": {"::1", 0}, "[::1]:80": {"::1", 80},
		"::ffff:10.0.0.1": {"10.0.0.1", 0}, long + ".com": {long + ".com", 0},
	} {
		if host, port, err := ParseHost(text); host != want.host || port != want.port || err != nil {
			t.Errorf("%q: %q, %d, %v; want %v", text, host, port, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "*", "*.example.com", "a b", "http://a/b", "10.0.0.0/8", "a:99999", "a:65536", "a:0", "10.0.0.1:0", "[::1]:00", "a:-1", "a:+1", "a: 1", "a:", "a:b", " a", "a ",
		"256.0.0.1", "10.0.0:80", "1", "fe80::1%lo", "a..b", ".", ":80", "[::1", "münchen.de", "a\x00b",
		long + "a.com", strings.Repeat("a.", 127) + "b",
	} {
		if host, port, err := ParseHost(text); err == nil {
			t.Errorf("%q: %q, %d", text, host, port)
		}
	}
}
