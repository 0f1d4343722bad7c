package openwhisk

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// actionDocument is an action as the API shows it.
type actionDocument struct {
	Namespace   string             `json:"namespace"`
	Name        string             `json:"name"`
	Exec        execDocument       `json:"exec"`
	Parameters  []forerun.KeyValue `json:"parameters"`
	Limits      forerun.Limits     `json:"limits"`
	Version     string             `json:"version"`
	Publish     bool               `json:"publish"`
	Annotations []forerun.KeyValue `json:"annotations"`
	Updated     int64              `json:"updated"` // milliseconds since 1970
}

// execDocument has no code where it was not asked for, and neither code nor binary for a sequence.
type execDocument struct {
	Kind       string   `json:"kind"`
	Code       *string  `json:"code,omitempty"`
	Binary     *bool    `json:"binary,omitempty"`
	Main       string   `json:"main,omitempty"`
	Components []string `json:"components,omitempty"`
}

// actionOf shows an action, with the secrets of a namespace if one is named.
func actionOf(a *forerun.Action, withCode bool, secretsOf string) actionDocument {
	d := actionDocument{
		Namespace: a.Name.Path(), Name: a.Name.Entity,
		Exec:       execDocument{Kind: a.Exec.Kind, Main: a.Exec.Main, Components: a.Exec.Components},
		Parameters: shown(a.Parameters, secretsOf), Limits: a.Limits, Version: a.Version, Publish: a.Publish,
		Annotations: list(a.Annotations), Updated: a.Updated.UnixMilli(),
	}
	if a.Exec.Kind != sequence {
		d.Exec.Binary = &a.Exec.Binary
		if withCode {
			d.Exec.Code = &a.Exec.Code
		}
	}
	return d
}

// actionSummary is an action in a list.
type actionSummary struct {
	Namespace   string             `json:"namespace"`
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Publish     bool               `json:"publish"`
	Annotations []forerun.KeyValue `json:"annotations"`
	Limits      forerun.Limits     `json:"limits"`
	Exec        binaryDocument     `json:"exec"`
	Updated     int64              `json:"updated"`
}

type binaryDocument struct {
	Binary bool `json:"binary"`
}

func summaryOf(a *forerun.Action) actionSummary {
	return actionSummary{
		Namespace: a.Name.Path(), Name: a.Name.Entity, Version: a.Version, Publish: a.Publish,
		Annotations: list(a.Annotations), Limits: a.Limits, Exec: binaryDocument{a.Exec.Binary}, Updated: a.Updated.UnixMilli(),
	}
}

// activationSummary is an activation in a list.
type activationSummary struct {
	Namespace    string               `json:"namespace"`
	Name         string               `json:"name"`
	Version      string               `json:"version"`
	Publish      bool                 `json:"publish"`
	Annotations  []forerun.KeyValue   `json:"annotations"`
	ActivationID forerun.ActivationID `json:"activationId"`
	Cause        forerun.ActivationID `json:"cause,omitempty"`
	Start        int64                `json:"start"` // milliseconds since 1970
	*ending
	StatusCode *forerun.Status `json:"statusCode,omitempty"`
}

// ending is what the activation of a trigger has not: it has no end.
type ending struct {
	End      int64 `json:"end"`      // milliseconds since 1970
	Duration int64 `json:"duration"` // milliseconds
}

func endingOf(a *forerun.Activation) *ending {
	if a.End.IsZero() {
		return nil
	}
	return &ending{a.End.UnixMilli(), a.Duration.Milliseconds()}
}

func activationSummaryOf(a *forerun.Activation) activationSummary {
	s := activationSummary{
		Namespace: a.Namespace, Name: a.Action.Entity, Version: a.Version, Annotations: list(a.Annotations),
		ActivationID: a.ID, Cause: a.Cause, Start: a.Start.UnixMilli(), ending: endingOf(a),
	}
	if s.ending != nil {
		s.StatusCode = &a.Status
	}
	return s
}

// activationDocument is a whole record.
type activationDocument struct {
	Namespace    string               `json:"namespace"`
	Name         string               `json:"name"`
	Version      string               `json:"version"`
	Publish      bool                 `json:"publish"`
	Subject      string               `json:"subject"`
	ActivationID forerun.ActivationID `json:"activationId"`
	Cause        forerun.ActivationID `json:"cause,omitempty"`
	Start        int64                `json:"start"`
	*ending
	Response    responseDocument   `json:"response"`
	Logs        []string           `json:"logs"`
	Annotations []forerun.KeyValue `json:"annotations"`
}

type responseDocument struct {
	Status  string          `json:"status"`
	Success bool            `json:"success"`
	Result  json.RawMessage `json:"result"`
	Size    int             `json:"size"` // bytes of Result
}

func activationOf(a *forerun.Activation) activationDocument {
	return activationDocument{
		Namespace: a.Namespace, Name: a.Action.Entity, Version: a.Version, Subject: a.Subject,
		ActivationID: a.ID, Cause: a.Cause, Start: a.Start.UnixMilli(), ending: endingOf(a),
		Response: responseOf(a), Logs: list(a.Logs), Annotations: list(a.Annotations),
	}
}

func responseOf(a *forerun.Activation) responseDocument {
	return responseDocument{Status: a.Status.String(), Success: a.Status == forerun.Success, Result: a.Result, Size: len(a.Result)}
}

// list makes an empty list of none, which is [] in JSON and not null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
