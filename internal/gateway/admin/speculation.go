package admin

import (
	"context"
	"net/http"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/speculate"
)

// speculationDocument tells whether workflows run ahead, and what says so.
type speculationDocument struct {
	Mode     string `json:"mode"`     // the most that anybody gets, as the server was started
	Settings string `json:"settings"` // all that it was started with, the mode too
	Switch   bool   `json:"switch"`   // the operator's, which is kept
	On       bool   `json:"on"`       // neither of the two has it off
}

// getSpeculation answers GET speculation.
func (a *API) getSpeculation(w http.ResponseWriter, _ *http.Request) error {
	started, may := a.Controller.Speculation, a.Controller.MayAhead()
	gateway.WriteJSON(w, http.StatusOK, speculationDocument{started.Mode.String(), started.String(), may, may && started.Mode != speculate.Off})
	return nil
}

// putSpeculation answers PUT speculation, {"on": false} or {"on": true}: the kill switch, which holds over restarts. Where the server was started
// with --speculate off nothing runs ahead either way, as the answer tells; the switch is for those to come.
func (a *API) putSpeculation(w http.ResponseWriter, r *http.Request) error {
	on, err := readSwitch(w, r)
	if err != nil {
		return err
	}
	if err := a.letAhead(context.WithoutCancel(r.Context()), on); err != nil {
		return err
	}
	return a.getSpeculation(w, r)
}

// letAhead switches, logs and keeps that. Off is off at once, even if it cannot be kept; on is on once it is.
func (a *API) letAhead(ctx context.Context, on bool) error {
	a.switching.Lock()
	defer a.switching.Unlock()
	if !on {
		a.switchAhead(false)
	}
	err := a.Registry.LetAhead(ctx, on)
	switch {
	case err != nil && on:
		return err
	case err != nil:
		return forerun.Errorf(forerun.KindOf(err), "speculation", "Speculation is off only until the server starts again, because the switch could not be stored: %w", err)
	}
	if on {
		a.switchAhead(true)
	}
	return nil
}

func (a *API) switchAhead(on bool) {
	a.Controller.LetAhead(on)
	a.Log.Info("the operator has switched speculation", "on", on, "speculate", a.Controller.Speculation.String())
}
