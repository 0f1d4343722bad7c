package controller

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// tokens are the API keys of running activations, in the form of OpenWhisk's: "uuid:secret".
type tokens struct {
	mu      sync.Mutex        // guards holders
	holders map[string]holder // by uuid
}

// holder is who a token speaks for.
type holder struct {
	secret             string
	namespace, subject string
	activation         forerun.ActivationID
}

// issue makes a token for an activation.
func (t *tokens) issue(h holder) string {
	var random [48]byte
	_, _ = rand.Read(random[:]) // never fails
	uuid := hex.EncodeToString(random[:16])
	h.secret = hex.EncodeToString(random[16:])
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holders == nil {
		t.holders = make(map[string]holder)
	}
	t.holders[uuid] = h
	return uuid + ":" + h.secret
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
