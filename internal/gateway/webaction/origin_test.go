package webaction

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHostOfATenant: the host of a tenant has the web actions of the tenant with exactly this name, and of no other.
func TestHostOfATenant(t *testing.T) {
	origin := Origin{URL: "https://TENANT.example.org", Host: "TENANT.example.org"}
	var served string
	note := func(by string) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = by })
	}
	door := origin.Split(origin.Only(note("web")), note("api"))
	for _, c := range []struct{ host, namespace, want string }{
		{"ada.example.org", "ada", "web"},
		{"ADA.Example.ORG", "ada", "web"}, // browsers send small letters, and hosts have no others
		{"ada.example.org.", "ada", "web"},
		{"ada.example.org:8443", "ada", "web"},
		{"ada.example.org.:8443", "ada", "web"},
		{"my_team.example.org", "my_team", "web"},
		{"ada.example.org", "Ada", ""}, // it would share the origin
		{"Ada.example.org", "Ada", ""},
		{"ada.example.org", "ADA", ""},
		{"ada.example.org", "%41da", ""},
		{"ada.example.org", "ada.example", ""},
		{"ada.example.org", "adam", ""},
		{"ada.example.org", "ad", ""},
		{"ada.example.org", "nada", ""},
		{"ada.example.org", "ada.", ""},
		{"ada.example.org", "ada ", ""},
		{"ada.example.org", "", ""},
		{"ada-.example.org", "ada", ""},
		{"ada.eve.example.org", "ada.eve", "api"}, // two labels are no host of web actions
		{"ada.eve.example.org", "ada", "api"},
		{"ada.eve.example.org", "eve", "api"},
		{"ada..example.org", "ada", "api"},
		{"ada.example.org..", "ada", "api"},
		{".example.org", "", "api"},
		{"example.org", "example", "api"},
		{"adaexample.org", "ada", "api"},
		{"ada.example.org.eve.net", "ada", "api"},
		{"ada.example.com", "ada", "api"},
		{"", "ada", "api"},
	} {
		served = ""
		r := httptest.NewRequest("GET", Prefix+strings.ReplaceAll(c.namespace, " ", "%20")+"/default/page", nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		if door.ServeHTTP(w, r); served != c.want || c.want == "" && w.Code != http.StatusNotFound {
			t.Errorf("%q at %q is served by %q (%d), want %q", c.namespace, c.host, served, w.Code, c.want)
		}
	}
}
