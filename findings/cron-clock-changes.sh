#!/usr/bin/env bash
# Three Go libraries for cron expressions disagree about the days on which clocks change, and about impossible dates.
#
# Versions: github.com/robfig/cron/v3 v3.0.1, github.com/netresearch/go-cron v0.9.1, github.com/adhocore/gronx v1.20.4.
# Needs: go. It prints the answer of each library, and fails if one differs from the answers at its end.
#
# - All three skip the whole day on which Havana has no midnight.
# - A local time that comes twice fires twice with robfig and netresearch. gronx fires it once, the second time.
# - gronx leaves out an hour of `*/30` where the hour comes twice: nothing fires between 00:30 and 02:00 UTC.
# - robfig and netresearch accept the 31st of February, and answer with the zero time, which lies in the past.
#
# Forerun computes the moments itself, and refuses impossible dates: see docs/guide/timers.md.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/adhocore/gronx"
	netresearch "github.com/netresearch/go-cron"
	robfig "github.com/robfig/cron/v3"
)

type next func(expression string, after time.Time) string

func show(t time.Time, err error) string {
	if err != nil {
		return "refused"
	}
	if t.IsZero() {
		return "the zero time"
	}
	return t.UTC().Format(time.RFC3339)
}

func main() {
	libraries := []struct {
		name string
		next next
	}{
		{"robfig", func(e string, after time.Time) string {
			s, err := robfig.ParseStandard(e)
			if err != nil {
				return "refused"
			}
			return show(s.Next(after), nil)
		}},
		{"netresearch", func(e string, after time.Time) string {
			s, err := netresearch.ParseStandard(e)
			if err != nil {
				return "refused"
			}
			return show(s.Next(after), nil)
		}},
		{"gronx", func(e string, after time.Time) string { return show(gronx.NextTickAfter(e, after, false)) }},
	}
	cases := []struct{ what, expression, zone, after string }{
		{"midnight that Havana skips", "0 0 * * *", "America/Havana", "2024-03-09T12:00:00-05:00"},
		{"half past two that Berlin has twice, first", "30 2 * * *", "Europe/Berlin", "2024-10-26T23:00:00+02:00"},
		{"half past two that Berlin has twice, then", "30 2 * * *", "Europe/Berlin", "2024-10-27T02:30:00+02:00"},
		{"each half hour through the hour that comes twice", "*/30 * * * *", "Europe/Berlin", "2024-10-27T02:30:00+02:00"},
		{"the 31st of February", "0 0 31 2 *", "UTC", "2024-01-01T00:00:00Z"},
	}
	for _, c := range cases {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			panic(err)
		}
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			panic(err)
		}
		for _, l := range libraries {
			fmt.Printf("%s: %s: %s\n", c.what, l.name, l.next(c.expression, after.In(zone)))
		}
	}
}
GO
go mod init finding >go.log 2>&1
go get github.com/robfig/cron/v3@v3.0.1 github.com/netresearch/go-cron@v0.9.1 github.com/adhocore/gronx@v1.20.4 >>go.log 2>&1
go run . | tee seen
diff seen - <<'NOTED'
midnight that Havana skips: robfig: 2024-03-11T04:00:00Z
midnight that Havana skips: netresearch: 2024-03-11T04:00:00Z
midnight that Havana skips: gronx: 2024-03-11T04:00:00Z
half past two that Berlin has twice, first: robfig: 2024-10-27T00:30:00Z
half past two that Berlin has twice, first: netresearch: 2024-10-27T00:30:00Z
half past two that Berlin has twice, first: gronx: 2024-10-27T01:30:00Z
half past two that Berlin has twice, then: robfig: 2024-10-27T01:30:00Z
half past two that Berlin has twice, then: netresearch: 2024-10-27T01:30:00Z
half past two that Berlin has twice, then: gronx: 2024-10-28T01:30:00Z
each half hour through the hour that comes twice: robfig: 2024-10-27T01:00:00Z
each half hour through the hour that comes twice: netresearch: 2024-10-27T01:00:00Z
each half hour through the hour that comes twice: gronx: 2024-10-27T02:00:00Z
the 31st of February: robfig: the zero time
the 31st of February: netresearch: the zero time
the 31st of February: gronx: refused
NOTED
