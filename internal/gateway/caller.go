package gateway

import (
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
	tenant, err := k.Tenants.Authenticate(r.Context(), uuid, key)
	return Caller{Namespace: tenant.Namespace, Subject: tenant.Subject}, err
}

func invalidKey() error {
	return forerun.Errorf(forerun.Unauthorized, "", "The supplied authentication is invalid")
}
