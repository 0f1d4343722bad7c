package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// storedDocument is what the operator is shown of a tenant's storage, in bytes.
type storedDocument struct {
	State, Entities, Code, Records, Total int64
	Allowed                               *int64
}

func storedBy(t *testing.T, s *server.Server, tenant string) (d storedDocument) {
	t.Helper()
	if err := json.Unmarshal([]byte(operate(t, s, "get", tenant, "stored")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// redisAs is a client of the Redis door with the key of a tenant.
func redisAs(t *testing.T, s *server.Server, auth string) *redis.Client {
	t.Helper()
	other := *s
	other.Auth = auth
	r := redisClient(&other)
	t.Cleanup(func() { r.Close() })
	return r
}

// TestStorageQuota has a tenant store all that it may, in every way, and frees it again. Its quota holds over kills, a backup and a
// deletion, and another tenant notices nothing.
func TestStorageQuota(t *testing.T) {
	t.Parallel()
	needPackages(t)
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, server.Options{Data: data, Redis: true})
	auth := operate(t, s, "create", "ada", "--stored-megabytes", "1")
	if d := storedBy(t, s, "guest"); d.Allowed == nil || d.Total != 0 {
		t.Errorf("a tenant without a quota of its own stores %+v", d)
	}
	ada, r := as(t, s, auth), redisAs(t, s, auth)
	putPython(t, ada, map[string]string{
		"echo": echoes + "#" + strings.Repeat("c", 100<<10),
		"fill": `import os, redis
def main(args):
    r = redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)
    try:
        r.set("f", "x" * 400_000)
    except redis.exceptions.OutOfMemoryError as e:
        return {"refused": str(e)}
    return {"deleted": r.delete("s0")}
`,
	})
	n := 0
	var refusal error
	for refusal == nil && n < 20 {
		refusal = r.Set(t.Context(), "s"+string(rune('0'+n)), strings.Repeat("x", 100<<10), 0).Err()
		n++
	}
	if refusal == nil || !strings.HasPrefix(refusal.Error(), "OOM ") || !strings.Contains(refusal.Error(), "ada may store 1.0 MiB, stores") || !strings.Contains(refusal.Error(), "code 100.") {
		t.Fatalf("%d writes, then %v", n, refusal)
	}
	d := storedBy(t, s, "ada")
	if d.State < 700<<10 || d.Code < 100<<10 || d.Entities < 100 || d.Total > 1<<20 || *d.Allowed != 1<<20 {
		t.Errorf("stored: %+v", d)
	}
	large := map[string]any{"exec": map[string]string{"kind": "python:3", "code": echoes}, "parameters": []map[string]string{{"key": "p", "value": strings.Repeat("p", 200<<10)}}}
	if code, answer := status(t, ada, "PUT", "actions/more", large); code != http.StatusInsufficientStorage || !strings.Contains(answer, "may store 1.0 MiB") {
		t.Errorf("parameters: %d %s", code, answer)
	}
	if got := invoke(t, ada, "fill", map[string]int{}); !strings.Contains(string(got.Response.Result), "may store") {
		t.Errorf("a function's write: %s", got.Response.Result)
	}
	for size := 64 << 10; size > 16; size /= 2 { // now nothing else fits
		_ = r.Set(t.Context(), fmt.Sprint("t", size), strings.Repeat("x", size), 0).Err()
	}
	d = storedBy(t, s, "ada")
	if code, _, answer := repeatable(t, ada, "echo?blocking=true", "key", "{}"); code != http.StatusInsufficientStorage || !strings.Contains(answer, "idempotency keys 0.0") {
		t.Errorf("an idempotency key: %d %s", code, answer)
	}
	putPython(t, client(t, s), map[string]string{"echo": echoes})
	equalJSON(t, invoke(t, client(t, s), "echo", map[string]int{"n": 1}).Response.Result, `{"n":1}`)
	equalJSON(t, invoke(t, ada, "echo", map[string]int{"n": 1}).Response.Result, `{"n":1}`) // she may still invoke
	if err := redisAs(t, s, s.Auth).Set(t.Context(), "a", strings.Repeat("x", 2<<20), 0).Err(); err != nil {
		t.Errorf("another tenant: %v", err)
	}

	s.Kill()
	s = start(t, server.Options{Data: data, Redis: true})
	r = redisAs(t, s, auth)
	if err := r.Set(t.Context(), "more", strings.Repeat("x", 200<<10), 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM ") {
		t.Errorf("after a kill: %v", err)
	}
	eventually(t, func() bool { now := storedBy(t, s, "ada"); return now.State == d.State && now.Code == d.Code }) // it has counted again
	file, said, err := operator(t, s, "backup", t.TempDir())
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if _, said, err := operator(t, s, "restore", file, "--data", restored); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	copied := start(t, server.Options{Data: restored})
	eventually(t, func() bool { now := storedBy(t, copied, "ada"); return now.State == d.State && now.Code == d.Code })

	if err := r.Del(t.Context(), "s0", "s1", "s2", "s3").Err(); err != nil {
		t.Fatal(err)
	}
	ada = as(t, s, auth)
	equalJSON(t, invoke(t, ada, "fill", map[string]int{}).Response.Result, `{"deleted":0}`)
	operate(t, s, "update", "ada", "--stored-megabytes", "none")
	if code, answer := status(t, ada, "PUT", "actions/more", large); code != http.StatusOK {
		t.Errorf("without a quota: %d %s", code, answer)
	}
	operate(t, s, "delete", "ada")
	operate(t, s, "create", "ada")
	if d := storedBy(t, s, "ada"); d.Total != 0 {
		t.Errorf("the next tenant of the same name stores %+v", d)
	}
}
