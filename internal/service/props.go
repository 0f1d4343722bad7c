package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

// secretKeysName is the file in the data folder with the keys of secret parameters. A backup does not hold it.
const secretKeysName = "secretkeys"

// openKeyring reads the keys of secret parameters. The first start makes one, which is on disk before anything is sealed with it.
func openKeyring() (*registry.Keyring, error) {
	text, err := os.ReadFile(secretKeysName)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(registry.NewKey())
		err = replaceFile(secretKeysName, string(text))
	}
	if err != nil {
		return nil, forerun.Errorf(forerun.Internal, secretKeysName, "The keys of secret parameters cannot be read or made: %w", err)
	}
	keyring, err := registry.ParseKeyring(string(text))
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, secretKeysName, "%w Put the file back as it was. Without it no secret parameter can be read.", err)
	}
	return keyring, nil
}

// The files in the data folder that hold keys, in the form of wsk's own settings.
const (
	propsName    = "wskprops" // the first tenant's
	operatorName = "operator" // that of the operator, who makes tenants
)

// writeProps writes a file that clients read, in the working directory, readable for the owner alone, unless it is there. An empty auth is
// left out.
func writeProps(name, apihost, auth string) error {
	text := fmt.Sprintf("APIHOST=%s\n", apihost)
	if auth != "" {
		text += fmt.Sprintf("AUTH=%s\n", auth)
	}
	if isWritten(name, text) {
		return nil
	}
	if err := replaceFile(name, text); err != nil {
		return forerun.Errorf(forerun.Internal, name, "The clients' settings cannot be written: %w", err)
	}
	return nil
}

// replaceFile writes a file in the working directory that is on disk, as a whole, when it returns.
func replaceFile(name, text string) error {
	temporary := name + ".new"
	err := writeSynced(temporary, text)
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err == nil {
		err = syncFolder(".")
	}
	return err
}

// isWritten reports whether a file is as writeProps leaves it.
func isWritten(name, text string) bool {
	info, err := os.Lstat(name)
	if err != nil || info.Mode() != 0o600 {
		return false
	}
	found, err := os.ReadFile(name)
	return err == nil && string(found) == text
}

// writeSynced writes a file that is on disk before it takes another's name: a power failure could leave an empty one there.
func writeSynced(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// readAuth returns the key in such a file, if there is one.
func readAuth(name string) (uuid, key string) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(text)) {
		if auth, ok := strings.CutPrefix(strings.TrimSpace(line), "AUTH="); ok {
			uuid, key, _ = strings.Cut(auth, ":")
		}
	}
	return uuid, key
}

// firstTenant is the tenant that a new server has, whose key is in the clients' settings.
const firstTenant = "guest"

// firstStart makes sure that there is a tenant and an operator, and that the clients' settings hold valid keys of theirs.
func (s *server) firstStart(ctx context.Context) error {
	if s.operator = operatorKey(); s.operator == "" {
		var random [48]byte
		_, _ = rand.Read(random[:]) // never fails
		s.operator = hex.EncodeToString(random[:16]) + ":" + hex.EncodeToString(random[16:])
	}
	if err := writeProps(operatorName, s.url(s.front), s.operator); err != nil {
		return err
	}
	uuid, key := readAuth(propsName)
	auth := registry.Credentials{UUID: uuid, Key: key}.String()
	if t, err := s.registry.Authenticate(ctx, uuid, key); err != nil && forerun.KindOf(err) != forerun.Forbidden || t.Namespace != firstTenant {
		if auth, err = s.newKey(ctx); err != nil {
			return err
		}
	}
	return writeProps(propsName, s.url(s.front), auth)
}

// minOperatorKey is the length of a key that nobody guesses.
const minOperatorKey = 32

// operatorKey reads the operator's key; empty if there is none that is fit to be one.
func operatorKey() string {
	uuid, key := readAuth(operatorName)
	if uuid == "" || len(key) < minOperatorKey {
		return ""
	}
	return uuid + ":" + key
}

// newKey makes a key of the first tenant, who is made if there are no tenants at all. There is none if the operator deleted
// the first tenant and not the others.
func (s *server) newKey(ctx context.Context) (string, error) {
	credentials, err := s.registry.AddKey(ctx, firstTenant)
	if err == nil || forerun.KindOf(err) != forerun.NotFound {
		return credentials.String(), err
	}
	tenants, err := s.registry.Tenants(ctx)
	if err != nil || len(tenants) > 0 {
		return "", err
	}
	credentials, err = s.registry.CreateTenant(ctx, firstTenant, registry.Quotas{})
	if forerun.KindOf(err) == forerun.Exists && err != nil {
		return "", nil // it was deleted, and what it had is not erased yet
	}
	return credentials.String(), err
}

// keysChanged keeps the first tenant's key in the clients' settings.
func (s *server) keysChanged(namespace, auth string) error {
	if namespace != firstTenant {
		return nil
	}
	return writeProps(propsName, s.url(s.front), auth)
}
