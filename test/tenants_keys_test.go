package test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// auth reads the line with the key in a file of the data folder.
func auth(t *testing.T, s *server.Server, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Options.Data, name))
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := strings.Cut(string(text), "AUTH=")
	return strings.TrimSpace(key)
}

func TestRotatedKey(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"hello": echoes})
	if got := operate(t, s, "rotate", "guest"); got != auth(t, s, "wskprops") {
		t.Errorf("the new key %q is not the one in wskprops", got)
	}
	if code, _ := status(t, c, "GET", "actions", nil); code != http.StatusUnauthorized {
		t.Errorf("the old key is answered %d", code)
	}
	rotated := as(t, s, auth(t, s, "wskprops"))
	invoke(t, rotated, "hello", map[string]int{})
	s.Kill()
	again := start(t, server.Options{Data: s.Options.Data})
	c.URL, rotated.URL = again.URL, again.URL
	if code, _ := status(t, c, "GET", "actions", nil); code != http.StatusUnauthorized {
		t.Errorf("after a restart the old key is answered %d", code)
	}
	if code, _ := status(t, rotated, "GET", "actions/hello", nil); code != http.StatusOK {
		t.Errorf("after a restart the new key is answered %d", code)
	}
}

// TestVoidKeyEndsItsConnections: also those that wait for something to be sent to them.
func TestVoidKeyEndsItsConnections(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	dial := func(auth string) net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Redis)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		user, key, _ := strings.Cut(auth, ":")
		if _, err := fmt.Fprintf(c, "AUTH %s %s\r\n", user, key); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 5)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "+OK\r\n" {
			t.Fatalf("%q, %v", answer, err)
		}
		return c
	}
	ada, guest := dial(operate(t, s, "create", "ada")), dial(s.Auth)
	operate(t, s, "delete", "ada")
	if err := ada.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := ada.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the deleted tenant's connection reads %d bytes, %v", n, err)
	}
	if _, err := io.WriteString(guest, "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(guest, make([]byte, 7)); err != nil {
		t.Errorf("another tenant's connection: %v", err)
	}
}

// TestVoidKeyAtTheRedisDoor: a connection that was made with a key does not outlive it.
func TestVoidKeyAtTheRedisDoor(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	dial := func(auth string) *redis.Client {
		user, key, _ := strings.Cut(auth, ":")
		c := redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: key, PoolSize: 1, MaxRetries: -1, DialTimeout: time.Minute, ReadTimeout: time.Minute})
		t.Cleanup(func() { c.Close() })
		return c
	}
	old := operate(t, s, "create", "ada")
	ada, guest := dial(old), dial(s.Auth)
	if err := ada.Set(t.Context(), "k", "ada's", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := guest.Get(t.Context(), "k").Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("the guest reads %q (%v)", got, err)
	}
	rotated := dial(operate(t, s, "rotate", "ada"))
	for name, c := range map[string]*redis.Client{"the connection": ada, "a new connection": dial(old)} {
		if got, err := c.Get(t.Context(), "k").Result(); err == nil || errors.Is(err, redis.Nil) {
			t.Errorf("with the old key %s reads %q (%v)", name, got, err)
		}
	}
	if got, err := rotated.Get(t.Context(), "k").Result(); err != nil || got != "ada's" {
		t.Errorf("with the new key k is %q (%v)", got, err)
	}
	operate(t, s, "delete", "ada")
	if got, err := rotated.Get(t.Context(), "k").Result(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("a deleted tenant reads %q (%v)", got, err)
	}
	again := dial(operate(t, s, "create", "ada"))
	if got, err := again.Get(t.Context(), "k").Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("the new ada reads %q (%v)", got, err)
	}
}

// TestDataFolderHoldsNoKeys looks for a tenant's key in the files of a server: it is printed when it is made, and stored nowhere.
func TestDataFolderHoldsNoKeys(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	auth := operate(t, s, "create", "ada")
	putPython(t, as(t, s, auth), map[string]string{"marked-name": echoes})
	_, secret, _ := strings.Cut(auth, ":")
	info, err := os.Stat(s.Options.Data)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data folder is %v (%v)", info.Mode(), err)
	}
	marks := 0
	err = filepath.WalkDir(s.Options.Data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), secret) {
			t.Errorf("the key is in %s", path)
		}
		marks += strings.Count(string(text), "marked-name")
		return err
	})
	if err != nil || marks == 0 {
		t.Errorf("what the tenant has stored is found %d times (%v)", marks, err)
	}
}
