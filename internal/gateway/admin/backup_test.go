package admin

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/backup"
)

func TestBackup(t *testing.T) {
	w := newWorld(t)
	w.want(200, "PUT", "tenants/ada", "")
	w.fill("ada")
	status, body := w.ask(operator, "GET", "backup", "")
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	found := false
	s, err := backup.Read(strings.NewReader(body), func(p backup.Pair) error {
		found = found || strings.Contains(string(p.Key), "state/ada")
		return nil
	})
	if err != nil || !found || s.Version != "v1" || s.Created.IsZero() {
		t.Errorf("%+v, %v; ada's state is in it: %v", s, err, found)
	}
}

// TestBackupThatFails must not look like a whole one.
func TestBackupThatFails(t *testing.T) {
	w := newWorld(t)
	w.api.Pairs = func(context.Context) iter.Seq2[backup.Pair, error] {
		return func(yield func(backup.Pair, error) bool) {
			if yield(backup.Pair{Key: []byte("a")}, nil) {
				yield(backup.Pair{}, errors.New("the disk is gone"))
			}
		}
	}
	defer func() {
		if p, _ := recover().(error); !errors.Is(p, http.ErrAbortHandler) {
			t.Errorf("it ended with %v, which does not cut the connection", p)
		}
	}()
	w.ask(operator, "GET", "backup", "")
}
