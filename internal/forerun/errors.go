package forerun

import (
	"errors"
	"fmt"
)

// Kind says what sort of failure an error is. One table in this file maps
// kinds to HTTP statuses; the command line maps the same kinds to exit codes.
type Kind int

// The kinds of failure.
const (
	Internal        Kind = iota // a defect of ours, or the machine's
	Invalid                     // malformed input
	Unauthorized                // no valid credentials
	Forbidden                   // valid credentials, no right
	NotFound                    // no such entity
	Exists                      // the entity is already there, or changed meanwhile
	TooLarge                    // over a documented size
	Unprocessable               // contradicts an earlier request
	TooMany                     // over a rate or a quota: try again later
	Unsupported                 // a thing OpenWhisk has and Forerun has not
	Unavailable                 // shutting down, or a part is missing
	DeadlineExpired             // took longer than it may
	Full                        // the disk has no room
	OverQuota                   // the tenant stores as much as it may: delete something first
	Misdirected                 // the connection belongs to another tenant: ask again over another
)

var httpStatus = map[Kind]int{
	Internal: 500, Invalid: 400, Unauthorized: 401, Forbidden: 403, NotFound: 404, Exists: 409,
	TooLarge: 413, Unprocessable: 422, TooMany: 429, Unsupported: 501, Unavailable: 503, DeadlineExpired: 504, Full: 507, OverQuota: 507, Misdirected: 421,
}

// HTTPStatus is the status with which a door answers a failure of this kind.
func (k Kind) HTTPStatus() int { return httpStatus[k] }

// Error is a failure with the operation or subject it concerns, its kind and a
// sentence for the person who caused it. It wraps its cause.
type Error struct {
	Kind    Kind
	Subject string // what was being done, or to what: "PUT /guest/hello"
	Message string // the cause and the next step, for a person
	Err     error  // the underlying error, if any
}

// Errorf makes an *Error; a %w verb in format becomes the wrapped cause.
func Errorf(kind Kind, subject, format string, args ...any) *Error {
	formatted := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Subject: subject, Message: formatted.Error(), Err: errors.Unwrap(formatted)}
}

func (e *Error) Error() string {
	if e.Subject == "" {
		return e.Message
	}
	return e.Subject + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf finds the kind of err: that of the first *Error in its chain, else Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
