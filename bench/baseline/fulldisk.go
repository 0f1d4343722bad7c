package baseline

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

const (
	diskMB  = 256
	chunk   = 512 << 10       // bytes of one record
	patient = 2 * time.Minute // for the server to serve again
)

// measureFullDisk has a tenant without a quota fill a disk of 256 MB, and remove all of it. It takes the time from then until the
// server answers another tenant's call. Root alone may mount a disk; others get no row.
func measureFullDisk(ctx context.Context, b *bench) error {
	if os.Geteuid() != 0 {
		b.progress("fulldisk: left out, as only root may mount a disk")
		return nil
	}
	var took harness.Sample
	for i := range 3 {
		d, err := b.emptied(ctx, fmt.Sprintf("disk-%d", i))
		if err != nil {
			return err
		}
		took.Add(d)
	}
	b.row(harness.Row{Case: "a disk that a tenant filled and emptied", Metric: "longest of three until another tenant is served", Unit: "ms", Value: harness.Number(took.Quantile(1)), Target: harness.Text("<=10000")})
	return nil
}

// emptied fills and empties one disk, and returns how long the other tenant was refused afterwards.
func (b *bench) emptied(ctx context.Context, name string) (took time.Duration, err error) {
	disk := filepath.Join(b.folder, name)
	if err := os.Mkdir(disk, 0o755); err != nil {
		return 0, err
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755", diskMB)); err != nil {
		return 0, fmt.Errorf("a disk cannot be mounted: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Unmount(disk, 0)) }()
	o := inTurn(b.binary, filepath.Join(disk, "data"), "--stored-megabytes", "none")
	o.Redis = true
	s, err := server.Start(ctx, o)
	if err != nil {
		return 0, err
	}
	defer stop(s)
	client := s.Client(1)
	defer client.Close()
	other, err := harness.NewTenant(ctx, s, client, "other")
	if err != nil {
		return 0, err
	}
	if err := b.python().put(ctx, other, "calm", 0); err != nil {
		return 0, err
	}
	user, key, _ := strings.Cut(s.Auth, ":")
	r := redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: key, MaxRetries: -1, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	defer r.Close()
	records, err := fillDisk(ctx, r)
	if err != nil {
		return 0, err
	}
	if status, err := callCalm(ctx, other); err != nil || status != http.StatusInsufficientStorage {
		return 0, fmt.Errorf("a call on a full disk is answered %d, %w", status, err)
	}
	for i := range records {
		if err := r.Del(ctx, "k"+strconv.Itoa(i)).Err(); err != nil {
			return 0, err
		}
	}
	for begin := time.Now(); time.Since(begin) < patient; time.Sleep(10 * time.Millisecond) {
		status, err := callCalm(ctx, other)
		if err != nil || status == http.StatusOK {
			return time.Since(begin), err
		}
	}
	return 0, fmt.Errorf("the server does not serve %s after the disk was emptied", patient)
}

// fillDisk stores records k0, k1 ... of noise until the server refuses one, and returns how many it took.
func fillDisk(ctx context.Context, r *redis.Client) (records int, err error) {
	noise := make([]byte, chunk)
	for ; ; records++ {
		_, _ = rand.Read(noise) // crypto/rand.Read never fails (Go 1.24)
		switch err := r.Set(ctx, "k"+strconv.Itoa(records), noise, 0).Err(); {
		case err == nil:
		case strings.HasPrefix(err.Error(), "MISCONF"):
			return records, nil
		default:
			return records, err
		}
	}
}

func callCalm(ctx context.Context, c *server.Client) (status int, err error) {
	status, _, err = c.Do(ctx, http.MethodPost, "actions/calm?blocking=true", map[string]string{})
	return status, err
}
