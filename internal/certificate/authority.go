package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net/netip"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// How long certificates are good.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
	renewBefore   = leafLife / 3   // the end of a leaf
	clockSkew     = 24 * time.Hour // how far a client's clock may be behind the server's
)

// Authority is a certificate authority of a server's own. It signs with ECDSA P-256.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that is good for ten years.
func NewAuthority(now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return certify(key, now)
}

// certify makes the authority of a key. Its name follows from the key, so clients that trust an earlier certificate of the key trust this one.
func certify(key *ecdsa.PrivateKey, now time.Time) (*Authority, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(public)
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Forerun CA " + hex.EncodeToString(id[:4])}, SubjectKeyId: id[:20],
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert, key}, nil
}

// serial is a random serial number.
func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[0] &= 0x7f           // it is positive
	return new(big.Int).SetBytes(b[:])
}

func sign(template, by *x509.Certificate, of, with *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, by, of.Public(), with)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// ParseAuthority reads what Certificate and Key wrote. An empty certificate is made again for the key. The error is forerun.Invalid.
func ParseAuthority(certificate, key []byte, now time.Time) (*Authority, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, forerun.Errorf(forerun.Invalid, "", "The key of the certificate authority is not in PEM.")
	}
	private, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "", "The key of the certificate authority cannot be read: %w.", err)
	}
	if len(certificate) == 0 {
		return certify(private, now)
	}
	if block, _ = pem.Decode(certificate); block == nil {
		return nil, forerun.Errorf(forerun.Invalid, "", "The certificate authority is not in PEM.")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return nil, forerun.Errorf(forerun.Invalid, "", "The certificate authority cannot be read: %w.", err)
	case !cert.IsCA || !private.PublicKey.Equal(cert.PublicKey):
		return nil, forerun.Errorf(forerun.Invalid, "", "The certificate authority does not fit its key.")
	case !now.Before(cert.NotAfter):
		return nil, forerun.Errorf(forerun.Invalid, "", "The certificate authority has expired on %s.", cert.NotAfter.Format(time.DateOnly))
	}
	return &Authority{cert, private}, nil
}

// Certificate is the authority's certificate in PEM: what clients are to trust.
func (a *Authority) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Key is the authority's private key in PEM.
func (a *Authority) Key() ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// issue makes a certificate of a server for DNS names and IP addresses. It is good for 90 days, but not longer than the authority.
func (a *Authority) issue(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Forerun"},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(leafLife),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	leaf, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// own is the source of certificates that the server signs itself.
type own struct {
	authority *Authority
	names     []string
}

// next implements source: it renews at two thirds of a certificate's life, unless the end of the authority is its end.
func (o own) next(current *tls.Certificate, now time.Time) (*tls.Certificate, error) {
	if current != nil && now.Before(current.Leaf.NotAfter.Add(-renewBefore)) {
		return nil, nil
	}
	next, err := o.renew(current, now)
	if err == nil && current != nil && !next.Leaf.NotAfter.After(current.Leaf.NotAfter) {
		return nil, nil
	}
	return next, err
}

// renew implements source.
func (o own) renew(_ *tls.Certificate, now time.Time) (*tls.Certificate, error) {
	if end := o.authority.cert.NotAfter; !now.Before(end) {
		return nil, forerun.Errorf(forerun.Unavailable, "", "The certificate authority has expired on %s.", end.Format(time.DateOnly))
	}
	return o.authority.issue(o.names, now)
}

// watched implements source.
func (o own) watched() []string { return nil }
