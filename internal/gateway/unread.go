package gateway

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// Bounds of what answers that their clients have not read take of the server's memory.
const (
	maxUnread  = 512 << 20   // of one tenant, until it is answered no more large ones
	answerPart = 1 << 20     // of an answer
	partTime   = time.Minute // how long a client may take to read that much
)

// Unread refuses what may have a large answer while a tenant's clients leave too many unread. The error is forerun.TooMany.
func (q *Quotas) Unread(namespace string) error {
	if unread := q.meter(namespace).unread.Load(); unread >= maxUnread {
		return tooMany(1, "Too many large answers are not read yet (bytes: %d, allowed: %d).", unread, maxUnread)
	}
	return nil
}

// Answering returns a writer of the answer to a request of a tenant. A large one counts among the tenant's until the client has read it,
// and is cut off if that takes too long.
func (q *Quotas) Answering(w http.ResponseWriter, namespace string) http.ResponseWriter {
	return &answering{ResponseWriter: w, all: &q.meter(namespace).unread}
}

// answering counts what it writes, and has no patience without end.
type answering struct {
	http.ResponseWriter
	all *atomic.Int64 // bytes of the tenant's answers
}

// Unwrap serves http.ResponseController.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write implements io.Writer.
func (a *answering) Write(b []byte) (sent int, err error) {
	if len(b) <= smallBody {
		return a.ResponseWriter.Write(b)
	}
	a.all.Add(int64(len(b)))
	defer a.all.Add(-int64(len(b)))
	control := http.NewResponseController(a.ResponseWriter)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection serves other requests, too
	for part := range slices.Chunk(b, answerPart) {
		_ = control.SetWriteDeadline(time.Now().Add(partTime)) // a function's connection has none of its own, a writer in a test none at all
		n, err := a.ResponseWriter.Write(part)
		if sent += n; err != nil {
			return sent, err
		}
	}
	return sent, nil
}
