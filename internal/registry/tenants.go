package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Tenant is who owns a namespace.
type Tenant struct {
	Namespace string      `json:"namespace"`
	Subject   string      `json:"subject"`
	Created   time.Time   `json:"created,omitzero"`   // unknown for those of the first versions
	Suspended time.Time   `json:"suspended,omitzero"` // zero: the tenant is not suspended
	Quotas    Quotas      `json:"quotas,omitzero"`
	Limits    Limits      `json:"-"`               // that come of the quotas
	Egress    egress.List `json:"egress,omitzero"` // what its functions may reach
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

// System is the namespace of what belongs to no tenant: the public packages.
const System = "whisk.system"

// CreateTenant makes a tenant and its first key. The error is forerun.Exists if the namespace is taken, or is the system's, or
// what an earlier tenant of that name had is not erased yet.
func (r *Registry) CreateTenant(ctx context.Context, namespace string, quotas Quotas) (Credentials, error) {
	if err := forerun.CheckSegment(namespace); err != nil {
		return Credentials{}, err
	}
	if namespace == System {
		return Credentials{}, forerun.Errorf(forerun.Exists, namespace, "The namespace %s is already taken.", namespace)
	}
	if err := quotas.check(); err != nil {
		return Credentials{}, err
	}
	t := Tenant{Namespace: namespace, Subject: namespace, Created: time.Now().UTC(), Quotas: quotas, Limits: quotas.limits(r.defaults)}
	data, err := encodeTenant(t)
	if err != nil {
		return Credentials{}, err
	}
	credentials, key := newKey(namespace)
	_, err = r.store.Apply(ctx, state.Txn{
		Expect: []state.Expect{unchanged(tenantRecord(namespace), 0), unchanged(goneRecord(namespace), 0)},
		Ops:    []state.Command{set(tenantRecord(namespace), data), key},
	})
	if isConflict(err) {
		return Credentials{}, forerun.Errorf(forerun.Exists, namespace, "The namespace %s is already taken.", namespace)
	}
	r.tenants.forget(namespace)
	if err == nil {
		r.inForce.Store(namespace, t)
	}
	return credentials, err
}

// Tenant finds a tenant. The error is forerun.NotFound if there is none of that name.
func (r *Registry) Tenant(ctx context.Context, namespace string) (Tenant, error) {
	if known, ok := r.tenants.get(namespace); ok {
		return known, nil
	}
	epoch := r.tenants.begin(namespace)
	t, version, err := r.readTenant(ctx, namespace)
	if err != nil {
		return Tenant{}, err
	}
	if version == 0 {
		return Tenant{}, noTenant(namespace)
	}
	return r.tenants.put(namespace, t, epoch), nil
}

// Tenants lists the tenants in the order of their names.
func (r *Registry) Tenants(ctx context.Context) ([]Tenant, error) {
	var list []Tenant
	for entry, err := range r.store.Scan(ctx, under("tenant/")) {
		if err != nil {
			return nil, err
		}
		t, err := r.decodeTenant(entry.Name, entry.Data)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// LoadTenants learns how much each tenant may store and reach. It is called once, before tenants store anything.
func (r *Registry) LoadTenants(ctx context.Context) error {
	tenants, err := r.Tenants(ctx)
	for _, t := range tenants {
		r.inForce.Store(t.Namespace, t)
	}
	return err
}

// SetQuotas changes the quotas of a tenant: those that change names; the others stay.
func (r *Registry) SetQuotas(ctx context.Context, namespace string, change Quotas) (Tenant, error) {
	if err := change.check(); err != nil {
		return Tenant{}, err
	}
	return r.changeTenant(ctx, namespace, func(t *Tenant) ([]state.Command, error) {
		t.Quotas = change.over(t.Quotas)
		t.Limits = t.Quotas.limits(r.defaults)
		return nil, nil
	})
}

// SetEgress changes what a tenant's functions may reach. Sandboxes that have begun keep to what held before.
func (r *Registry) SetEgress(ctx context.Context, namespace string, list egress.List) error {
	_, err := r.changeTenant(ctx, namespace, func(t *Tenant) ([]state.Command, error) {
		t.Egress = list
		return nil, nil
	})
	return err
}

// Egress is what a tenant's functions may reach: nothing if there is no such tenant. It asks no store.
func (r *Registry) Egress(namespace string) egress.List {
	if t, ok := r.inForce.Load(namespace); ok {
		return t.(Tenant).Egress
	}
	return egress.List{}
}

// AddKey gives a tenant one more key.
func (r *Registry) AddKey(ctx context.Context, namespace string) (Credentials, error) {
	credentials, key := newKey(namespace)
	_, err := r.changeTenant(ctx, namespace, func(*Tenant) ([]state.Command, error) { return []state.Command{key}, nil })
	return credentials, err
}

// RotateKeys gives a tenant a new key and makes all its others void before it returns.
func (r *Registry) RotateKeys(ctx context.Context, namespace string) (Credentials, error) {
	credentials, key := newKey(namespace)
	var old []string
	_, err := r.changeTenant(ctx, namespace, func(*Tenant) (_ []state.Command, err error) {
		if old, err = r.keysOf(ctx, namespace); err != nil || len(old) == 0 {
			return []state.Command{key}, err
		}
		return []state.Command{key, del(old...)}, nil
	})
	r.forgetKeys(old)
	return credentials, err
}

// changeTenant rewrites a tenant's record, together with what else change asks for. Whatever concerns a tenant's keys
// goes through it, so that no key is added while the tenant is deleted. change may be called more than once.
func (r *Registry) changeTenant(ctx context.Context, namespace string, change func(*Tenant) ([]state.Command, error)) (Tenant, error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	var err error
	for range maxTries {
		var t Tenant
		if t, err = r.tryChange(ctx, namespace, change); !isConflict(err) {
			return t, err
		}
	}
	return Tenant{}, changedMeanwhile(forerun.Name{Namespace: namespace}, err)
}

func (r *Registry) tryChange(ctx context.Context, namespace string, change func(*Tenant) ([]state.Command, error)) (Tenant, error) {
	t, version, err := r.readTenant(ctx, namespace)
	if err != nil {
		return Tenant{}, err
	}
	if version == 0 {
		return Tenant{}, noTenant(namespace)
	}
	ops, err := change(&t)
	if err != nil {
		return Tenant{}, err
	}
	data, err := encodeTenant(t)
	if err != nil {
		return Tenant{}, err
	}
	_, err = r.store.Apply(ctx, state.Txn{
		Expect: []state.Expect{unchanged(tenantRecord(namespace), version)},
		Ops:    append(ops, set(tenantRecord(namespace), data)), Owed: true,
	})
	r.tenants.forget(namespace)
	if err == nil {
		r.inForce.Store(namespace, t)
	}
	return t, err
}

// readTenant reads a tenant past the cache; version 0 if there is none.
func (r *Registry) readTenant(ctx context.Context, namespace string) (Tenant, forerun.Version, error) {
	records, err := r.get(ctx, tenantRecord(namespace))
	if err != nil || records[0].Version == 0 {
		return Tenant{}, 0, err
	}
	t, err := r.decodeTenant(tenantRecord(namespace), records[0].Data)
	return t, records[0].Version, err
}

// keysOf lists the records of a tenant's keys.
func (r *Registry) keysOf(ctx context.Context, namespace string) ([]string, error) {
	var names []string
	for entry, err := range r.store.Scan(ctx, under("key/")) {
		if err != nil {
			return nil, err
		}
		var stored storedKey
		if err := json.Unmarshal(entry.Data, &stored); err == nil && stored.Namespace == namespace { // a damaged one opens nothing
			names = append(names, entry.Name)
		}
	}
	return names, nil
}

// forgetKeys drops what is known of keys whose records are gone, before anybody else can use it.
func (r *Registry) forgetKeys(records []string) {
	for _, record := range records {
		if uuid, ok := uuidOfRecord(record); ok {
			r.keys.forget(uuid)
			r.voids.tell(uuid)
		}
	}
}

// ValidKey reports whether a key that was authenticated once still is one. The error is forerun.Forbidden if its tenant is suspended.
func (r *Registry) ValidKey(ctx context.Context, uuid string) (bool, error) {
	known, ok := r.keys.get(uuid)
	if !ok {
		var err error
		if known, err = r.readKey(ctx, uuid); err != nil {
			return false, err
		}
	}
	return known.Namespace != "", known.Active()
}

// Authenticate returns the tenant whom a key belongs to. The error is forerun.Unauthorized if the key is not valid; how
// long that takes does not depend on how nearly it is. It is forerun.Forbidden, beside the tenant, if that is suspended.
func (r *Registry) Authenticate(ctx context.Context, uuid, key string) (Tenant, error) {
	known, ok := r.keys.get(uuid)
	if !ok && len(uuid) == uuidLength {
		epoch := r.keys.begin(uuid)
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
	return known.Tenant, known.Active()
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
	tenant, _, err := r.readTenant(ctx, stored.Namespace)
	known.Suspended = tenant.Suspended
	return known, err
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

func encodeTenant(t Tenant) ([]byte, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return nil, forerun.Errorf(forerun.Internal, t.Namespace, "The tenant cannot be stored: %w", err)
	}
	return data, nil
}

func (r *Registry) decodeTenant(record string, data []byte) (t Tenant, err error) {
	if err := json.Unmarshal(data, &t); err != nil {
		return Tenant{}, forerun.Errorf(forerun.Internal, record, "The tenant's record is damaged: %w", err)
	}
	t.Limits = t.Quotas.limits(r.defaults)
	return t, nil
}
