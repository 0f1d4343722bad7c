package guard

import "sync/atomic"

// Switch is what shuts the gate of a sandbox. It lies in memory that whoever shuts and lifts it shares with the supervisor, so that
// neither needs to ask the other. Each writes what it does before it reads what the other did (Dekker's way): of a connection and a
// Shut, or a Lift, that come at the same time, at least one side sees the other. Its zero value is lifted.
type Switch struct {
	shut    atomic.Uint32 // by its owner: connections to the outside wait
	waiting atomic.Uint32 // by the supervisor: so many do, or are about to
	open    atomic.Uint32 // by the supervisor: connections that are being opened, or were and have not been seen closed
	reads   atomic.Uint32 // by the supervisor: so often something was asked of a permitted address
	others  atomic.Uint32 // by the supervisor: and of others
	_       [44]byte      // no two share a cache line
}

// Shut has connections to the outside wait from now on.
func (s *Switch) Shut() { s.shut.Store(1) }

// Lift lets them pass from now on. If any wait, the supervisor is to be told: Supervisor.Release.
func (s *Switch) Lift() (waiting bool) {
	s.shut.Store(0)
	return s.waiting.Load() > 0
}

func (s *Switch) isShut() bool { return s.shut.Load() == 1 }

// Connected reports whether Supervisor.Connected may.
func (s *Switch) Connected() bool { return s.open.Load() > 0 }

// Asked is how often processes have asked for a connection to the outside, or for something else that names an address there: of
// permitted addresses, and of others. Refused requests count. A request counts before it is answered.
func (s *Switch) Asked() (reads, others uint32) { return s.reads.Load(), s.others.Load() }

// Clear makes it that of another sandbox.
func (s *Switch) Clear() {
	s.shut.Store(0)
	s.waiting.Store(0)
	s.open.Store(0)
	s.reads.Store(0)
	s.others.Store(0)
}
