// Package cron says when a cron expression is due.
//
// A library parses the fields; this package finds the moments, because
// libraries differ in what an expression means around a change to or from
// daylight saving time, and in which days it names. It promises:
//
//   - A day is due if the day of the month or the day of the week matches. If
//     one of the two is * or ?, the other alone decides. A step or a range, like
//     */2 or 1-31, counts as given.
//   - A local time that the clock skips is due at the first moment after the gap.
//   - A local time that the clock shows twice is due once, the first time.
//   - An expression that names every hour follows elapsed time instead: it is due
//     whenever the clock shows one of its times.
//
// It is pure: it reads no clock.
package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	parser "github.com/netresearch/go-cron"

	"forerun.dev/forerun/internal/forerun"
)

// Schedule is a cron expression in a time zone.
type Schedule struct {
	seconds, minutes, hours, days, months, weekdays uint64 // the bit n stands for the value n
	either                                          bool   // days and weekdays are both given
	zone                                            *time.Location
}

// everyHour are the bits of a day's hours.
const everyHour = 1<<24 - 1

// star is the bit by which the parser marks a field that is * or ?.
const star = 1 << 63

// Parse reads an expression of five fields, of six with the seconds first, or one like @daily. The error is forerun.Invalid
// and says what is wrong, also if the expression names no day at all.
func Parse(expression string, zone *time.Location) (*Schedule, error) {
	invalid := func(reason string) (*Schedule, error) {
		return nil, forerun.Errorf(forerun.Invalid, "cron", "cron pattern '%s' is not valid: %s", expression, reason)
	}
	if strings.Contains(expression, "TZ=") {
		return invalid("name the time zone in the parameter timezone")
	}
	p, err := parser.TryNewParser(parser.SecondOptional | parser.Minute | parser.Hour | parser.Dom | parser.Month | parser.Dow | parser.DowOrDom | parser.Descriptor)
	if err != nil {
		return nil, err
	}
	if reason := refuse(p, expression); reason != "" {
		return invalid(reason)
	}
	parsed, err := p.Parse(expression)
	if err != nil {
		return invalid(err.Error())
	}
	fields, ok := parsed.(*parser.SpecSchedule)
	if !ok {
		return invalid("@every names a distance and no times: use the feed interval")
	}
	s := &Schedule{
		seconds: fields.Second &^ star, minutes: fields.Minute &^ star, hours: fields.Hour &^ star,
		days: fields.Dom &^ star, months: fields.Month &^ star, weekdays: fields.Dow &^ star,
		either: fields.Dom&star == 0 && fields.Dow&star == 0, zone: zone,
	}
	if _, ok := s.nextShown(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return invalid("none of its months has one of its days")
	}
	return s, nil
}

// columns are the fields of an expression of six, each with the values that it takes.
var columns = []struct{ name, values string }{
	{"second", "0 to 59"},
	{"minute", "0 to 59"},
	{"hour", "0 to 23"},
	{"day of month", "1 to 31"},
	{"month", "1 to 12, or jan to dec"},
	{"day of week", "0 to 7, or sun to sat"},
}

// refuse says which field of an expression is wrong, and which values it takes; empty: none is. The parser's own errors name its
// options and Go's functions, and it takes a range that ends before it begins for one across the end of the field.
func refuse(p parser.Parser, expression string) string {
	if len(expression) > parser.MaxSpecLength {
		return fmt.Sprintf("it is %d characters long, and may have %d", len(expression), parser.MaxSpecLength)
	}
	if strings.HasPrefix(expression, "@") {
		if _, err := p.Parse(expression); err != nil {
			return "use @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, or five fields"
		}
		return ""
	}
	fields := strings.Fields(expression)
	if len(fields) != 5 && len(fields) != 6 {
		return fmt.Sprintf("it has %d fields: write five (minute, hour, day of month, month, day of week), or six with the second first", len(fields))
	}
	for i, field := range fields {
		at := i + len(columns) - len(fields)
		if part := backwards(field); part != "" {
			return fmt.Sprintf("the range %s ends before it begins, in the %s: write it as two", part, columns[at].name)
		}
		alone := []string{"*", "*", "*", "*", "*", "*"}
		alone[at] = field
		if _, err := p.Parse(strings.Join(alone, " ")); err != nil {
			return fmt.Sprintf("the %s is '%s': use %s, or *; lists (1,2), ranges (1-5) and steps (*/2) of these", columns[at].name, field, columns[at].values)
		}
	}
	return ""
}

// names are the values that have a name.
var names = map[string]int{
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
	"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6,
}

// backwards returns a range of a field that ends before it begins; empty: there is none.
func backwards(field string) string {
	for part := range strings.SplitSeq(strings.ToLower(field), ",") {
		part, _, _ = strings.Cut(part, "/")
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			continue
		}
		begin, ok1 := value(from)
		end, ok2 := value(to)
		if to == "sun" {
			end = 7
		}
		if ok1 && ok2 && begin > end {
			return part
		}
	}
	return ""
}

