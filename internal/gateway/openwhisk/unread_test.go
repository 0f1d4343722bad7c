package openwhisk

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// client is the writer of an answer.
type client struct {
	*httptest.ResponseRecorder
	deadline time.Time
	reads    func() // what happens as it is to read
	length   int    // of what it has read
}

func (c *client) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *client) Write(b []byte) (int, error) {
	c.reads()
	c.length += len(b)
	return len(b), nil
}

// TestLargeAnswerIsNotKeptForEver has a client for whom a large answer does not wait longer than it may.
func TestLargeAnswerIsNotKeptForEver(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	r := httptest.NewRequestWithContext(t.Context(), "POST", actions+"echo?blocking=true", strings.NewReader(`{"large":"`+strings.Repeat("x", 1<<20)+`"}`))
	r.SetBasicAuth(w.auth.UUID, w.auth.Key)
	asked := newClient(t)
	w.door.ServeHTTP(asked, r)
	if asked.Code != http.StatusOK || !asked.deadline.IsZero() {
		t.Errorf("status %d, and the next answer is waited for until %v", asked.Code, asked.deadline)
	}
}

// TestUnreadAnswersRefuseOthers asks while a tenant's clients have not read as much as the tenant may have.
func TestUnreadAnswersRefuseOthers(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	other := newClient(t)
	other.reads = func() {
		for request, status := range map[string]int{
			"GET " + actions + "echo":  http.StatusTooManyRequests,
			"POST " + actions + "echo": http.StatusTooManyRequests,
			"DELETE " + actions + "no": http.StatusNotFound,
		} {
			method, path, _ := strings.Cut(request, " ")
			got := w.request(method, path, "")
			if got.status != status || (status == http.StatusTooManyRequests) != strings.Contains(got.body, "large answers are not read yet") {
				t.Errorf("%s: %d %s", request, got.status, got.body)
			}
		}
		other.reads = func() {}
	}
	if _, err := w.api.Quotas.Answering(other, "guest").Write(make([]byte, 512<<20)); err != nil {
		t.Error(err)
	}
	if got := w.request("GET", actions+"echo", ""); got.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}

// TestLargeItemsAreSentOneByOne lists some while a tenant may have no more than one of them unread.
func TestLargeItemsAreSentOneByOne(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	const items, large = 4, 200_000
	value := `"` + strings.Repeat("x", large) + `"`
	for i := range items {
		w.must(w.request("POST", actions+"echo?blocking=true", `{"large":`+value+`}`))
		w.pack(fmt.Sprintf("p%d", i), `{"annotations":[{"key":"large","value":`+value+`}]}`)
		w.deploy(fmt.Sprintf("p0/a%d", i), "echo", "large", value)
	}
	others := make([]byte, 512<<20-2*large)
	for _, path := range []string{"activations?docs=true", "actions", "packages", "packages/p0"} {
		listed, busy := newClient(t), newClient(t)
		listed.reads = func() {
			if err := w.api.Quotas.Unread("guest"); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		busy.reads = func() {
			busy.reads = func() {}
			r := httptest.NewRequestWithContext(t.Context(), "GET", namespaces+"_/"+path, nil)
			r.SetBasicAuth(w.auth.UUID, w.auth.Key)
			w.door.ServeHTTP(listed, r)
		}
		if _, err := w.api.Quotas.Answering(busy, "guest").Write(others); err != nil {
			t.Error(err)
		}
		if listed.Code != http.StatusOK || listed.length < items*large {
			t.Errorf("%s: status %d, %d bytes", path, listed.Code, listed.length)
		}
	}
}

// newClient makes one that is to be waited for, but not for ever.
func newClient(t *testing.T) *client {
	c := &client{ResponseRecorder: httptest.NewRecorder()}
	c.reads = func() {
		if time.Until(c.deadline) <= 0 {
			t.Errorf("the client is waited for until %v", c.deadline)
		}
	}
	return c
}
