package service

import (
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/config"
	"forerun.dev/forerun/internal/forerun"
)

// TestAuthorityWithoutKey: no authority is on disk whose key could not be written.
func TestAuthorityWithoutKey(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir(authorityKeyName, 0o700); err != nil {
		t.Fatal(err)
	}
	if a, err := makeAuthority(); err == nil || a != nil {
		t.Errorf("%v, %v", a, err)
	}
	if _, err := os.Stat(authorityName); err == nil {
		t.Error("the certificate is there")
	}
}

// TestOpenAuthority makes an authority at the first start, keeps it at the next ones, and does not replace what is spoilt.
func TestOpenAuthority(t *testing.T) {
	t.Chdir(t.TempDir())
	first, err := openAuthority()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{authorityName, authorityKeyName} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	same := func(when string) {
		t.Helper()
		again, err := openAuthority()
		if err != nil || string(again.Certificate()) != string(first.Certificate()) {
			t.Errorf("%s: %v", when, err)
		}
	}
	same("at the next start")
	cert, key := read(t, authorityName), read(t, authorityKeyName)
	refused := func(when, want string) {
		t.Helper()
		if _, err := openAuthority(); forerun.KindOf(err) != forerun.Invalid || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", when, err)
		}
		if err := os.WriteFile(authorityName, cert, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(authorityKeyName, key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{authorityName: cert, authorityKeyName: key} {
		if err := os.WriteFile(name, content[:len(content)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		refused("half of "+name, "Put")
	}
	if err := os.Remove(authorityKeyName); err != nil {
		t.Fatal(err)
	}
	refused("without its key", "Put it back")
	same("when they are back")
	if err := os.Remove(authorityName); err != nil { // a start ended between the two files
		t.Fatal(err)
	}
	if _, err := openAuthority(); err != nil {
		t.Errorf("without the certificate: %v", err)
	}
	if _, err := os.Stat(authorityName); err != nil {
		t.Errorf("then it is not written: %v", err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestAuthorityThatCannotBeWritten leaves nothing half made, as on a full disk.
func TestAuthorityThatCannotBeWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir(authorityName+".new", 0o700); err != nil { // in the place of the file that is written first
		t.Fatal(err)
	}
	if _, err := openAuthority(); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Fatalf("the start goes on: %v", err)
	}
	if err := os.Remove(authorityName + ".new"); err != nil {
		t.Fatal(err)
	}
	if _, err := openAuthority(); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

// TestSecureListeners: an address off the loopback is secure whatever the settings say, and one on it if they do.
func TestSecureListeners(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		address string
		tls     bool
		want    bool
	}{
		{"127.0.0.1:0", false, false},
		{"127.1.2.3:0", false, false},
		{"127.0.0.1:0", true, true},
		{"0.0.0.0:0", false, true},
		{":0", false, true},
		{"[::]:0", false, true},
		{"", true, false},
	} {
		s := &server{config: &config.Config{Listen: "127.0.0.1:0", RedisListen: test.address, TLS: test.tls}, log: slog.New(slog.DiscardHandler)}
		if err := s.listen(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.redis != nil && s.redis.secure; got != test.want {
			t.Errorf("%q with TLS %v: secure %v", test.address, test.tls, got)
		}
		if err := s.openCertificate(t.Context()); err != nil || (s.certificate != nil) != (test.want || test.tls) {
			t.Errorf("%q with TLS %v: %v, %v", test.address, test.tls, s.certificate, err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestListenForQUIC: HTTP/3 has the UDP port with the number of its listener. A port in use is an error that names it, unless any port would do.
// Without TLS, or with HTTP/3 off, no UDP port is used.
func TestListenForQUIC(t *testing.T) {
	listen := func(c *config.Config) (*server, error) {
		s := &server{config: c, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
		err := s.listen(t.Context())
		if err != nil {
			_ = s.close()
		}
		return s, err
	}
	s, err := listen(&config.Config{Listen: "127.77.3.2:0", TLS: true, HTTP3: true, RedisListen: "127.77.3.2:0"}) // no other test uses it
	if err != nil || s.front.udp.LocalAddr().(*net.UDPAddr).Port != s.front.port() || s.redis.udp != nil {
		t.Fatalf("%+v, %v", s.front, err)
	}
	defer func() { _ = s.close() }()
	if err := s.front.Listener.Close(); err != nil { // the port of UDP stays in use
		t.Fatal(err)
	}
	address := s.front.Addr().String()
	_, err = listen(&config.Config{Listen: address, TLS: true, HTTP3: true})
	if forerun.KindOf(err) != forerun.Unavailable || err == nil || !strings.Contains(err.Error(), "UDP port "+strconv.Itoa(s.front.port())) || !strings.Contains(err.Error(), "--http3 off") {
		t.Errorf("a UDP port in use: %v", err)
	}
	for name, c := range map[string]*config.Config{
		"off":         {Listen: address, TLS: true},
		"without TLS": {Listen: address, HTTP3: true},
	} {
		s, err := listen(c)
		if err != nil || s.front.udp != nil {
			t.Fatalf("%s: %+v, %v", name, s.front, err)
		}
		_ = s.close()
	}
}

// TestNamesListenedOn: without names of the operator the certificate is for those that clients may use.
func TestNamesListenedOn(t *testing.T) {
	s := new(server)
	on := func(ip net.IP, secure bool) *listener {
		return &listener{Listener: fixed{&net.TCPAddr{IP: ip}}, secure: secure}
	}
	s.front, s.redis = on(net.IPv4(192, 0, 2, 1), true), on(net.IPv4(192, 0, 2, 2), false)
	names, err := s.namesListenedOn()
	if err != nil || !slices.Contains(names, "192.0.2.1") || slices.Contains(names, "192.0.2.2") || slices.Contains(names, "localhost") {
		t.Errorf("one address: %v, %v", names, err)
	}
	s.front = on(net.IPv6unspecified, true)
	if names, err = s.namesListenedOn(); err != nil || !slices.Contains(names, "127.0.0.1") || !slices.Contains(names, "localhost") {
		t.Errorf("all addresses: %v, %v", names, err)
	}
}

// fixed is a listener with an address and no connections.
type fixed struct{ at net.Addr }

func (f fixed) Accept() (net.Conn, error) { return nil, net.ErrClosed }

func (f fixed) Close() error { return nil }

func (f fixed) Addr() net.Addr { return f.at }
