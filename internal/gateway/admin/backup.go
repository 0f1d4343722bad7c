package admin

import (
	"fmt"
	"net/http"
	"time"

	"forerun.dev/forerun/internal/backup"
)

// stall is how long a client may take no more of a backup until it is given up.
const stall = time.Minute

// backup answers GET backup with all that the store holds, in the form of package backup. One that is not sent whole ends
// with a cut connection.
func (a *API) backup(w http.ResponseWriter, r *http.Request) error {
	began := time.Now()
	out := &patient{w: w, control: http.NewResponseController(w)}
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

// patient writes to a client who may be slow, but not for ever.
type patient struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sent    int64
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(stall)) // where there is none, a client may stall
	n, err := p.w.Write(b)
	p.sent += int64(n)
	return n, err
}
