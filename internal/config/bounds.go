package config

import (
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// bound is the setting of one of the server's bounds, a whole number from low to high.
func bound(name, otherwise, usage string, low, high int, set func(b *forerun.Bounds, n int)) Setting {
	return number(name, otherwise, usage, low, high, func(c *Config, n int) { set(&c.Bounds, n) })
}

// number makes the setting of a number.
func number(name, otherwise, usage string, low, high int, set func(c *Config, n int)) Setting {
	env := "FORERUN_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return Setting{name, env, otherwise, usage, func(c *Config, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < low || n > high {
			return forerun.Errorf(forerun.Invalid, "", "%q cannot be set: write a number from %d to %d.", value, low, high)
		}
		set(c, n)
		return nil
	}}
}

// longestTimeout bounds what max-timeout can be set to.
const longestTimeout = 24 * time.Hour

func setMaxTimeout(c *Config, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Minute || d > longestTimeout {
		return forerun.Errorf(forerun.Invalid, "", "%q cannot be an action's time limit: write one from 1m to 24h, like 5m.", value)
	}
	c.Bounds.Timeout = int(d.Milliseconds())
	return nil
}
