package whisk

import "testing"

func TestBaseURL(t *testing.T) {
	for host, want := range map[string]string{
		"localhost": "http://localhost:3233", "localhost:80": "http://localhost:80", "127.0.0.1": "http://127.0.0.1:3233", "[::1]:80": "http://[::1]:80",
		"example.com": "https://example.com", "10.0.0.1:8080": "https://10.0.0.1:8080", " https://example.com/api ": "https://example.com",
		"http://example.com:1/": "http://example.com:1", "": "", "ftp://x": "", "http://": "", "a b": "", "::": "",
	} {
		if got, err := BaseURL(host); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v, want %q", host, got, err, want)
		}
	}
}
