package state

import (
	"context"

	"forerun.dev/forerun/internal/forerun"
)

// ExecIn is Exec with commands that all work in one space.
func ExecIn(ctx context.Context, s Store, space string, expect []Expect, commands [][][]byte) ([]Reply, forerun.Version, error) {
	return s.Exec(ctx, expect, InSpace(space, commands))
}

// InSpace makes commands that all work in one space.
func InSpace(space string, commands [][][]byte) []Command {
	ops := make([]Command, len(commands))
	for i, args := range commands {
		ops[i] = Command{Space: space, Args: args}
	}
	return ops
}
