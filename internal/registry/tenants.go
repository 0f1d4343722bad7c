package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Tenant is who owns a namespace.
type Tenant struct {
	Namespace string `json:"namespace"`
	Subject   string `json:"subject"`
}

// Credentials are one key of a tenant, in OpenWhisk's form: "UUID:KEY". Only a hash of Key is stored.
type Credentials struct{ UUID, Key string }

func (c Credentials) String() string { return c.UUID + ":" + c.Key }

// uuidLength is that of every UUID; nothing else is looked for in the store.
const uuidLength = 36

// storedKey is what is stored of a key. The key is 256 random bits, so one round of SHA-256 is enough.
type storedKey struct {
	Namespace string `json:"namespace"`
	SHA256    string `json:"sha256"` // of Key, in hex
}

// CreateTenant makes a tenant and its first key. The error is forerun.Exists if the namespace is taken.
func (r *Registry) CreateTenant(ctx context.Context, namespace string) (Credentials, error) {
	if err := forerun.CheckSegment(namespace); err != nil {
		return Credentials{}, err
	}
	data, err := json.Marshal(Tenant{Namespace: namespace, Subject: namespace})
	if err != nil {
		return Credentials{}, forerun.Errorf(forerun.Internal, namespace, "The tenant cannot be stored: %w", err)
	}
	credentials, key := newKey(namespace)
	_, err = r.store.Apply(ctx, state.Txn{
		Expect: []state.Expect{unchanged(tenantRecord(namespace), 0)},
		Ops:    []state.Command{set(tenantRecord(namespace), data), key},
	})
	if isConflict(err) {
		return Credentials{}, forerun.Errorf(forerun.Exists, namespace, "The namespace %s is already taken.", namespace)
	}
	return credentials, err
}

// AddKey gives a tenant one more key.
func (r *Registry) AddKey(ctx context.Context, namespace string) (Credentials, error) {
	credentials, key := newKey(namespace)
	_, err := r.store.Apply(ctx, state.Txn{Ops: []state.Command{key}})
	return credentials, err
}

// FirstTenant returns the first tenant in the order of names, and whether there is one: at the first start there is none.
func (r *Registry) FirstTenant(ctx context.Context) (Tenant, bool, error) {
	for entry, err := range r.store.Scan(ctx, under("tenant/")) {
		if err != nil {
			return Tenant{}, false, err
		}
		var t Tenant
		if err := json.Unmarshal(entry.Data, &t); err != nil {
			return Tenant{}, false, forerun.Errorf(forerun.Internal, entry.Name, "The tenant's record is damaged: %w", err)
		}
		return t, true, nil
	}
	return Tenant{}, false, nil
}

// Authenticate returns the tenant whom a key belongs to. The error is forerun.Unauthorized if the key is not valid; how
// long that takes does not depend on how nearly it is.
func (r *Registry) Authenticate(ctx context.Context, uuid, key string) (Tenant, error) {
	known, ok := r.keys.get(uuid)
	if !ok && len(uuid) == uuidLength {
		epoch := r.keys.begin()
		var err error
		if known, err = r.readKey(ctx, uuid); err != nil {
			return Tenant{}, err
		}
		if known.Namespace != "" {
			r.keys.put(uuid, known, epoch)
		}
	}
	sum := sha256.Sum256([]byte(key))
	if subtle.ConstantTimeCompare(sum[:], known.hash[:]) != 1 || known.Namespace == "" {
		return Tenant{}, forerun.Errorf(forerun.Unauthorized, "", "The supplied authentication is invalid")
	}
	return known.Tenant, nil
}

// knownKey is a key as Authenticate needs it; the zero value is that of no tenant.
type knownKey struct {
	Tenant
	hash [sha256.Size]byte
}

func (r *Registry) readKey(ctx context.Context, uuid string) (knownKey, error) {
	records, err := r.get(ctx, "key/"+uuid)
	if err != nil || records[0].Version == 0 {
		return knownKey{}, err
	}
	var stored storedKey
	if err := json.Unmarshal(records[0].Data, &stored); err != nil {
		return knownKey{}, forerun.Errorf(forerun.Internal, "key "+uuid, "The key's record is damaged: %w", err)
	}
	known := knownKey{Tenant: Tenant{Namespace: stored.Namespace, Subject: stored.Namespace}}
	if n, err := hex.Decode(known.hash[:], []byte(stored.SHA256)); err != nil || n != sha256.Size {
		return knownKey{}, forerun.Errorf(forerun.Internal, "key "+uuid, "The key's record is damaged: it holds no SHA-256.")
	}
	return known, nil
}

// newKey makes random credentials and the command that stores their hash.
func newKey(namespace string) (Credentials, state.Command) {
	var random [48]byte
	_, _ = rand.Read(random[:]) // never fails
	id := random[:16]
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // RFC 9562, version 4
	c := Credentials{
		UUID: fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		Key:  hex.EncodeToString(random[16:]),
	}
	sum := sha256.Sum256([]byte(c.Key))
	data, _ := json.Marshal(storedKey{Namespace: namespace, SHA256: hex.EncodeToString(sum[:])}) // strings always marshal
	return c, set("key/"+c.UUID, data)
}

func tenantRecord(namespace string) string { return "tenant/" + namespace }

func uuidOfRecord(record string) (string, bool) {
	return strings.CutPrefix(record, "key/")
}
