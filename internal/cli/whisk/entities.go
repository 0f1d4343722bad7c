package whisk

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// Document is something that the server sent: decoded, and as it was sent.
type Document[T any] struct {
	Value T
	Raw   json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Document[T]) UnmarshalJSON(data []byte) error {
	d.Raw = append(json.RawMessage(nil), data...)
	return json.Unmarshal(data, &d.Value)
}

// Action is an action, as the server shows it; lists leave out most of Exec.
type Action struct {
	Namespace   string             `json:"namespace"` // with the package, if any: "guest/utils"
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Publish     bool               `json:"publish"`
	Exec        Exec               `json:"exec"`
	Parameters  []forerun.KeyValue `json:"parameters"`
	Annotations []forerun.KeyValue `json:"annotations"`
	Limits      forerun.Limits     `json:"limits"`
	Updated     int64              `json:"updated"` // milliseconds since 1970
}

// Kind is what the action runs on. Lists tell it by an annotation.
func (a *Action) Kind() string {
	if a.Exec.Kind != "" {
		return a.Exec.Kind
	}
	var kind string
	_ = json.Unmarshal(forerun.Lookup(a.Annotations, "exec"), &kind) // not there, or no string: unknown
	return kind
}

// Sort is what a person calls the action's kind: "composition" for one whose document is in an annotation.
func (a *Action) Sort() string {
	var document struct{ Type json.RawMessage }
	if json.Unmarshal(forerun.Lookup(a.Annotations, "conductor"), &document) == nil && document.Type != nil {
		return "composition"
	}
	return a.Kind()
}

// Exec is what an action executes.
type Exec struct {
	Kind       string   `json:"kind,omitempty"`
	Code       *string  `json:"code,omitempty"` // nil where there is none, or it was not asked for
	Main       string   `json:"main,omitempty"`
	Binary     bool     `json:"binary,omitempty"`     // Code is base64
	Components []string `json:"components,omitempty"` // of a sequence
}

// ActionPut is the body of a PUT of an action: what is nil stays as it was.
type ActionPut struct {
	Exec           *Exec              `json:"exec,omitempty"`
	Parameters     []forerun.KeyValue `json:"parameters,omitzero"`
	Annotations    []forerun.KeyValue `json:"annotations,omitzero"`
	DelAnnotations []string           `json:"delAnnotations,omitempty"`
	Limits         *LimitsPut         `json:"limits,omitempty"`
	Version        string             `json:"version,omitempty"`
	Publish        *bool              `json:"publish,omitempty"`
}

// LimitsPut are limits in the body of a PUT: what is nil stays as it was.
type LimitsPut struct {
	Timeout     *int `json:"timeout,omitempty"` // milliseconds
	Memory      *int `json:"memory,omitempty"`  // MiB
	Logs        *int `json:"logs,omitempty"`    // MiB
	Concurrency *int `json:"concurrency,omitempty"`
}

// Activation is a record, whole or as a list shows it; Response and Logs are empty then.
type Activation struct {
	Namespace    string             `json:"namespace"`
	Name         string             `json:"name"`
	Version      string             `json:"version"`
	ActivationID string             `json:"activationId"`
	Cause        string             `json:"cause"`
	Start        int64              `json:"start"` // milliseconds since 1970
	End          int64              `json:"end"`
	Duration     int64              `json:"duration"` // milliseconds
	StatusCode   int                `json:"statusCode"`
	Response     Response           `json:"response"`
	Logs         []string           `json:"logs"`
	Annotations  []forerun.KeyValue `json:"annotations"`
}

// Response is how an activation ended.
type Response struct {
	Status  string          `json:"status"`
	Success bool            `json:"success"`
	Result  json.RawMessage `json:"result"`
}

// Package is a package, as the server shows it.
type Package struct {
	Namespace   string             `json:"namespace"`
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Publish     bool               `json:"publish"`
	Binding     Binding            `json:"binding"` // empty unless it is bound to another
	Parameters  []forerun.KeyValue `json:"parameters"`
	Annotations []forerun.KeyValue `json:"annotations"`
	Actions     []Action           `json:"actions"` // only in a package that was asked for by itself, as Feeds
	Feeds       []Action           `json:"feeds"`
	Updated     int64              `json:"updated"`
}

// PackagePut is the body of a PUT of a package: what is nil stays as it was.
type PackagePut struct {
	Binding     *Binding           `json:"binding,omitempty"`
	Parameters  []forerun.KeyValue `json:"parameters,omitzero"`
	Annotations []forerun.KeyValue `json:"annotations,omitzero"`
	Publish     *bool              `json:"publish,omitempty"`
}

// Binding names the package that another is bound to.
type Binding struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// UnmarshalJSON reads what servers send: an object, or false in lists.
func (b *Binding) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '{' {
		return nil
	}
	type plain Binding
	return json.Unmarshal(data, (*plain)(b))
}

// Trigger is a trigger, as the server shows it.
type Trigger struct {
	Namespace   string             `json:"namespace"`
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Publish     bool               `json:"publish"`
	Parameters  []forerun.KeyValue `json:"parameters"`
	Annotations []forerun.KeyValue `json:"annotations"`
	Updated     int64              `json:"updated"`
}

// TriggerPut is the body of a PUT of a trigger: what is nil stays as it was.
type TriggerPut struct {
	Parameters  []forerun.KeyValue `json:"parameters,omitzero"`
	Annotations []forerun.KeyValue `json:"annotations,omitzero"`
}

// Rule is a rule, as the server shows it.
type Rule struct {
	Namespace   string             `json:"namespace"`
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Status      string             `json:"status"` // "active" or "inactive"
	Trigger     Target             `json:"trigger"`
	Action      Target             `json:"action"`
	Annotations []forerun.KeyValue `json:"annotations"`
	Updated     int64              `json:"updated"`
}

// Target is what a rule ties together: Path is the namespace of the trigger or action, with the package if any.
type Target struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

// RulePut is the body of a PUT of a rule; names are fully qualified, "_" stands for the caller's namespace.
type RulePut struct {
	Trigger     string             `json:"trigger,omitempty"`
	Action      string             `json:"action,omitempty"`
	Annotations []forerun.KeyValue `json:"annotations,omitzero"`
}
