package openwhisk

import "forerun.dev/forerun/internal/trace"

// tracedActivation is a whole record with a member that OpenWhisk's has not: it is there when it is asked for.
type tracedActivation struct {
	activationDocument
	Trace trace.Record `json:"trace"`
}
