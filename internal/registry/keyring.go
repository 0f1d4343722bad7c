package registry

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// Keyring holds the keys under which secret parameters are stored: AES-256 in Galois/Counter mode with random nonces. A sealed value names
// its key, so that new values can be sealed under another key while old ones stay readable.
type Keyring struct {
	current string // the id of the key that seals
	keys    map[string]cipher.AEAD
}

// sealedForm begins every sealed value; another form would begin otherwise.
const sealedForm = "1"

// NewKey makes a line of a keyring: the id of a random key and the key, in hexadecimal digits.
func NewKey() string {
	var random [4 + 32]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:4]) + " " + hex.EncodeToString(random[4:]) + "\n"
}

// ParseKeyring reads lines that NewKey made. The first is the key that seals. The error is forerun.Invalid and shows no key.
func ParseKeyring(text string) (*Keyring, error) {
	k := &Keyring{keys: make(map[string]cipher.AEAD)}
	for line := range strings.Lines(text) {
		id, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		if id == "" {
			continue
		}
		key, err := hex.DecodeString(digits)
		if err != nil || len(key) != 32 || k.keys[id] != nil || strings.Contains(id, ".") {
			return nil, forerun.Errorf(forerun.Invalid, "keyring", "The keys of secret parameters are damaged: every line must be an ID and 64 hexadecimal digits, and no ID may come twice.")
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if k.keys[id], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
		if k.current == "" {
			k.current = id
		}
	}
	if k.current == "" {
		return nil, forerun.Errorf(forerun.Invalid, "keyring", "There is no key for secret parameters.")
	}
	return k, nil
}

// seal encrypts a value, which only unseal with the same place can read.
func (k *Keyring) seal(place string, value []byte) (string, error) {
	if k == nil {
		return "", forerun.Errorf(forerun.Unavailable, "", "This server has no key for secret parameters.")
	}
	sealed := k.keys[k.current].Seal(nil, nil, value, []byte(place))
	return strings.Join([]string{sealedForm, k.current, base64.RawStdEncoding.EncodeToString(sealed)}, "."), nil
}

// unseal is the inverse of seal.
func (k *Keyring) unseal(place, sealed string) (json.RawMessage, error) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 3 || parts[0] != sealedForm {
		return nil, forerun.Errorf(forerun.Internal, "", "Its record is damaged. Set the parameter again.")
	}
	if k == nil || k.keys[parts[1]] == nil {
		return nil, forerun.Errorf(forerun.Unavailable, "", "It is sealed with the key %s, which the file secretkeys of the data folder does not hold. Put that key back, or set the parameter again.", parts[1])
	}
	data, err := base64.RawStdEncoding.DecodeString(parts[2])
	if err == nil {
		data, err = k.keys[parts[1]].Open(nil, nil, data, []byte(place))
	}
	if err != nil {
		return nil, forerun.Errorf(forerun.Internal, "", "It does not fit the key %s. Set the parameter again.", parts[1])
	}
	return data, nil
}

// storedParameter is a parameter as it is stored.
type storedParameter struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"` // null if it is sealed
	Init   bool            `json:"init,omitempty"`
	Sealed string          `json:"sealed,omitempty"` // the value of a secret parameter
}

// sealAll makes of parameters what is stored in a record.
func (k *Keyring) sealAll(record string, kvs []forerun.KeyValue) ([]storedParameter, error) {
	var list []storedParameter
	for i := range kvs {
		kv := &kvs[i]
		stored := storedParameter{Key: kv.Key, Value: kv.Value, Init: kv.Init}
		switch {
		case kv.Hidden == nil:
		case kv.Hidden.Sealed != "": // it comes from this record
			stored.Sealed = kv.Hidden.Sealed
		default:
			value, err := kv.Reveal()
			if err != nil {
				return nil, err
			}
			if stored.Sealed, err = k.seal(place(record, kv.Key), value); err != nil {
				return nil, err
			}
		}
		list = append(list, stored)
	}
	return list, nil
}

// unsealAll is the inverse of sealAll. A value that cannot be unsealed is an error where it is used.
func (k *Keyring) unsealAll(record, owner string, list []storedParameter) []forerun.KeyValue {
	var kvs []forerun.KeyValue
	for _, stored := range list {
		kv := forerun.KeyValue{Key: stored.Key, Value: stored.Value, Init: stored.Init}
		if stored.Sealed != "" {
			value, err := k.unseal(place(record, stored.Key), stored.Sealed)
			kv.Secret, kv.Hidden = true, forerun.Unsealed(owner, stored.Sealed, value, err)
		}
		kvs = append(kvs, kv)
	}
	return kvs
}

// place binds a sealed value to its tenant, entity and parameter: it cannot be read anywhere else.
func place(record, key string) string { return record + "\x00" + key }
