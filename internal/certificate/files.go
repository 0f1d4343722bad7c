package certificate

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// files is the source of certificates that the operator puts into two files.
type files struct {
	certificate, key string   // paths
	names            []string // that it must be for
}

// next implements source: it reads the files and returns what is new in them.
func (f files) next(current *tls.Certificate, now time.Time) (*tls.Certificate, error) {
	pair, err := f.renew(current, now)
	if err == nil && current != nil && slices.EqualFunc(pair.Certificate, current.Certificate, slices.Equal) {
		return nil, nil
	}
	return pair, err
}

// renew implements source: it reads the files.
func (f files) renew(_ *tls.Certificate, now time.Time) (*tls.Certificate, error) {
	certificate, err := os.ReadFile(f.certificate)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "", "The certificate cannot be read by user %d, as whom the server runs: %w.", os.Geteuid(), err)
	}
	key, err := os.ReadFile(f.key)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "", "The certificate's key cannot be read by user %d, as whom the server runs: %w.", os.Geteuid(), err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "", "The files %s and %s are not a certificate and its key: %w.", f.certificate, f.key, err)
	}
	leaf := pair.Leaf
	if now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return nil, forerun.Errorf(forerun.Invalid, "", "The certificate %s is good from %s to %s only, and now it is %s.",
			f.certificate, leaf.NotBefore.UTC().Format(time.DateTime), leaf.NotAfter.UTC().Format(time.DateTime), now.UTC().Format(time.DateTime))
	}
	for _, name := range f.names {
		if err := leaf.VerifyHostname(name); err != nil {
			return nil, forerun.Errorf(forerun.Invalid, "", "The certificate %s is not for %s: %w.", f.certificate, name, err)
		}
	}
	return &pair, nil
}

// watched implements source: the folders, in which a file or a link may be replaced.
func (f files) watched() []string {
	return slices.Compact([]string{filepath.Dir(f.certificate), filepath.Dir(f.key)})
}
