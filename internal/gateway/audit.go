package gateway

import (
	"net/http"

	"forerun.dev/forerun/internal/audit"
)

// Note writes an entry of the audit log for a request that came through the front door: who made it, in which namespace, and the status of
// the answer.
func Note(r *http.Request, who, namespace string, status int) {
	NoteDetail(r, who, namespace, status, "")
}

// NoteDetail is Note for a request of which the entry also says what it sets.
func NoteDetail(r *http.Request, who, namespace string, status int, detail string) {
	note(r, audit.Entry{Who: who, Namespace: namespace, Action: r.Method, Status: status, Detail: detail})
}

// NoteFailure notes that a request showed credentials that are not accepted.
func NoteFailure(r *http.Request) {
	uuid, _, _ := r.BasicAuth()
	note(r, audit.Entry{Who: audit.KeyOf(uuid), Action: audit.Authenticate, Status: http.StatusUnauthorized})
}

func note(r *http.Request, e audit.Entry) {
	p, ok := r.Context().Value(passKey{}).(*pass)
	if !ok {
		return
	}
	e.Object, e.Request, e.Peer, e.Forwarded = r.URL.EscapedPath(), p.transaction, r.RemoteAddr, r.Header.Get("X-Forwarded-For")
	p.audit.Note(e)
}

// Who returns the caller's name in the audit log.
func (c *Caller) Who() string {
	if c.Cause != "" {
		return "activation " + string(c.Cause)
	}
	return audit.KeyOf(c.key)
}
