package openwhisk

import (
	"net/http"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// limitsDocument is what a namespace may do, as OpenWhisk shows it: memory and logs in MiB, times in milliseconds. What
// nothing bounds is shown as the largest integer that OpenWhisk has.
type limitsDocument struct {
	InvocationsPerMinute  int    `json:"invocationsPerMinute"`
	ConcurrentInvocations int    `json:"concurrentInvocations"`
	FiresPerMinute        int    `json:"firesPerMinute"`
	MinActionMemory       int    `json:"minActionMemory"`
	MaxActionMemory       int    `json:"maxActionMemory"`
	MinActionLogs         int    `json:"minActionLogs"`
	MaxActionLogs         int    `json:"maxActionLogs"`
	MinActionTimeout      int    `json:"minActionTimeout"`
	MaxActionTimeout      int    `json:"maxActionTimeout"`
	MinActionConcurrency  int    `json:"minActionConcurrency"`
	MaxActionConcurrency  int    `json:"maxActionConcurrency"`
	MaxParameterSize      string `json:"maxParameterSize"`
	MaxActionInstances    int    `json:"maxActionInstances"`

	StoredActions   int `json:"storedActions"`   // Forerun's own
	StoredMegabytes int `json:"storedMegabytes"` // Forerun's own
}

// namespaceLimits answers GET .../limits.
func (a *API) namespaceLimits(c *call) error {
	namespace, err := c.namespace("")
	if err != nil {
		return err
	}
	tenant, err := a.Registry.Tenant(c.r.Context(), namespace)
	if err != nil {
		return err
	}
	l := tenant.Limits
	gateway.WriteJSON(c.w, http.StatusOK, limitsDocument{
		InvocationsPerMinute: l.InvocationsPerMinute, ConcurrentInvocations: l.ConcurrentInvocations, FiresPerMinute: l.FiresPerMinute,
		MinActionMemory: minMemory, MaxActionMemory: maxMemory, MinActionLogs: minLogs, MaxActionLogs: maxLogs,
		MinActionTimeout: minTimeout, MaxActionTimeout: maxTimeout,
		MinActionConcurrency: minConcurrency, MaxActionConcurrency: maxConcurrency,
		MaxParameterSize: "1 MB", MaxActionInstances: l.ConcurrentInvocations,
		StoredActions: l.StoredActions, StoredMegabytes: l.StoredMegabytes,
	})
	return nil
}

// oneLimit answers GET .../limits/NAME as OpenWhisk does.
func (a *API) oneLimit(*call) error {
	return forerun.Errorf(forerun.Invalid, "limits", "Inner entity level routes for limits are not yet implemented.")
}
