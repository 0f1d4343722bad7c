package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

const year = 365 * 24 * time.Hour

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newOwn(t *testing.T, a *Authority, names ...string) *Keeper {
	t.Helper()
	k, err := Own(a, names, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// handshake has a client that trusts an authority connect to a server, and returns the certificate that it is shown.
func handshake(k *Keeper, a *Authority, name string, version uint16) (*x509.Certificate, error) {
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(a.Certificate())
	l, err := tls.Listen("tcp", "127.0.0.1:0", k.Config())
	if err != nil {
		return nil, err
	}
	defer l.Close()
	go func() {
		if inside, err := l.Accept(); err == nil {
			_ = inside.(*tls.Conn).Handshake() // the client has the error, too
			_ = inside.Close()
		}
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: trust, ServerName: name, MinVersion: tls.VersionTLS10, MaxVersion: version})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0], nil
}

// TestOwnCertificate connects by each name, with each version of TLS, and with a clock that is behind.
func TestOwnCertificate(t *testing.T) {
	a := newAuthority(t)
	k := newOwn(t, a, "functions.example.org", "*.f.example.org", "192.168.1.5", "::1")
	for _, name := range []string{"functions.example.org", "ada.f.example.org", "192.168.1.5", "::1"} {
		leaf, err := handshake(k, a, name, tls.VersionTLS13)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if leaf.IsCA || time.Until(leaf.NotBefore) > -23*time.Hour || time.Until(leaf.NotAfter) > leafLife {
			t.Errorf("%s: an authority %v, from %v until %v", name, leaf.IsCA, leaf.NotBefore, leaf.NotAfter)
		}
	}
	if _, err := handshake(k, a, "::1", tls.VersionTLS12); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	}
	if _, err := handshake(k, a, "::1", tls.VersionTLS11); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if _, err := handshake(k, a, "other.example.org", tls.VersionTLS13); err == nil {
		t.Error("it is for another name")
	}
	if _, err := handshake(k, newAuthority(t), "::1", tls.VersionTLS13); err == nil {
		t.Error("another authority has signed it")
	}
}

// TestCiphersOfTLS: those without forward secrecy or authentication of the data are not there.
func TestCiphersOfTLS(t *testing.T) {
	k := newOwn(t, newAuthority(t), "localhost")
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) || slices.Contains(suite.SupportedVersions, tls.VersionTLS13) {
			continue
		}
		good := strings.HasPrefix(suite.Name, "TLS_ECDHE_") && (strings.Contains(suite.Name, "GCM") || strings.Contains(suite.Name, "POLY1305"))
		if slices.Contains(k.Config().CipherSuites, suite.ID) != good {
			t.Errorf("%s is there: %v", suite.Name, !good)
		}
	}
}

// TestRenewedAtTwoThirds lets time pass in a bubble, until the authority ends.
func TestRenewedAtTwoThirds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		k := newOwn(t, a, "localhost")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go k.Run(ctx)
		first := k.Info()
		time.Sleep(leafLife*2/3 - time.Hour)
		if k.Info().Fingerprint != first.Fingerprint {
			t.Error("it was renewed before two thirds of its life")
		}
		time.Sleep(2 * time.Hour)
		second := k.Info()
		if _, err := handshake(k, a, "localhost", tls.VersionTLS13); err != nil || second.Fingerprint == first.Fingerprint || second.Authority != first.Authority {
			t.Errorf("at two thirds: %v, %v", second, err)
		}
		k.mu.Lock() // ten years of minutes take long even in a bubble
		a.cert.NotAfter = time.Now().Add(20 * 24 * time.Hour)
		k.mu.Unlock()
		time.Sleep(leafLife)
		last := k.Info()
		if last.Problem == "" || k.Failures() != 1 {
			t.Errorf("after the end of the authority: %+v, %d failures", last, k.Failures())
		}
		if err := k.Renew(); err == nil || k.Failures() != 1 {
			t.Errorf("asked for another: %v, %d failures", err, k.Failures())
		}
	})
}

// TestRenewNow makes another at once.
func TestRenewNow(t *testing.T) {
	k := newOwn(t, newAuthority(t), "localhost")
	before := k.Info()
	if err := k.Renew(); err != nil || k.Info().Fingerprint == before.Fingerprint {
		t.Errorf("%v, %v", k.Info(), err)
	}
}

// TestParseAuthority reads what was written, and refuses what does not fit.
func TestParseAuthority(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	key, err := a.Key()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseAuthority(a.Certificate(), key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseAuthority(nil, key, time.Now()) // the certificate was lost
	if err != nil {
		t.Fatal(err)
	}
	for _, signer := range []*Authority{read, again} {
		if _, err := handshake(newOwn(t, signer, "localhost"), a, "localhost", tls.VersionTLS13); err != nil {
			t.Errorf("who trusts the first one does not trust it any more: %v", err)
		}
	}
	leaf := newOwn(t, a, "localhost").current.Load()
	for name, pair := range map[string][2][]byte{
		"another's certificate": {other.Certificate(), key},
		"half a certificate":    {a.Certificate()[:100], key},
		"no key":                {a.Certificate(), nil},
		"half a key":            {a.Certificate(), key[:60]},
		"no authority":          {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}), key},
	} {
		if _, err := ParseAuthority(pair[0], pair[1], time.Now()); forerun.KindOf(err) != forerun.Invalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseAuthority(a.Certificate(), key, time.Now().Add(11*year)); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("after its end: %v", err)
	}
}

