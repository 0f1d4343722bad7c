package gateway

import (
	"context"
	"net/http"

	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

// Caller is who makes a request.
type Caller struct {
	Namespace, Subject string
	Cause              forerun.ActivationID // the activation whose token was shown; empty for a tenant's own key
}

// Keys finds who a request's credentials (HTTP Basic, "uuid:key") belong to: a tenant, or an activation that runs.
type Keys struct {
	Tenants     *registry.Registry
	Activations *controller.Controller
	// Running is the activation whose sandbox a request comes out of, in the context of the request; empty if it comes otherwise. May be nil.
	Running func(context.Context) forerun.ActivationID
}

// Caller authenticates a request. The error is forerun.Unauthorized, in OpenWhisk's words.
func (k *Keys) Caller(r *http.Request) (Caller, error) {
	uuid, key, ok := r.BasicAuth()
	if !ok {
		if r.Header.Get("Authorization") == "" {
			return Caller{}, forerun.Errorf(forerun.Unauthorized, "", "The resource requires authentication, which was not supplied with the request")
		}
		return Caller{}, invalidKey()
	}
	if namespace, subject, cause, ok := k.Activations.Caller(uuid + ":" + key); ok {
		return Caller{Namespace: namespace, Subject: subject, Cause: cause}, nil
	}
	if caller, ok := k.successor(r.Context(), uuid+":"+key); ok {
		return caller, nil
	}
	tenant, err := k.Tenants.Authenticate(r.Context(), uuid, key)
	return Caller{Namespace: tenant.Namespace, Subject: tenant.Subject}, err
}

// successor finds the activation that runs where a void token comes from.
func (k *Keys) successor(ctx context.Context, token string) (Caller, bool) {
	if k.Running == nil {
		return Caller{}, false
	}
	running := k.Running(ctx)
	namespace, subject, ok := k.Activations.Successor(token, running)
	return Caller{Namespace: namespace, Subject: subject, Cause: running}, ok
}

func invalidKey() error {
	return forerun.Errorf(forerun.Unauthorized, "", "The supplied authentication is invalid")
}
