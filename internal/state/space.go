package state

import (
	"context"

	"forerun.dev/forerun/internal/forerun"
)

// ExecIn is Exec with commands that all work in one space.
func ExecIn(ctx context.Context, s Store, space string, expect []Expect, commands [][][]byte) ([]Reply, forerun.Version, error) {
	ops := make([]Command, len(commands))
	for i, args := range commands {
		ops[i] = Command{Space: space, Args: args}
	}
	return s.Exec(ctx, expect, ops)
}

// Versions reads what versions records have: what expects that they still have them.
func Versions(ctx context.Context, s Store, keys []forerun.Key) ([]Expect, error) {
	records, err := s.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	expect := make([]Expect, len(keys))
	for i, r := range records {
		expect[i] = Expect{Key: keys[i], Version: r.Version}
	}
	return expect, nil
}
