package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

// reader is the writer of an answer whose client reads a part when it is let to.
type reader struct {
	*httptest.ResponseRecorder
	writing  chan struct{} // has one when a part is there to be read
	read     chan error    // what becomes of it
	deadline time.Time
}

func newReader() *reader {
	return &reader{ResponseRecorder: httptest.NewRecorder(), writing: make(chan struct{}), read: make(chan error)}
}

func (r *reader) SetWriteDeadline(t time.Time) error {
	r.deadline = t
	return nil
}

func (r *reader) Write(b []byte) (int, error) {
	r.writing <- struct{}{}
	if err := <-r.read; err != nil {
		return 0, err
	}
	return r.ResponseRecorder.Write(b)
}

// TestUnreadAnswersOfATenantAreBounded leaves a large answer unread: it counts until it is read, or given up.
func TestUnreadAnswersOfATenantAreBounded(t *testing.T) {
	q := newQuotas(t, registry.Quotas{})
	q.meter("ada").unread.Add(maxUnread - 2*answerPart) // of others
	for name, becomes := range map[string][]error{"read": {nil, nil}, "given up": {nil, os.ErrDeadlineExceeded}} {
		client, answered := newReader(), make(chan error)
		go func() {
			_, err := q.Answering(client, "ada").Write(make([]byte, 2*answerPart))
			answered <- err
		}()
		var last error
		for _, last = range becomes {
			<-client.writing
			if time.Until(client.deadline) <= 0 {
				t.Errorf("%s: the client is waited for until %v", name, client.deadline)
			}
			if err := q.Unread("ada"); forerun.KindOf(err) != forerun.TooMany {
				t.Errorf("%s: beyond the bound: %v", name, err)
			}
			if _, err := q.Invocation(t.Context(), "ada"); forerun.KindOf(err) != forerun.TooMany {
				t.Errorf("%s: an invocation beyond the bound: %v", name, err)
			}
			if err := q.Unread("bob"); err != nil {
				t.Errorf("%s: another tenant's: %v", name, err)
			}
			client.deadline = time.Time{}
			client.read <- last
		}
		if err := <-answered; !errors.Is(err, last) {
			t.Errorf("%s: %v", name, err)
		}
		if err := q.Unread("ada"); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
		if !client.deadline.IsZero() {
			t.Errorf("%s: the connection's next answer has a deadline", name)
		}
	}
}

// TestSmallAnswersAreNotCounted writes one that is waited for as long as it takes.
func TestSmallAnswersAreNotCounted(t *testing.T) {
	q, w := newQuotas(t, registry.Quotas{}), httptest.NewRecorder()
	writer := q.Answering(w, "ada")
	if n, err := writer.Write(make([]byte, smallBody)); n != smallBody || err != nil || w.Body.Len() != smallBody {
		t.Errorf("%d bytes of %d were written: %v", n, w.Body.Len(), err)
	}
	if err := http.NewResponseController(writer).Flush(); err != nil {
		t.Errorf("what the writer is made of cannot be reached: %v", err)
	}
}
