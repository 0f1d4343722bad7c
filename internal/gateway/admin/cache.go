package admin

import (
	"context"
	"net/http"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// cacheDocument tells whether results stand for executions, and what says so.
type cacheDocument struct {
	Started bool `json:"started"` // the server was started with --cache on
	Switch  bool `json:"switch"`  // the operator's, which is kept
	On      bool `json:"on"`      // neither of the two has it off
}

// getCache answers GET cache.
func (a *API) getCache(w http.ResponseWriter, _ *http.Request) error {
	started, may := a.Controller.Cache, a.Controller.MayCache()
	gateway.WriteJSON(w, http.StatusOK, cacheDocument{started, may, started && may})
	return nil
}

// putCache answers PUT cache, {"on": false} or {"on": true}: the kill switch, which holds over restarts.
func (a *API) putCache(w http.ResponseWriter, r *http.Request) error {
	on, err := readSwitch(w, r)
	if err != nil {
		return err
	}
	if err := a.letCache(context.WithoutCancel(r.Context()), on); err != nil {
		return err
	}
	return a.getCache(w, r)
}

// readSwitch reads a body {"on": false} or {"on": true}.
func readSwitch(w http.ResponseWriter, r *http.Request) (bool, error) {
	const switches = `{"on": true} or {"on": false}`
	var content struct {
		On *bool `json:"on"`
	}
	if err := decode(w, r, switches, &content); err != nil {
		return false, err
	}
	if content.On == nil {
		return false, forerun.Errorf(forerun.Invalid, "body", "The content must be %s.", switches)
	}
	return *content.On, nil
}

// letCache switches, logs and keeps the state. Off is off at once, even if it cannot be kept; on is on once it is kept.
func (a *API) letCache(ctx context.Context, on bool) error {
	a.switching.Lock()
	defer a.switching.Unlock()
	if !on {
		a.Controller.LetCache(false)
	}
	err := a.Registry.LetCache(ctx, on)
	switch {
	case err != nil && on:
		return err
	case err != nil:
		return forerun.Errorf(forerun.KindOf(err), "cache", "The cache is off only until the server starts again, because the switch could not be stored: %w", err)
	}
	a.Controller.LetCache(on)
	a.Log.Info("the operator has switched the result cache", "on", on, "cache", a.Controller.Cache)
	return nil
}
