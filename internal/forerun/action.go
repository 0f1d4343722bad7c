package forerun

import "time"

// Exec is what an action executes.
type Exec struct {
	Kind       string   `json:"kind"`                 // "python:3", "sequence", ...
	Code       string   `json:"code,omitempty"`       // source text, or a base64 archive when Binary
	Binary     bool     `json:"binary"`               // Code is base64
	Main       string   `json:"main,omitempty"`       // entry point; empty is the runtime's default
	Components []string `json:"components,omitempty"` // of a sequence: fully qualified names
}

// Limits bound one activation of an action.
type Limits struct {
	Timeout     int `json:"timeout"`     // milliseconds, default 60000
	Memory      int `json:"memory"`      // MiB, default 256
	Logs        int `json:"logs"`        // MiB, default 10
	Concurrency int `json:"concurrency"` // activations that share one process; always 1
}

// MaxComponents bounds the actions of a sequence, and those that one invocation of a conductor action runs (OpenWhisk's default).
const MaxComponents = 50

// DefaultLimits are those of an action that names none (OpenWhisk's defaults).
func DefaultLimits() Limits { return Limits{Timeout: 60000, Memory: 256, Logs: 10, Concurrency: 1} }

// FoundAs is the name by which an action was found: that of the package's binding, if it was found through one.
func (a *Action) FoundAs() string {
	if a.Binding != "" {
		return "/" + a.Binding + "/" + a.Name.Entity
	}
	return a.Name.String()
}

// Action is one deployed function, sequence or composition: what the registry stores.
type Action struct {
	Name        Name
	Version     string // "0.0.1", the last number grows with each update
	Publish     bool
	Exec        Exec
	Parameters  []KeyValue // defaults, merged under the request's
	Annotations []KeyValue
	Limits      Limits
	Updated     time.Time
	Binding     string // "namespace/package" of the package binding that it was found through; empty if through none
}
