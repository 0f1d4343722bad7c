package runtimewire

import (
	"maps"
	"slices"
	"strconv"
)

// Hello is the header of the first frame of a runtime.
type Hello struct {
	Protocol int    `json:"protocol"`
	Language string `json:"language"` // "python"
	Version  string `json:"version"`  // of the language, "3.11.2"
}

// Init is the header of the frame whose payload is an action's code.
type Init struct {
	Main   string            `json:"main,omitempty"`   // entry point; empty is the language's default
	Binary bool              `json:"binary,omitempty"` // the payload is an archive, else source text
	Env    map[string]string `json:"env,omitempty"`    // environment of the code while it is loaded and after
	Keep   bool              `json:"keep,omitempty"`   // handlers serve one activation after the other, where the language would fork one for each
}

// InitDone is the header of the answer to Init.
type InitDone struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"` // a sentence for the action's author
}

// Handler is the header of the frame that brings a forked handler.
type Handler struct {
	PID     int    `json:"pid,omitempty"`     // in the sandbox's namespace, as Exit names it
	Error   string `json:"error,omitempty"`   // why there is none; then no descriptor comes along
	Code    bool   `json:"code,omitempty"`    // the error is a sentence for the action's author: the code could not be loaded again
	Threads bool   `json:"threads,omitempty"` // the code has threads in the initializer, which handlers could reach
	Lines   bool   `json:"lines,omitempty"`   // it is a program that speaks lines: two pipes come along too, to it and from it
	Stopped bool   `json:"stopped,omitempty"` // it executes nothing until a Continue names it
}

// Fork is the header of the frame that asks for a handler.
type Fork struct {
	Stop bool `json:"stop,omitempty"` // it is to be stopped until a Continue names it
}

// Continue is the header of the frame that lets a stopped handler go on.
type Continue struct {
	PID int `json:"pid"` // as Handler named it
}

// Pause is the header of the frame that stops a handler until a Continue names it.
type Pause struct {
	PID int `json:"pid"` // as Handler named it
}

// Paused is the header of the answer to Pause.
type Paused struct {
	PID     int  `json:"pid"`
	Stopped bool `json:"stopped,omitempty"` // it executes nothing now, or has ended; else it goes on
}

// Exit is the header of the frame that tells of a handler's end. One of Status and Signal counts.
type Exit struct {
	PID    int `json:"pid"`
	Status int `json:"status,omitempty"`
	Signal int `json:"signal,omitempty"`
}

// Ready is the header of a handler's first frame.
type Ready struct {
	PID int `json:"pid,omitempty"` // in the sandbox's namespace
}

// Run is the header of the frame whose payload is an activation's input, a JSON object.
type Run struct {
	Env         map[string]string `json:"env,omitempty"`   // added to the handler's environment
	Limit       int               `json:"limit,omitempty"` // bytes that the result may have
	Speculative bool              `json:"speculative,omitempty"`
}

// append appends what encoding/json makes of the header: each activation has one.
func (r Run) append(dst []byte) []byte {
	dst = append(dst, '{')
	from := len(dst)
	if len(r.Env) > 0 {
		dst = append(dst, `"env":{`...)
		var room [8]string
		names := slices.AppendSeq(room[:0], maps.Keys(r.Env))
		slices.Sort(names)
		for i, name := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(append(appendString(dst, name), ':'), r.Env[name])
		}
		dst = append(dst, '}')
	}
	if r.Limit != 0 {
		dst = strconv.AppendInt(append(comma(dst, from), `"limit":`...), int64(r.Limit), 10)
	}
	if r.Speculative {
		dst = append(comma(dst, from), `"speculative":true`...)
	}
	return append(dst, '}')
}

// comma appends one if there is something since the beginning of an object.
func comma(dst []byte, from int) []byte {
	if len(dst) > from {
		dst = append(dst, ',')
	}
	return dst
}

// Result is the header of the frame whose payload is what the function returned.
type Result struct {
	Status string `json:"status"`          // StatusOK or StatusError
	Error  string `json:"error,omitempty"` // with StatusError: a sentence for the action's author; then no payload
}

// The statuses of a Result.
const (
	StatusOK    = "ok"    // the payload is the JSON object that the function returned
	StatusError = "error" // the function ended without one
)

// Log is the header of the frame whose payload is text for the activation's log.
type Log struct {
	Stream string `json:"stream"` // "stdout" or "stderr"
}
