package controller

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// tokens are the API keys of running activations, in the form of OpenWhisk's: "uuid:secret". The secret is a MAC of the uuid
// and the namespace, so that a void token is known for what it was.
type tokens struct {
	key     [32]byte
	mu      sync.Mutex        // guards holders
	holders map[string]holder // by uuid
}

// newTokens returns an empty set of tokens.
func newTokens() *tokens {
	t := &tokens{holders: make(map[string]holder)}
	_, _ = rand.Read(t.key[:]) // never fails
	return t
}

// holder is who a token speaks for.
type holder struct {
	secret             string
	namespace, subject string
	activation         forerun.ActivationID
}

// issue makes a token for an activation.
func (t *tokens) issue(h holder) string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	uuid := hex.EncodeToString(random[:])
	h.secret = t.secret(uuid, h.namespace)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holders[uuid] = h
	return uuid + ":" + h.secret
}

func (t *tokens) secret(uuid, namespace string) string {
	mac := hmac.New(sha256.New, t.key[:])
	_, _ = mac.Write([]byte(uuid + ":" + namespace)) // a hash takes every write
	return hex.EncodeToString(mac.Sum(nil))
}

// issued tells whether a token, void or not, is one that was issued to an activation of the namespace.
func (t *tokens) issued(token, namespace string) bool {
	uuid, secret, _ := strings.Cut(token, ":")
	return subtle.ConstantTimeCompare([]byte(t.secret(uuid, namespace)), []byte(secret)) == 1
}

// revoke makes a token void.
func (t *tokens) revoke(token string) {
	uuid, _, _ := strings.Cut(token, ":")
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.holders, uuid)
}

// find returns the holder of a token that is not void.
func (t *tokens) find(token string) (holder, bool) {
	uuid, secret, _ := strings.Cut(token, ":")
	t.mu.Lock()
	h, ok := t.holders[uuid]
	t.mu.Unlock()
	if !ok || subtle.ConstantTimeCompare([]byte(h.secret), []byte(secret)) != 1 {
		return holder{}, false
	}
	return h, true
}
