package registry

import (
	"math"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// NoLimit is the value of a limit that bounds nothing.
const NoLimit = math.MaxInt32

// Limits bound what a tenant may do.
type Limits struct {
	InvocationsPerMinute  int `json:"invocationsPerMinute"`
	ConcurrentInvocations int `json:"concurrentInvocations"` // that have not ended
	QueuedInvocations     int `json:"queuedInvocations"`     // that wait for a sandbox
	FiresPerMinute        int `json:"firesPerMinute"`        // of triggers
	StoredActions         int `json:"storedActions"`
	StoredMegabytes       int `json:"storedMegabytes"`       // MiB of all that it stores
	StoredShare           int `json:"storedShare,omitempty"` // the same in percent of the room that is free or the tenant's; 0: that does not bound it
	TimedTriggers         int `json:"timedTriggers"`         // that have a timer
}

// DefaultLimits are those of a tenant of whom nothing else was said: enough for any load that one machine can bear.
func DefaultLimits() Limits {
	return Limits{
		InvocationsPerMinute: NoLimit, ConcurrentInvocations: 1000, QueuedInvocations: 1000, FiresPerMinute: NoLimit,
		StoredActions: NoLimit, StoredMegabytes: NoLimit, StoredShare: 50, TimedTriggers: 1000,
	}
}

// Quotas are the limits that were set for one tenant; nil leaves the server's default.
type Quotas struct {
	InvocationsPerMinute  *int `json:"invocationsPerMinute,omitempty"`
	ConcurrentInvocations *int `json:"concurrentInvocations,omitempty"`
	QueuedInvocations     *int `json:"queuedInvocations,omitempty"`
	FiresPerMinute        *int `json:"firesPerMinute,omitempty"`
	StoredActions         *int `json:"storedActions,omitempty"`
	StoredMegabytes       *int `json:"storedMegabytes,omitempty"`
	TimedTriggers         *int `json:"timedTriggers,omitempty"`
}

// quota is one of a tenant's quotas, with the limit that it sets.
type quota struct {
	name  string
	value **int
	limit *int
}

func (q *Quotas) each(l *Limits) []quota {
	return []quota{
		{"invocationsPerMinute", &q.InvocationsPerMinute, &l.InvocationsPerMinute},
		{"concurrentInvocations", &q.ConcurrentInvocations, &l.ConcurrentInvocations},
		{"queuedInvocations", &q.QueuedInvocations, &l.QueuedInvocations},
		{"firesPerMinute", &q.FiresPerMinute, &l.FiresPerMinute},
		{"storedActions", &q.StoredActions, &l.StoredActions},
		{"storedMegabytes", &q.StoredMegabytes, &l.StoredMegabytes},
		{"timedTriggers", &q.TimedTriggers, &l.TimedTriggers},
	}
}

// check refuses values that no limit can have.
func (q Quotas) check() error {
	for _, one := range q.each(new(Limits)) {
		if value := *one.value; value != nil && (*value < 0 || *value > NoLimit) {
			return forerun.Errorf(forerun.Invalid, one.name, "The quota %s must be a number from 0 to %d, which means no limit.", one.name, NoLimit)
		}
	}
	return nil
}

// over lays q over other quotas: what q does not name stays theirs.
func (q Quotas) over(others Quotas) Quotas {
	theirs := others.each(new(Limits))
	for i, one := range q.each(new(Limits)) {
		if *one.value == nil {
			*one.value = *theirs[i].value
		}
	}
	return q
}

// limits are the quotas, and the defaults where there are none.
func (q Quotas) limits(defaults Limits) Limits {
	if q.StoredMegabytes != nil {
		defaults.StoredShare = 0
	}
	for _, one := range q.each(&defaults) {
		if *one.value != nil {
			*one.limit = **one.value
		}
	}
	return defaults
}

// allowance is how much a tenant with these limits may store.
func (l Limits) allowance() state.Allowance {
	a := state.Allowance{Bytes: -1, Share: l.StoredShare}
	if l.StoredMegabytes != NoLimit {
		a.Bytes = int64(l.StoredMegabytes) << 20
	}
	return a
}

// Allowance is how much a tenant may store. It asks no store, so the store may ask it.
func (r *Registry) Allowance(namespace string) state.Allowance {
	if t, ok := r.inForce.Load(namespace); ok {
		return t.(Tenant).Limits.allowance()
	}
	return state.Allowance{Bytes: -1} // the system's, or just deleted
}
