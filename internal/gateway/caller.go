package gateway

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

// Caller is who makes a request.
type Caller struct {
	Namespace, Subject string
	Cause              forerun.ActivationID // the activation whose token was shown; empty for a tenant's own key
	Rights             forerun.Rights       // with the namespace
	key                string               // the public half of a tenant's own key
	created            time.Time            // of that activation: when its tenant was made
}

// Keys finds who a request's credentials (HTTP Basic, "uuid:key") belong to: a tenant, or an activation that runs.
type Keys struct {
	Tenants     *registry.Registry
	Activations *controller.Controller
	// Running is the activation whose sandbox a request comes out of, in the context of the request; empty if it comes otherwise. May be nil.
	Running func(context.Context) forerun.ActivationID
}

// Caller authenticates a request. The error is forerun.Unauthorized, in OpenWhisk's words. It is Forbidden, beside the caller, if the tenant is suspended.
func (k *Keys) Caller(r *http.Request) (Caller, error) {
	shown, ok := credentials(r)
	if !ok {
		if r.Header.Get("Authorization") == "" {
			return Caller{}, forerun.Errorf(forerun.Unauthorized, "", "The resource requires authentication, which was not supplied with the request")
		}
		return Caller{}, invalidKey()
	}
	switch caller, err := k.activation(r, shown); {
	case err != nil:
		return Caller{}, err
	case caller.Cause != "":
		return k.ofTenant(r, caller)
	}
	uuid, key, _ := strings.Cut(shown, ":")
	tenant, err := k.Tenants.Authenticate(r.Context(), uuid, key)
	return Caller{Namespace: tenant.Namespace, Subject: tenant.Subject, Rights: forerun.AllRights, key: uuid}, err
}

// ofTenant completes what is known of an activation that runs. If it still does when its tenant was found, that is no later one of the name.
func (k *Keys) ofTenant(r *http.Request, caller Caller) (Caller, error) {
	tenant, err := k.Tenants.Tenant(r.Context(), caller.Namespace)
	if forerun.KindOf(err) == forerun.NotFound || err == nil && !k.isCall(r, caller.Cause) {
		return Caller{}, invalidKey()
	}
	if err == nil {
		err = tenant.Active()
	}
	caller.created = tenant.Created
	return caller, err
}

// IsStill reports as an error that the caller of a request lost its rights since it was authenticated: its key is void, or the tenant of a function
// was deleted, or suspended.
func (k *Keys) IsStill(r *http.Request, caller Caller) error {
	if caller.Cause == "" {
		valid, err := k.Tenants.ValidKey(r.Context(), caller.key)
		if err == nil && !valid {
			err = invalidKey()
		}
		return err
	}
	tenant, err := k.Tenants.Tenant(r.Context(), caller.Namespace)
	if forerun.KindOf(err) == forerun.NotFound || err == nil && !tenant.Created.Equal(caller.created) {
		return invalidKey()
	}
	if err == nil {
		err = tenant.Active()
	}
	return err
}

// isCall reports whether a request shows a token that speaks for an activation.
func (k *Keys) isCall(r *http.Request, of forerun.ActivationID) bool {
	shown, _ := credentials(r)
	caller, err := k.activation(r, shown)
	return err == nil && caller.Cause == of
}

// credentials are those that a request shows, "uuid:key", if they are HTTP Basic and whole.
func credentials(r *http.Request) (shown string, ok bool) {
	const scheme = "Basic "
	header := r.Header.Get("Authorization")
	if len(header) < len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}
	decoded, err := base64.StdEncoding.DecodeString(header[len(scheme):])
	shown = string(decoded)
	return shown, err == nil && strings.Contains(shown, ":")
}

// activation finds the activation that makes a request with a token. Its Cause is empty if the request shows none.
func (k *Keys) activation(r *http.Request, shown string) (Caller, error) {
	var running forerun.ActivationID
	if k.Running != nil {
		running = k.Running(r.Context())
	}
	s, ok, err := k.Activations.Speaker(shown, running)
	if !ok {
		return Caller{}, err
	}
	return Caller{Namespace: s.Namespace, Subject: s.Subject, Cause: s.Activation, Rights: s.Rights}, nil
}

func invalidKey() error {
	return forerun.Errorf(forerun.Unauthorized, "", "The supplied authentication is invalid")
}
