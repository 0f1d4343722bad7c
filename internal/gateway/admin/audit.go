package admin

import (
	"net/http"
	"strconv"
	"time"

	"forerun.dev/forerun/internal/audit"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// How many entries of the audit log are answered.
const (
	usualEntries = 100
	maxEntries   = 10_000
)

// audited answers GET audit with the last entries of the audit log, the newest last.
func (a *API) audited(w http.ResponseWriter, r *http.Request) (err error) {
	query, most, since := r.URL.Query(), usualEntries, time.Time{}
	if text := query.Get("limit"); text != "" {
		if most, err = strconv.Atoi(text); err != nil || most < 1 || most > maxEntries {
			return forerun.Errorf(forerun.Invalid, "limit", "The query parameter 'limit' must be a number from 1 to %d.", maxEntries)
		}
	}
	if text := query.Get("since"); text != "" {
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			return forerun.Errorf(forerun.Invalid, "since", "The query parameter 'since' must be a time like 2026-01-31T12:00:00Z.")
		}
	}
	entries, err := a.Audited(since, most)
	if err != nil {
		return forerun.Errorf(forerun.Internal, "audit", "The audit log cannot be read: %w", err)
	}
	if entries == nil {
		entries = []audit.Entry{}
	}
	gateway.WriteJSON(w, http.StatusOK, entries)
	return nil
}
