// Package trace says what happened in an invocation, and why: for the terminal, pictures and the API.
//
// The machine and the controller give reasons as codes (forerun.Reason). Only this package makes sentences of them. Of what the
// records of an invocation say it makes one Trace: who shows that adds nothing up.
//
// It promises that it claims no gain that the server's estimate does not show.
package trace
