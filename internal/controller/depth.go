package controller

import (
	"forerun.dev/forerun/internal/speculate"
)

// depth is how far an invocation with a setting may run ahead now.
func (c *Controller) depth(s speculate.Settings) int {
	if c.Load == nil {
		return s.Depth
	}
	return speculate.DepthUnder(c.Load(), s.Depth)
}

// busyShare is the share of the processors in use from which some functions are not run ahead (C5). What computes would take from
// the heads of others, through caches and sandboxes, more than it spares; what waits takes little. What is squashed now and then
// runs twice, and a process is begun for it: on processors that have little to spare all requests wait for that.
const busyShare = 0.5

// forbids reports whether what is known of a function and the load keep it from running ahead.
func (c *Controller) forbids(d doubts) bool {
	return (d.computes || d.risky) && c.Load != nil && c.Load().Busy > busyShare
}

// breathe tells the machine if more or fewer slots may be ahead than it knows.
func (e *execution) breathe() {
	if e.speculation.Mode == speculate.Off {
		return
	}
	if depth := e.c.depth(e.speculation); depth != e.depth {
		e.depth = depth
		e.carryOut(e.machine.Step(speculate.LoadChanged{Depth: depth}))
	}
}
