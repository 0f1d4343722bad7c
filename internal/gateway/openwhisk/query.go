package openwhisk

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Bounds of a list.
const (
	defaultListLimit = 30
	maxListLimit     = 200
)

// malformedQuery says what is wrong with a query parameter.
func malformedQuery(name, format string, args ...any) error {
	return forerun.Errorf(forerun.Invalid, name, "The query parameter '%s' was malformed:\n%s", name, fmt.Sprintf(format, args...))
}

// flag reads a boolean query parameter.
func (c *call) flag(name string, otherwise bool) (bool, error) {
	value := c.query.Get(name)
	switch strings.ToLower(value) {
	case "":
		return otherwise, nil
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, malformedQuery(name, "'%s' is not a valid Boolean value", value)
}

// page reads skip and limit.
func (c *call) page(collection string) (skip, limit int, err error) {
	limit = defaultListLimit
	if value := c.query.Get("limit"); value != "" {
		if limit, err = strconv.Atoi(value); err != nil {
			return 0, 0, malformedQuery("limit", "The value '%s' is not an integer for %s.", value, collection)
		}
		if limit < 0 || limit > maxListLimit {
			return 0, 0, malformedQuery("limit", "The value '%d' is not in the range of 0 to %d for %s.", limit, maxListLimit, collection)
		}
		if limit == 0 {
			limit = maxListLimit
		}
	}
	if value := c.query.Get("skip"); value != "" {
		if skip, err = strconv.Atoi(value); err != nil {
			return 0, 0, malformedQuery("skip", "The value '%s' is not an integer for %s.", value, collection)
		}
		if skip < 0 {
			return 0, 0, malformedQuery("skip", "The value '%d' is not greater than or equal to 0 for %s.", skip, collection)
		}
	}
	return skip, limit, nil
}

// listing reads what the list of a collection of entities is to hold, or whether they are only to be counted.
func (c *call) listing(collection string) (skip, limit int, count bool, err error) {
	if skip, limit, err = c.page(collection); err == nil {
		count, err = c.flag("count", false)
	}
	return skip, limit, count, err
}

// moment reads a time in milliseconds since 1970; the zero time if it is not given.
func (c *call) moment(name string) (time.Time, error) {
	value := c.query.Get(name)
	if value == "" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return time.Time{}, malformedQuery(name, "Parameter is not a valid value for epoch seconds: %s", value)
	}
	return time.UnixMilli(ms), nil
}

// wait reads how long a blocking invocation may be waited for.
func (c *call) wait() (time.Duration, error) {
	value := c.query.Get("timeout")
	if value == "" {
		return MaxWait, nil
	}
	ms, err := strconv.Atoi(value)
	if err != nil || ms <= 0 || ms > int(MaxWait.Milliseconds()) {
		return 0, malformedQuery("timeout", "Timeout must be number of milliseconds up to %d.", MaxWait.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}
