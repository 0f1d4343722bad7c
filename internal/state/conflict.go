package state

import (
	"fmt"

	"forerun.dev/forerun/internal/forerun"
)

func (e *ConflictError) Error() string {
	if len(e.Keys) == 0 {
		return "A record has changed meanwhile. Read it again and retry."
	}
	return fmt.Sprintf("%d of the records have changed meanwhile, the first is %q. Read them again and retry.", len(e.Keys), e.Keys[0].Name)
}

// Unwrap gives the error its kind.
func (e *ConflictError) Unwrap() error {
	return &forerun.Error{Kind: forerun.Exists, Message: e.Error()}
}
