package forerun

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"sync"
	"weak"
)

// Digest identifies what an execution of an action runs: Action.Digest.
type Digest [sha256.Size]byte

// Annotations that change what an execution is or may reach.
var effectiveAnnotations = []string{"conductor", "egress", "keep-process", "provide-api-key", "read-hosts"}

// Digest identifies what an activation of the action would execute: its code, settings, bound parameters, and the
// annotations that matter to it. It names a sandbox's content. It takes a hash over the code: Digests remembers it.
func (a *Action) Digest() Digest {
	annotations := make([]json.RawMessage, len(effectiveAnnotations))
	for i, key := range effectiveAnnotations {
		annotations[i] = Lookup(a.Annotations, key)
	}
	var hidden []json.RawMessage
	for i := range a.Parameters {
		if a.Parameters[i].Hidden != nil {
			hidden = append(hidden, a.Parameters[i].Hidden.value)
		}
	}
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(struct {
		Name        Name
		Exec        Exec
		Parameters  []KeyValue
		Hidden      []json.RawMessage
		Limits      Limits
		Annotations []json.RawMessage
	}{a.Name, a.Exec, a.Parameters, hidden, a.Limits, annotations}) // a hash takes every write
	return Digest(h.Sum(nil))
}

// Digests remembers the digests of actions. It does not keep actions alive. Its zero value is ready, and may be used
// concurrently.
type Digests struct {
	mu    sync.RWMutex // guards known
	known map[weak.Pointer[Action]]Digest
}

// maxDigests bounds what is remembered.
const maxDigests = 4096

// Of is the digest of an action that does not change any more.
func (d *Digests) Of(a *Action) Digest {
	key := weak.Make(a)
	d.mu.RLock()
	digest, ok := d.known[key]
	d.mu.RUnlock()
	if ok {
		return digest
	}
	digest = a.Digest()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= maxDigests {
		d.known = make(map[weak.Pointer[Action]]Digest)
	}
	d.known[key] = digest
	return digest
}

// Deployed identifies one deployment of what an action executes. It is the part of a memo key that an update changes, also one with the
// same content: a function is told its version, and who deploys it again wants what is known of it forgotten.
func (d *Digests) Deployed(a *Action) Digest {
	digest := d.Of(a)
	at := binary.NativeEndian.Uint64(digest[:]) ^ uint64(a.Updated.UnixNano())
	binary.NativeEndian.PutUint64(digest[:], at)
	return digest
}
