package admin

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"forerun.dev/forerun/internal/backup"
)

// backup answers GET backup with all that the store holds, in the form of package backup. One that is not sent whole ends
// with a cut connection.
func (a *API) backup(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	out := &counted{w: w}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="forerun-%s.backup"`, began.UTC().Format("20060102-150405")))
	err := backup.Write(out, backup.Header{Created: began.UTC(), Version: a.Version}, a.Pairs(r.Context()))
	if err != nil {
		a.Log.Error("a backup was not sent whole", "bytes", out.sent, "error", err)
		panic(http.ErrAbortHandler) // so that the client knows
	}
	a.Log.Info("a backup was taken", "bytes", out.sent, "seconds", time.Since(began).Seconds())
	return nil
}

// counted counts what is written.
type counted struct {
	w    io.Writer
	sent int64
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.sent += int64(n)
	return n, err
}
