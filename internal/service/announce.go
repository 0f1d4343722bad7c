package service

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"forerun.dev/forerun/internal/gateway/console"
	"forerun.dev/forerun/internal/gateway/webaction"
	"forerun.dev/forerun/internal/speculate"
)

// announce tells how to use the server, and what it protects against.
func (s *server) announce() {
	props := filepath.Join(s.config.Data, propsName)
	url, trust, curl := s.url(s.front), "", "curl "
	if s.isOwnAuthority() {
		trust = "--cacert " + filepath.Join(s.config.Data, authorityName) + " "
	}
	if s.front.secure {
		curl += trust
	}
	fmt.Fprintf(s.words, `forerun %s is ready on %s after %d ms; its data are in %s
  WSK_CONFIG_FILE=%s forerun action list
  %s-u "$(sed -n s/^AUTH=//p %s)" %s/api/v1/namespaces/_/actions
`, s.version, url, time.Since(s.begun).Milliseconds(), s.config.Data, props, curl, props, url)
	if s.certificate != nil {
		info := s.certificate.Info()
		fmt.Fprintf(s.words, "  TLS with a certificate for %s until %s; SHA-256 of its authority: %s\n", strings.Join(info.Names, ", "), info.NotAfter.Format(time.DateOnly), info.Authority)
	}
	if s.measured != nil {
		fmt.Fprintf(s.words, "  metrics are on %s/metrics\n", s.url(s.measured))
	}
	if s.console != nil {
		fmt.Fprintf(s.words, "  the console is on %s%s\n", s.url(s.console), console.Prefix)
	}
	if origin := s.webOrigin(); s.web != nil {
		fmt.Fprintf(s.words, "  web actions are on %s (clients use %s%s...)\n", s.url(s.web), origin.URL, webaction.Prefix)
	} else if origin.URL != "" {
		fmt.Fprintf(s.words, "  web actions are on %s%s...\n", origin.URL, webaction.Prefix)
	}
	if s.redis != nil {
		secure := ""
		if s.redis.secure {
			secure = "--tls " + trust
		}
		fmt.Fprintf(s.words, "  redis-cli -p %d %s--user UUID --pass KEY   (the two halves of AUTH)\n", s.redis.port(), secure)
	}
	for _, e := range s.maker.Enforced() {
		if e.On {
			fmt.Fprintf(s.words, "  enforced: %s\n", e.What)
		} else {
			fmt.Fprintf(s.words, "  NOT enforced: %s (%s)\n", e.What, e.Why)
		}
	}
	if !s.controller.MayAhead() {
		next := "forerun speculation on --operator " + filepath.Join(s.config.Data, operatorName)
		if s.config.Speculate.Mode == speculate.Off {
			next = "another --speculate than off, and " + next
		}
		fmt.Fprintf(s.words, "  speculation is off because the operator has switched it off; to switch it on: %s\n", next)
	}
	if !s.controller.MayCache() {
		fmt.Fprintf(s.words, "  the result cache is off because the operator has switched it off; to switch it on: forerun cache on --operator %s\n", filepath.Join(s.config.Data, operatorName))
	}
	kinds := slices.DeleteFunc(s.languages.Kinds(), func(kind string) bool { return strings.HasSuffix(kind, ":default") })
	fmt.Fprintf(s.words, "  actions: %s\n", strings.Join(kinds, ", "))
	for _, lack := range s.absent {
		fmt.Fprintf(s.words, "  %s (`make install` and the tarball of `make dist` have it)\n", lack)
	}
}
