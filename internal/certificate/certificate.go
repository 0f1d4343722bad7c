// Package certificate keeps the certificate with which a server speaks TLS.
//
// It promises that a certificate is renewed, or read from its files again,
// without a restart; that what cannot be used leaves the one in force as it
// is, and is told in the log once and counted; and that TLS is 1.3, or 1.2
// with ECDHE and AEAD.
package certificate

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// source is where certificates come from.
type source interface {
	// next returns the certificate that is to replace the current one, or nil if that is to stay. current is nil at the start.
	next(current *tls.Certificate, now time.Time) (*tls.Certificate, error)
	// renew is next when the operator asks for another.
	renew(current *tls.Certificate, now time.Time) (*tls.Certificate, error)
	// watched are the folders of the files that it reads.
	watched() []string
}

// Keeper keeps the certificate in force. Its methods may be called concurrently.
type Keeper struct {
	from     source
	isOwn    bool
	log      *slog.Logger
	current  atomic.Pointer[tls.Certificate]
	failures atomic.Int64

	mu      sync.Mutex // held while the certificate is replaced; guards the rest
	problem string     // what the last look found; empty: nothing
}

// Own keeps certificates for names, which the authority signs.
func Own(authority *Authority, names []string, log *slog.Logger) (*Keeper, error) {
	return newKeeper(own{authority, names}, true, log)
}

// Files keeps the certificate in a file, with its key in another, both in PEM. It must be for names, which may be none. The error is
// forerun.Invalid if it cannot be used.
func Files(certificate, key string, names []string, log *slog.Logger) (*Keeper, error) {
	return newKeeper(files{certificate, key, names}, false, log)
}

func newKeeper(from source, isOwn bool, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{from: from, isOwn: isOwn, log: log}
	first, err := from.next(nil, time.Now())
	if err != nil {
		return nil, err
	}
	k.current.Store(first)
	return k, nil
}

// Config is the configuration of a server's TLS.
func (k *Keeper) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		CipherSuites: []uint16{ // of TLS 1.2
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.current.Load(), nil },
	}
}

// How often and how soon the certificate is looked at.
const (
	lookAgain = time.Minute            // also where the system does not tell of changes
	settleFor = 100 * time.Millisecond // after a change, as a certificate and its key are two files
)

// Run renews the certificate, or follows its files, until ctx is done.
func (k *Keeper) Run(ctx context.Context) {
	changes, stop := k.changes()
	defer stop()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	settled := time.NewTimer(settleFor)
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			settled.Reset(settleFor)
			continue
		case <-settled.C:
		case <-tick.C:
		}
		k.look()
	}
}

// changes tells of changes in the folders of the source's files, as far as the system does. Without files it never tells any.
func (k *Keeper) changes() (changes <-chan fsnotify.Event, stop func()) {
	folders := k.from.watched()
	if len(folders) == 0 {
		return nil, func() {}
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		k.log.Warn("the certificate's files are looked at each minute only", "error", err)
		return nil, func() {}
	}
	for _, folder := range folders {
		if err := watcher.Add(folder); err != nil {
			k.log.Warn("the certificate's files are looked at each minute only", "folder", folder, "error", err)
		}
	}
	go func() {
		for range watcher.Errors { // of changes that were lost; the next look finds them
		}
	}()
	return watcher.Events, func() { _ = watcher.Close() } // it only reads
}

// look replaces the certificate if it is time.
func (k *Keeper) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.replace(k.from.next) // it is in the log
}

// Renew makes another certificate now, or reads its files.
func (k *Keeper) Renew() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.replace(k.from.renew)
}

func (k *Keeper) replace(by func(*tls.Certificate, time.Time) (*tls.Certificate, error)) error {
	next, err := by(k.current.Load(), time.Now())
	if err != nil {
		if k.problem != err.Error() {
			k.problem = err.Error()
			k.failures.Add(1)
			k.log.Error("the certificate in force stays, as the next one cannot be used", "until", k.current.Load().Leaf.NotAfter, "error", err)
		}
		return err
	}
	k.problem = ""
	if next != nil {
		k.current.Store(next)
		k.log.Info("there is a new certificate", "until", next.Leaf.NotAfter)
	}
	return nil
}

// Info is what people are told about a certificate.
type Info struct {
	Names       []string  `json:"names"` // DNS names, then addresses
	Issuer      string    `json:"issuer"`
	NotBefore   time.Time `json:"notBefore"`
	NotAfter    time.Time `json:"notAfter"`
	Own         bool      `json:"own"`              // the server signs it itself
	Fingerprint string    `json:"sha256"`           // of the certificate, in hexadecimal
	Authority   string    `json:"authority"`        // the same of the last certificate of the chain
	Problem     string    `json:"problem,omitzero"` // why the next certificate is not in force
}

// Info describes the certificate in force.
func (k *Keeper) Info() Info {
	k.mu.Lock()
	defer k.mu.Unlock()
	current := k.current.Load()
	leaf := current.Leaf
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return Info{
		Names: names, Issuer: leaf.Issuer.String(), NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, Own: k.isOwn,
		Fingerprint: Fingerprint(leaf.Raw), Authority: Fingerprint(current.Certificate[len(current.Certificate)-1]), Problem: k.problem,
	}
}

// IsAuthority reports whether the certificate in force may sign others. Some clients of HTTP/3 refuse one of a server that may.
func (k *Keeper) IsAuthority() bool { return k.current.Load().Leaf.IsCA }

// Left is how long the certificate in force is still good; negative: it has expired.
func (k *Keeper) Left() time.Duration { return time.Until(k.current.Load().Leaf.NotAfter) }

// Failures is how often a certificate could not be used.
func (k *Keeper) Failures() int64 { return k.failures.Load() }

// Host chooses the name by which clients call the server: the first of those proposed that the certificate is for, else the certificate's
// own first name. Empty proposals do not count.
func (k *Keeper) Host(proposed ...string) string {
	leaf := k.current.Load().Leaf
	for _, name := range proposed {
		if name != "" && leaf.VerifyHostname(name) == nil {
			return name
		}
	}
	for _, name := range leaf.DNSNames {
		if !strings.HasPrefix(name, "*.") {
			return name
		}
	}
	if len(leaf.IPAddresses) > 0 {
		return leaf.IPAddresses[0].String()
	}
	return proposed[len(proposed)-1]
}

// Fingerprint is the SHA-256 of a certificate in DER, in hexadecimal, as openssl writes it.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = strings.ToUpper(hex.EncodeToString([]byte{b}))
	}
	return strings.Join(parts, ":")
}