func value(s string) (int, bool) {
	if n, ok := names[s]; ok {
		return n, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// Next returns the first moment after t at which the schedule is due. The zero time means that there is none.
func (s *Schedule) Next(t time.Time) time.Time {
	t = t.Truncate(time.Second)
	if s.hours == everyHour {
		return s.nextElapsed(t)
	}
	shown, ok := s.nextShown(s.latestShown(t))
	if !ok {
		return time.Time{}
	}
	return s.firstReached(shown)
}

// Last returns the latest moment from from to to, both included, at which the schedule is due. The zero time means that there is none.
func (s *Schedule) Last(from, to time.Time) (last time.Time) {
	for window := time.Minute; ; window *= 4 {
		begin := to.Add(-window)
		if begin.Before(from) {
			begin = from
		}
		for next := s.Next(begin.Add(-time.Second)); !next.IsZero() && !next.After(to); next = s.Next(next) {
			if !next.Before(from) {
				last = next
			}
		}
		if !last.IsZero() || !begin.After(from) {
			return last
		}
	}
}

// What a clock on the wall shows is a time in UTC here: its fields are what counts.

// offset is how far the wall clock of the zone is ahead of UTC at t.
func (s *Schedule) offset(t time.Time) time.Duration {
	_, seconds := t.In(s.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// period returns when the offset that holds at t began and ends; zero times mean that it always did or will.
func (s *Schedule) period(t time.Time) (begin, end time.Time) {
	begin, end = t.In(s.zone).ZoneBounds()
	return begin.UTC(), end.UTC()
}

// longestOverlap is more than a zone has ever put its clock back, and more than any offset.
const longestOverlap = 26 * time.Hour

// latestShown is the latest time that the wall clock has shown up to t. It is later than what it shows at t if the clock was put back.
func (s *Schedule) latestShown(t time.Time) time.Time {
	latest := t.UTC().Add(s.offset(t))
	for begin, _ := s.period(t); !begin.IsZero() && t.Sub(begin) < longestOverlap; begin, _ = s.period(begin.Add(-time.Second)) {
		if shown := begin.Add(-time.Second).Add(s.offset(begin.Add(-time.Second))); shown.After(latest) {
			latest = shown
		}
	}
	return latest
}

// firstReached is the first moment at which the wall clock shows a time, or a later one because it skipped that.
func (s *Schedule) firstReached(shown time.Time) time.Time {
	for t := shown.Add(-longestOverlap); ; {
		begin, end := s.period(t)
		at := shown.Add(-s.offset(t))
		if !begin.IsZero() && at.Before(begin) {
			at = begin
		}
		if end.IsZero() || at.Before(end) {
			return at
		}
		t = end
	}
}

// nextElapsed is Next of a schedule that is due whenever the wall clock shows one of its times.
func (s *Schedule) nextElapsed(t time.Time) time.Time {
	for after := t; ; {
		now := after.Add(time.Second) // the first that may be due
		_, end := s.period(now)
		offset := s.offset(now)
		shown, ok := s.nextShown(after.UTC().Add(offset))
		if !ok {
			return time.Time{}
		}
		if at := shown.Add(-offset); end.IsZero() || at.Before(end) {
			return at
		}
		after = end.Add(-time.Second)
	}
}

// farthest is how many years may pass between two days that an expression names: 29 February is missing from 1897 to 1903.
const farthest = 9

// nextShown is the first time after another that the expression names, as a wall clock that skips and repeats nothing shows it.
func (s *Schedule) nextShown(after time.Time) (time.Time, bool) {
	t := after.UTC().Truncate(time.Second).Add(time.Second)
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	if s.isDue(t) {
		if h, m, c, ok := s.nextClock(hour, minute, second); ok {
			return time.Date(year, month, day, h, m, c, 0, time.UTC), true
		}
	}
	h, m, c, _ := s.nextClock(0, 0, 0) // each field has a value
	for d := time.Date(year, month, day+1, h, m, c, 0, time.UTC); d.Year() <= year+farthest; d = d.AddDate(0, 0, 1) {
		if s.isDue(d) {
			return d, true
		}
	}
	return time.Time{}, false
}

// isDue tells whether the expression names a day.
func (s *Schedule) isDue(t time.Time) bool {
	if !has(s.months, int(t.Month())) {
		return false
	}
	day, weekday := has(s.days, t.Day()), has(s.weekdays, int(t.Weekday()))
	if s.either {
		return day || weekday
	}
	return day && weekday
}

// nextClock is the first time of a day that the expression names, from one on.
func (s *Schedule) nextClock(hour, minute, second int) (h, m, c int, ok bool) {
	first := func(set uint64) int { return bits.TrailingZeros64(set) }
	if has(s.hours, hour) {
		if has(s.minutes, minute) {
			if c, ok := next(s.seconds, second); ok {
				return hour, minute, c, true
			}
		}
		if m, ok := next(s.minutes, minute+1); ok {
			return hour, m, first(s.seconds), true
		}
	}
	h, ok = next(s.hours, hour+1)
	return h, first(s.minutes), first(s.seconds), ok
}

func has(set uint64, n int) bool { return set>>n&1 == 1 }

// next is the least value of a set from n on.
func next(set uint64, n int) (int, bool) {
	set = set >> n << n
	return bits.TrailingZeros64(set), set != 0
}
