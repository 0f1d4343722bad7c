package whisk

import (
	"context"
	"net/http"
	"time"
)

// Certificate is the server's, as the operator's API shows it.
type Certificate struct {
	Names       []string  `json:"names"`
	Issuer      string    `json:"issuer"`
	NotBefore   time.Time `json:"notBefore"`
	NotAfter    time.Time `json:"notAfter"`
	Own         bool      `json:"own"` // the server signs it itself
	Fingerprint string    `json:"sha256"`
	Authority   string    `json:"authority"` // the fingerprint of the chain's last certificate
	Problem     string    `json:"problem"`   // why the next one is not in force; empty: there is none
}

// CertificatePath is where it is, for a client whose root is the operator's API.
const CertificatePath = "certificate"

// RenewCertificate has the server make another certificate, or read its files again.
func RenewCertificate(ctx context.Context, c *Client) (Document[Certificate], error) {
	return fetch[Document[Certificate]](ctx, c, http.MethodPost, CertificatePath+"/renew", nil, nil)
}
