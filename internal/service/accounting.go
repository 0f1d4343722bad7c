package service

import (
	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/internal/worker"
)

// accounting is how the store counts what each tenant stores, and what holds a tenant to its quota.
func (s *server) accounting() embedded.Accounting {
	return embedded.Accounting{Owner: ownerOf, Allowed: func(tenant string) state.Allowance {
		if s.registry == nil { // it is opened after the store
			return state.Allowance{Bytes: -1}
		}
		return s.registry.Allowance(tenant)
	}}
}

// ownerOf finds the tenant to whom a record belongs, and the part of what the tenant stores that it is of.
func ownerOf(space, name []byte) (tenant []byte, part state.Part) {
	if tenant, ok := worker.StateOwner(space); ok {
		return tenant, state.Values
	}
	if tenant, part, ok := activation.Owner(space, name); ok {
		return tenant, part
	}
	tenant, part, _ = registry.Owner(space, name)
	return tenant, part
}
