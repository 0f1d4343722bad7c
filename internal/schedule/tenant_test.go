package schedule

import (
	"fmt"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// TestEmptyQueuesGo: a tenant has queues of the classes that its phases wait for, and of no others.
func TestEmptyQueuesGo(t *testing.T) {
	m := New(Settings{Policy: Microtask, Processors: 1})
	m.Step(0, Asks{Activation: "runs", Tenant: "t", Class: Core})
	const classes = 100
	for n := range classes {
		m.Step(0, Asks{Activation: forerun.ActivationID(fmt.Sprint(n)), Tenant: "t", Class: Core + Class(n)})
	}
	tenant := m.tenantOf("t", 1)
	if n := len(tenant.queues); n != classes {
		t.Fatalf("phases of %d classes wait in %d queues", classes, n)
	}
	for n := range classes {
		m.Step(0, Ended{Activation: forerun.ActivationID(fmt.Sprint(n))})
	}
	if n := len(tenant.queues); n != 0 || !tenant.isActive() {
		t.Errorf("%d queues are left, and the tenant is active: %v", n, tenant.isActive())
	}
}
