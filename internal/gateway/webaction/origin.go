package webaction

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// Tenant stands for the name of a tenant in the host of an Origin.
const Tenant = "TENANT"

// Origin says where web actions are served, apart from the API: a page of one action then cannot use what a browser keeps for the API, and with
// a host for each tenant not what it keeps for another tenant's actions.
type Origin struct {
	URL  string // for clients, as "https://TENANT.example.org"
	Host string // what requests name in their header Host, without a port: "TENANT.example.org"; "": any
}

// tenantOf returns the tenant's label in the host of a request, in small letters, and whether the host is one of web actions. A host that
// ends with a dot is the same one.
func (o *Origin) tenantOf(r *http.Request) (label string, ok bool) {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	label, ok = strings.CutSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), strings.ToLower(strings.TrimPrefix(o.Host, Tenant)))
	return label, ok && label != "" && !strings.Contains(label, ".")
}

// Split sends requests to the hosts of web actions to one handler, and all others to another.
func (o *Origin) Split(web, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := o.tenantOf(r); ok {
			web.ServeHTTP(w, r)
			return
		}
		other.ServeHTTP(w, r)
	})
}

// Only serves nothing but web actions. At the host of a tenant it serves the web actions of the tenant with exactly that name. A tenant whose
// name has capital letters or a dot has no host.
func (o *Origin) Only(web http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.Host != "" {
			label, ok := o.tenantOf(r)
			if !ok {
				o.Elsewhere(w, r)
				return
			}
			if namespaceOf(r) != label { // also if they differ in capital letters only: two tenants would share an origin
				fail(w, r, notFound())
				return
			}
		}
		web.ServeHTTP(w, r)
	})
}

// namespaceOf is the namespace that the path of a request names.
func namespaceOf(r *http.Request) string {
	segment, _, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), Prefix), "/")
	name, _ := url.PathUnescape(segment) // parse refuses what is malformed
	return name
}

// Nothing answers a request for anything else at the address of web actions.
func Nothing(w http.ResponseWriter, r *http.Request) {
	gateway.Fail(w, r, forerun.Errorf(forerun.NotFound, r.URL.Path, "This address serves web actions only, below %s.", Prefix))
}

// Elsewhere answers a request for a web action that came to another address.
func (o *Origin) Elsewhere(w http.ResponseWriter, r *http.Request) {
	gateway.Fail(w, r, forerun.Errorf(forerun.NotFound, r.URL.Path, "Web actions have an address of their own on this server: %s%s...", o.URL, Prefix))
}
