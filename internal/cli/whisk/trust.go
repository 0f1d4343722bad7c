package whisk

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// trust is the TLS of a client.
func trust(o Options) (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: o.Insecure} //nolint:gosec // only on --insecure, as wsk has it
	if o.CA == "" {
		return c, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(o.CA)) {
		return nil, fmt.Errorf("the certificate authority is not in PEM: name the file ca.crt of the server's data folder")
	}
	c.RootCAs = pool
	return c, nil
}

// Authority fetches the last certificate that an HTTPS host shows, which for a Forerun server is its authority's. Nothing vouches for it.
func Authority(ctx context.Context, host string) (*x509.Certificate, error) {
	base, err := BaseURL(host)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	dialer := &tls.Dialer{
		NetDialer: &net.Dialer{Timeout: 10 * time.Second},
		Config:    &tls.Config{InsecureSkipVerify: true, ServerName: u.Hostname()}, //nolint:gosec // a person looks at what it shows, and nothing is sent
	}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, &url.Error{Op: "Get", URL: base, Err: err}
	}
	defer conn.Close()
	chain := conn.(*tls.Conn).ConnectionState().PeerCertificates
	return chain[len(chain)-1], nil
}

// Fingerprint is the SHA-256 of a certificate, as `forerun cert show` and openssl write it.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	text := strings.ToUpper(hex.EncodeToString(sum[:]))
	var parts []string
	for i := 0; i < len(text); i += 2 {
		parts = append(parts, text[i:i+2])
	}
	return strings.Join(parts, ":")
}
