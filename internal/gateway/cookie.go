package gateway

import (
	"slices"
	"strings"
)

// The names of the console's cookie. Ports share cookies: a browser sends it to every listener of the console's host.
const (
	ConsoleCookie       = "forerun-console"
	SecureConsoleCookie = "__Host-forerun-console" // over TLS
)

// WithoutConsole is the value of a header Cookie without the console's cookie, which no function may see.
func WithoutConsole(cookies string) string {
	if !strings.Contains(strings.ToLower(cookies), ConsoleCookie) {
		return cookies
	}
	kept := slices.DeleteFunc(strings.Split(cookies, ";"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		return strings.EqualFold(name, ConsoleCookie) || strings.EqualFold(name, SecureConsoleCookie)
	})
	return strings.TrimSpace(strings.Join(kept, ";"))
}
