package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGate shuts a gate while a request is inside.
func TestGate(t *testing.T) {
	g := NewGate()
	inside, goOn := make(chan struct{}), make(chan struct{})
	handler := g.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(inside)
		<-goOn
		w.WriteHeader(http.StatusTeapot)
	}))
	first := httptest.NewRecorder()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		handler.ServeHTTP(first, httptest.NewRequest(http.MethodGet, "/", nil))
	}()
	<-inside
	if err := g.Open(); err != nil {
		t.Errorf("before it is shut: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Shut(ctx) // gives up at once
	late := httptest.NewRecorder()
	handler.ServeHTTP(late, httptest.NewRequest(http.MethodGet, "/", nil))
	if late.Code != http.StatusServiceUnavailable || !strings.Contains(late.Body.String(), "shutting down") || late.Header().Get("Retry-After") == "" {
		t.Errorf("after it was shut: %d %s", late.Code, late.Body)
	}
	close(goOn)
	<-answered
	<-g.empty
	if first.Code != http.StatusTeapot {
		t.Errorf("who was inside is answered %d", first.Code)
	}
}

// TestEmptyGate shuts a gate with nobody inside.
func TestEmptyGate(t *testing.T) {
	g := NewGate()
	g.Shut(t.Context())
	if g.Open() == nil {
		t.Error("it is open")
	}
}