// writePair writes a certificate and its key, which is good from some time on.
func writePair(t *testing.T, folder string, a *Authority, from time.Time, names ...string) {
	t.Helper()
	pair, err := a.issue(names, from)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	write(t, filepath.Join(folder, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// inFolder keeps the pair of a folder.
func inFolder(t *testing.T, folder string, names ...string) (*Keeper, error) {
	return Files(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"), names, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// TestFilesThatCannotBeUsed at the start.
func TestFilesThatCannotBeUsed(t *testing.T) {
	a := newAuthority(t)
	for name, spoil := range map[string]func(folder string){
		"expired":       func(folder string) { writePair(t, folder, a, time.Now().Add(-year), "localhost") },
		"not yet valid": func(folder string) { writePair(t, folder, a, time.Now().Add(year), "localhost") },
		"another name":  func(folder string) { writePair(t, folder, a, time.Now(), "example.org") },
		"no file":       func(string) {},
		"half written": func(folder string) {
			writePair(t, folder, a, time.Now(), "localhost")
			write(t, filepath.Join(folder, "tls.key"), []byte("-----BEGIN PRIVATE KEY-----\nMIG"))
		},
		"another's key": func(folder string) {
			writePair(t, folder, a, time.Now(), "localhost")
			key, err := a.Key()
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, "tls.key"), key)
		},
	} {
		folder := t.TempDir()
		spoil(folder)
		if _, err := inFolder(t, folder, "localhost"); err == nil || forerun.KindOf(err) != forerun.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// await waits until something is so, as long as the test may take.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 3*time.Minute {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestFilesAreFollowed: a pair is read again when its files, or the links to them, are replaced. One that cannot be used changes nothing.
func TestFilesAreFollowed(t *testing.T) {
	a, folder := newAuthority(t), t.TempDir()
	path := func(names ...string) string { return filepath.Join(append([]string{folder}, names...)...) }
	writePair(t, path("one"), a, time.Now(), "one.example.org")
	for link, to := range map[string]string{"..data": "one", "tls.crt": "..data/tls.crt", "tls.key": "..data/tls.key"} { // as in a volume of Kubernetes
		if err := os.Symlink(to, path(link)); err != nil {
			t.Fatal(err)
		}
	}
	k, err := inFolder(t, folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.Run(ctx)
	}()
	isFor := func(name string) func() bool {
		return func() bool { _, err := handshake(k, a, name, tls.VersionTLS13); return err == nil }
	}
	await(t, "the first pair", isFor("one.example.org"))

	writePair(t, path("two"), a, time.Now(), "two.example.org")
	if err := os.Symlink("two", path("..new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path("..new"), path("..data")); err != nil {
		t.Fatal(err)
	}
	await(t, "the pair that the link leads to", isFor("two.example.org"))

	if err := os.Remove(path("tls.key")); err != nil {
		t.Fatal(err)
	}
	await(t, "a failure", func() bool { return k.Failures() > 0 })
	if !isFor("two.example.org")() || !strings.Contains(k.Info().Problem, "cannot be read") {
		t.Errorf("without its key: %+v", k.Info())
	}

	writePair(t, path("three"), a, time.Now(), "three.example.org")
	if err := os.Rename(path("three", "tls.crt"), path("tls.crt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path("three", "tls.key"), path("tls.key")); err != nil {
		t.Fatal(err)
	}
	await(t, "the files in the place of the links", isFor("three.example.org"))
	if k.Info().Problem != "" {
		t.Errorf("then there is a problem: %+v", k.Info())
	}
	stop()
	<-ended
}

// TestHost chooses names for a URL.
func TestHost(t *testing.T) {
	a := newAuthority(t)
	for _, test := range []struct {
		names, proposed []string
		want            string
	}{
		{[]string{"functions.example.org", "127.0.0.1"}, []string{"127.0.0.1"}, "127.0.0.1"},
		{[]string{"functions.example.org"}, []string{"127.0.0.1"}, "functions.example.org"},
		{[]string{"*.example.org", "10.0.0.1"}, []string{"127.0.0.1"}, "10.0.0.1"},
		{[]string{"*.example.org"}, []string{"api.example.org", "127.0.0.1"}, "api.example.org"},
		{[]string{"*.example.org"}, []string{"127.0.0.1"}, "127.0.0.1"},
	} {
		if got := newOwn(t, a, test.names...).Host(test.proposed...); got != test.want {
			t.Errorf("of %v, with %v proposed: %s", test.names, test.proposed, got)
		}
	}
}
