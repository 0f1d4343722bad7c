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

	QueuedInvocations int `json:"queuedInvocations"` // Forerun's own, like those below
	StoredActions     int `json:"storedActions"`
	StoredMegabytes   int `json:"storedMegabytes"`
	StoredShare       int `json:"storedShare,omitempty"`
	TimedTriggers     int `json:"timedTriggers"`
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
		MinActionMemory: minMemory, MaxActionMemory: a.Bounds.Memory, MinActionLogs: minLogs, MaxActionLogs: a.Bounds.Logs,
		MinActionTimeout: minTimeout, MaxActionTimeout: a.Bounds.Timeout,
		MinActionConcurrency: minConcurrency, MaxActionConcurrency: maxConcurrency,
		MaxParameterSize: "1 MB", MaxActionInstances: l.ConcurrentInvocations,
		QueuedInvocations: l.QueuedInvocations, StoredActions: l.StoredActions, StoredMegabytes: l.StoredMegabytes, StoredShare: l.StoredShare,
		TimedTriggers: l.TimedTriggers,
	})
	return nil
}

// oneLimit answers GET .../limits/NAME as OpenWhisk does.
func (a *API) oneLimit(*call) error {
	return forerun.Errorf(forerun.Invalid, "limits", "Inner entity level routes for limits are not yet implemented.")
}
