package admin

import (
	"context"
	"net/http"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/speculate"
)

// speculationDocument tells whether workflows run ahead.
type speculationDocument struct {
	Mode string `json:"mode"` // the most that the server was started with
	On   bool   `json:"on"`
}

// getSpeculation answers GET speculation.
func (a *API) getSpeculation(w http.ResponseWriter, _ *http.Request) error {
	mode := a.Controller.Speculation.Mode
	gateway.WriteJSON(w, http.StatusOK, speculationDocument{mode.String(), mode != speculate.Off && a.Controller.MayAhead()})
	return nil
}

// putSpeculation answers PUT speculation, {"on": false} or {"on": true}: the kill switch, which holds over restarts.
func (a *API) putSpeculation(w http.ResponseWriter, r *http.Request) error {
	const switches = `{"on": true} or {"on": false}`
	var content struct {
		On *bool `json:"on"`
	}
	if err := decode(w, r, switches, &content); err != nil {
		return err
	}
	if content.On == nil {
		return forerun.Errorf(forerun.Invalid, "body", "The content is no %s.", switches)
	}
	if err := a.letAhead(context.WithoutCancel(r.Context()), *content.On); err != nil {
		return err
	}
	if *content.On && a.Controller.Speculation.Mode == speculate.Off { // only an `off` that was kept is gone
		return forerun.Errorf(forerun.Exists, "speculation", "The switch is on, but the server was started with --speculate off: start it with --speculate all.")
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
		return forerun.Errorf(forerun.KindOf(err), "speculation", "Running ahead is off, but only until the server is started anew, since that could not be kept: %w", err)
	}
	if on {
		a.switchAhead(true)
	}
	return nil
}

func (a *API) switchAhead(on bool) {
	a.Controller.LetAhead(on)
	a.Log.Info("the operator has set whether workflows run ahead", "on", on)
}
