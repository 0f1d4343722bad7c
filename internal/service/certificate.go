package service

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"forerun.dev/forerun/internal/certificate"
	"forerun.dev/forerun/internal/config"
	"forerun.dev/forerun/internal/forerun"
)

// The files in the data folder of the server's own certificate authority. A backup does not hold them.
const (
	authorityName    = "ca.crt"
	authorityKeyName = "ca.key"
)

// openAuthority reads the server's own certificate authority. The first start makes it, and it is on disk before a client sees it.
func openAuthority() (*certificate.Authority, error) {
	key, err := os.ReadFile(authorityKeyName)
	cert, certErr := os.ReadFile(authorityName)
	isNew := errors.Is(err, fs.ErrNotExist)
	switch {
	case isNew && certErr == nil:
		return nil, forerun.Errorf(forerun.Invalid, authorityName, "The key %s of the certificate authority is not there. Put it back, or remove %s to have another authority, which all clients must be told of.", authorityKeyName, authorityName)
	case isNew:
		return makeAuthority()
	case err == nil && !errors.Is(certErr, fs.ErrNotExist):
		err = certErr
	}
	if err != nil {
		return nil, forerun.Errorf(forerun.Internal, authorityName, "The certificate authority cannot be read: %w", err)
	}
	a, err := certificate.ParseAuthority(cert, key, time.Now())
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, authorityName, "%w Put %s and %s back as they were, or remove both to have another authority, which all clients must be told of.", err, authorityName, authorityKeyName)
	}
	if len(cert) == 0 { // the start before ended between the two files
		return a, keepAuthority(authorityName, a.Certificate())
	}
	return a, nil
}

func makeAuthority() (*certificate.Authority, error) {
	a, err := certificate.NewAuthority(time.Now())
	if err != nil {
		return nil, err
	}
	key, err := a.Key()
	if err != nil {
		return nil, err
	}
	if err := keepAuthority(authorityKeyName, key); err != nil {
		return nil, err
	}
	return a, keepAuthority(authorityName, a.Certificate())
}

func keepAuthority(name string, content []byte) error {
	if err := replaceFile(name, string(content)); err != nil {
		return forerun.Errorf(forerun.Internal, name, "The certificate authority cannot be written: %w", err)
	}
	return nil
}

// isOwnAuthority reports whether the server signs its certificate itself.
func (s *server) isOwnAuthority() bool { return s.config.TLSCert == "" }

// openCertificate opens the certificate of the secure listeners, if there are any.
func (s *server) openCertificate(context.Context) (err error) {
	if !slices.ContainsFunc(s.all(), func(l *listener) bool { return l.secure }) {
		return nil
	}
	if s.isOwnAuthority() {
		s.certificate, err = s.ownCertificate()
	} else if s.certificate, err = certificate.Files(s.config.TLSCert, s.config.TLSKey, s.config.TLSNames, s.log); err != nil {
		err = forerun.Errorf(forerun.Invalid, "--tls-cert", "%w", err)
	}
	if err != nil {
		return err
	}
	if s.config.HTTP3 && s.certificate.IsAuthority() {
		s.log.Warn("the certificate is one of an authority (CA:TRUE), which some clients of HTTP/3 refuse: give one with CA:FALSE, or switch HTTP/3 off with --http3 off", "certificate", s.config.TLSCert)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.certificate.Run(ctx) })
	s.onClose(func() error {
		stop()
		running.Wait()
		return nil
	})
	return nil
}

func (s *server) ownCertificate() (*certificate.Keeper, error) {
	authority, err := openAuthority()
	if err != nil {
		return nil, err
	}
	names := s.config.TLSNames
	if len(names) == 0 {
		if names, err = s.namesListenedOn(); err != nil {
			return nil, err
		}
	}
	return certificate.Own(authority, names, s.log)
}

// namesListenedOn are the host's name and the addresses of the secure listeners.
func (s *server) namesListenedOn() (names []string, err error) {
	add := func(ip net.IP) {
		if names = append(names, ip.String()); ip.IsLoopback() {
			names = append(names, "localhost")
		}
	}
	if name, err := os.Hostname(); err == nil && config.IsDNSName(strings.ToLower(name)) {
		names = append(names, strings.ToLower(name))
	}
	for _, l := range s.all() {
		switch ip := l.address().IP; {
		case !l.secure:
		case !ip.IsUnspecified():
			add(ip)
		default:
			addresses, err := net.InterfaceAddrs()
			if err != nil {
				return nil, forerun.Errorf(forerun.Internal, "--tls-name", "The addresses of this machine cannot be found: %w. Give the certificate's names with --tls-name.", err)
			}
			for _, a := range addresses {
				if network, ok := a.(*net.IPNet); ok {
					add(network.IP)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// host is the name in the URL of a secure listener: what the operator names, else the address, else what the certificate is for.
func (s *server) host(l *listener) string {
	address := l.address().IP
	if address.IsUnspecified() {
		address = net.IPv4(127, 0, 0, 1)
	}
	named := slices.DeleteFunc(slices.Clone(s.config.TLSNames), func(name string) bool { return strings.HasPrefix(name, "*.") })
	return s.certificate.Host(append(named, address.String())...)
}
