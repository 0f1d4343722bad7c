package webaction

import (
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// reservedHeaders are the header fields that an action may not set, in their canonical form. Fields that concern the page alone, such as
// Content-Security-Policy and Refresh, are the action's.
var reservedHeaders = []string{
	// Of the connection.
	"Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Trailer", "Upgrade", "Date",
	// The server's own.
	"X-Request-Id", "X-Openwhisk-Activation-Id", "X-Content-Type-Options",
	// How a browser reaches the host, or whether it does.
	"Alt-Svc", "Strict-Transport-Security", "Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct", "Origin-Agent-Cluster",
	// That a browser sends more to all of the host, or tells others of it.
	"Accept-Ch", "Accept-Ch-Lifetime", "Critical-Ch", "Use-As-Dictionary", "Nel", "Report-To", "Reporting-Endpoints", "Origin-Trial",
	// What a browser keeps for the host: scripts in front of it, its data, and who is logged in.
	"Service-Worker-Allowed", "Clear-Site-Data", "Set-Login", "Secure-Session-Registration", "Secure-Session-Challenge",
	// Orders to a proxy in front of the server: to run what is in the body.
	"Edge-Control",
}

// reservedPrefixes begin the names of others: the server's, a browser's (of its sessions, for example), and orders to proxies.
var reservedPrefixes = []string{
	"X-Forerun-", "Sec-", "Proxy-", "X-Accel-", "X-Sendfile", "X-Reproxy-", "X-Lighttpd-", "X-Litespeed-", "X-Envoy-", "Surrogate-",
}

// isReserved reports whether an action may not set the header field of a canonical name: it is of the connection or the server's own, it makes
// a browser change how it treats all that the host serves, which is not one action's alone, or it gives orders to a proxy. A name that is not
// a token is reserved, too: http.TrailerPrefix begins some.
func isReserved(name string) bool {
	return !httpguts.ValidHeaderFieldName(name) || slices.Contains(reservedHeaders, name) || slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
