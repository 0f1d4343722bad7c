package controller

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"maps"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// Speaker is the activation for which a token speaks.
type Speaker struct {
	Namespace, Subject string
	Activation         forerun.ActivationID
	Rights             forerun.Rights
	outside            bool // the token is accepted in requests from outside the activation's sandbox
}

// tokens are the API keys of running activations, in the form of OpenWhisk's: "uuid:secret". The uuid is the activation's id, and the
// secret a MAC of it and the namespace, so that a void token is known for what it was.
type tokens struct {
	key     [32]byte
	macs    sync.Pool  // of *mac
	mu      sync.Mutex // guards holders
	holders map[forerun.ActivationID]Speaker
}

// newTokens returns an empty set of tokens.
func newTokens() *tokens {
	t := &tokens{holders: make(map[forerun.ActivationID]Speaker)}
	_, _ = rand.Read(t.key[:]) // never fails
	t.macs.New = func() any { return &mac{Hash: hmac.New(sha256.New, t.key[:])} }
	return t
}

// issue makes the token of an activation; one without rights has none.
func (t *tokens) issue(h Speaker) string {
	if h.Rights == 0 {
		return ""
	}
	t.mu.Lock()
	t.holders[h.Activation] = h
	t.mu.Unlock()
	token := make([]byte, 0, len(h.Activation)+1+hex.EncodedLen(sha256.Size))
	token = append(append(token, h.Activation...), ':')
	return string(t.appendSecret(token, string(h.Activation), h.Namespace))
}

// appendSecret appends the secret of an activation's token.
func (t *tokens) appendSecret(to []byte, uuid, namespace string) []byte {
	m := t.macs.Get().(*mac)
	defer t.macs.Put(m)
	m.Reset()
	_, _ = m.Write(append(append(append(m.room[:0], uuid...), ':'), namespace...)) // a hash takes every write
	return hex.AppendEncode(to, m.Sum(m.room[:0]))
}

// mac makes secrets, one after the other: to make it takes longer than a secret does.
type mac struct {
	hash.Hash
	room [128]byte // for ids and namespaces of usual length
}

// issued tells whether a token, void or not, is one that was issued to an activation of the namespace.
func (t *tokens) issued(token, namespace string) bool {
	uuid, secret, _ := strings.Cut(token, ":")
	return subtle.ConstantTimeCompare(t.appendSecret(nil, uuid, namespace), []byte(secret)) == 1
}

// revoke makes the token of an activation void.
func (t *tokens) revoke(activation forerun.ActivationID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.holders, activation)
}

// revokeAll makes the tokens of all activations of a namespace void.
func (t *tokens) revokeAll(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.holders, func(_ forerun.ActivationID, h Speaker) bool { return h.Namespace == namespace })
}

// holder returns the holder of an activation's token, unless that is void.
func (t *tokens) holder(activation forerun.ActivationID) (Speaker, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.holders[activation]
	return h, ok
}
