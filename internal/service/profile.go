package service

import (
	"context"
	"errors"
	"os"
	"runtime/pprof"

	"forerun.dev/forerun/internal/forerun"
)

// profile has the processor time that the server uses recorded until it closes, in a new file, if a folder is set for that.
func (s *server) profile(context.Context) error {
	if s.config.CPUProfile == "" {
		return nil
	}
	f, err := os.CreateTemp(s.config.CPUProfile, "forerun-*.pprof")
	if err == nil {
		if err = pprof.StartCPUProfile(f); err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}
	if err != nil {
		return forerun.Errorf(forerun.Invalid, "--cpu-profile", "No profile can be written: %w. Name a folder that is there and may be written to.", err)
	}
	s.onClose(func() error {
		pprof.StopCPUProfile()
		return errors.Join(f.Sync(), f.Close())
	})
	return nil
}
