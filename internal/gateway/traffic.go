package gateway

import "sync/atomic"

// Traffic counts what comes through the doors of a server. The zero value is ready to use.
type Traffic struct {
	Handshakes    atomic.Int64 // of QUIC that were completed
	Unfinished    atomic.Int64 // handshakes of QUIC that were not
	Resumed       atomic.Int64 // of the completed ones, with a ticket
	Retries       atomic.Int64 // clients of QUIC that had to prove their address
	EarlyAccepted atomic.Int64 // requests that ran as early data
	EarlyHeld     atomic.Int64 // requests in early data that waited for the end of the handshake
	EarlyRefused  atomic.Int64 // requests in the early data of a proxy that were refused (425)
	Replayed      atomic.Int64 // tickets that were used before: their early data was not read
}
