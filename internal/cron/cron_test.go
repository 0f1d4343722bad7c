package cron

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	_ "time/tzdata" // the machine may have no time zones
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func parse(t *testing.T, expression, in string) *Schedule {
	t.Helper()
	s, err := Parse(expression, zone(t, in))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// moments lists when a schedule is due from one time to another, that excluded.
func moments(s *Schedule, from, to time.Time) (all []time.Time) {
	for at := s.Next(from.Add(-time.Second)); !at.IsZero() && at.Before(to); at = s.Next(at) {
		all = append(all, at.UTC())
	}
	return all
}

func year(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }

// TestDays counts how often expressions are due in 2026, by which implementations of cron differ.
func TestDays(t *testing.T) {
	for expression, want := range map[string]int{
		"0 0 13 * 5":      61, // the 13th, and Fridays
		"0 0 */2 * 1":     212,
		"0 0 1-31 * 1":    365, // a range is given, even if it names every day
		"0 0 13 * */2":    215,
		"0 0 */1 * 1":     52, // a step of one is the star itself
		"0 0 ? * 1":       52,
		"0 0 13 * ?":      12,
		"0 0 * * 5-7":     156,
		"0 0 * * fri-sun": 156,
		"0 0 * * 0,7":     52,
		"0 0 * * 0-7":     365,
		"0 0 31 * *":      7,
		"0 0 31 2 1":      4, // the Mondays of February
		"0 0 29 2 *":      0,
		"0 0 1 jan *":     1,
		"@daily":          365,
		"@weekly":         52,
		"0 12 * * MON":    52,
		"5/20 0 1 1 *":    3,
		"15 30 4 1 1 *":   1, // with seconds
		"*/20 0 0 1 1 *":  3,
		"0 0 0 * * *":     365,
	} {
		if got := len(moments(parse(t, expression, "UTC"), year(2026), year(2027))); got != want {
			t.Errorf("%s is due %d times in 2026, not %d", expression, got, want)
		}
	}
	if next := parse(t, "0 0 29 2 *", "UTC").Next(year(2097)); next != time.Date(2104, 2, 29, 0, 0, 0, 0, time.UTC) {
		t.Errorf("29 February comes next at %v", next)
	}
}

// TestRefused: what cannot be meant is refused with the reason.
func TestRefused(t *testing.T) {
	for expression, want := range map[string]string{
		"0 0 * * 5-1":             "the range 5-1 ends before it begins",
		"0 0 * * fri-mon":         "the range fri-mon ends before it begins",
		"30-10 * * * *":           "the range 30-10 ends before it begins",
		"0 22-4/2 * * *":          "the range 22-4 ends before it begins",
		"0 0 31 2 *":              "none of its months has one of its days",
		"0 0 30-31 feb *":         "none of its months has one of its days",
		"0 0 31 4,6,9,11 *":       "none of its months has one of its days",
		"":                        "it has 0 fields: write five",
		"* * * *":                 "it has 4 fields: write five (minute, hour, day of month, month, day of week), or six with the second first",
		"* * * * * * *":           "it has 7 fields",
		"60 * * * *":              "the minute is '60': use 0 to 59, or *; lists (1,2), ranges (1-5) and steps (*/2) of these",
		"60 * * * * *":            "the second is '60'",
		"* 24 * * *":              "the hour is '24': use 0 to 23",
		"* * 0 * *":               "the day of month is '0': use 1 to 31",
		"* * * 13 *":              "the month is '13': use 1 to 12, or jan to dec",
		"* * * * 8":               "the day of week is '8': use 0 to 7, or sun to sat",
		"*/0 * * * *":             "the minute is '*/0'",
		"a * * * *":               "the minute is 'a'",
		"* * * * mon,funday":      "the day of week is 'mon,funday'",
		"@every 1m":               "use the feed interval",
		"@every soon":             "use @yearly",
		"@reboot":                 "use @yearly",
		"TZ=UTC 0 0 * * *":        "parameter timezone",
		"CRON_TZ=UTC 0 0 * * *":   "parameter timezone",
		"0 0 L * *":               "the day of month is 'L'",
		"0 0 15W * *":             "the day of month is '15W'",
		"0 0 * * 5#2":             "the day of week is '5#2'",
		"H * * * *":               "the minute is 'H'",
		strings.Repeat("1,", 999): "it is 1998 characters long, and may have 1024",
	} {
		s, err := Parse(expression, time.UTC)
		if err == nil {
			t.Errorf("%q is accepted: %+v", expression, s)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is refused with %q, not %q", expression, err, want)
		} else if regexp.MustCompile("strconv|option|Dom|Dow|spec|Parse").MatchString(err.Error()) {
			t.Errorf("%q is refused in the parser's words: %q", expression, err)
		}
	}
}

// TestDaylightSaving are moments around changes of the clock.
func TestDaylightSaving(t *testing.T) {
	for _, test := range []struct{ zone, expression, from, to, want string }{
		{"America/Havana", "0 0 * * *", "2024-03-09T12:00", "2024-03-11T12:00", "2024-03-10T05:00 2024-03-11T04:00"},
		{"Europe/Berlin", "30 2 * * *", "2024-10-26T12:00", "2024-10-28T12:00", "2024-10-27T00:30 2024-10-28T01:30"},
		{"Europe/Berlin", "30 2 * * *", "2024-03-30T12:00", "2024-04-01T12:00", "2024-03-31T01:00 2024-04-01T00:30"},
		{"Europe/Berlin", "*/30 * * * *", "2024-03-31T00:00", "2024-03-31T02:00", "2024-03-31T00:00 2024-03-31T00:30 2024-03-31T01:00 2024-03-31T01:30"},
		{"Europe/Berlin", "*/30 * * * *", "2024-10-27T00:00", "2024-10-27T02:00", "2024-10-27T00:00 2024-10-27T00:30 2024-10-27T01:00 2024-10-27T01:30"},
		{"Europe/Berlin", "15 * * * *", "2024-03-31T00:00", "2024-03-31T03:00", "2024-03-31T00:15 2024-03-31T01:15 2024-03-31T02:15"},
		{"Europe/Berlin", "0,30 2 * * *", "2024-03-31T00:00", "2024-03-31T12:00", "2024-03-31T01:00"}, // both are skipped: one moment
		{"Europe/Berlin", "0 2,3 * * *", "2024-03-31T00:00", "2024-03-31T12:00", "2024-03-31T01:00"},
		{"Europe/Berlin", "0 2,3 * * *", "2024-10-27T00:00", "2024-10-27T12:00", "2024-10-27T00:00 2024-10-27T02:00"},
		{"Australia/Lord_Howe", "15 2 * * *", "2024-10-05T00:00", "2024-10-07T00:00", "2024-10-05T15:30 2024-10-06T15:15"}, // by half an hour
		{"Pacific/Apia", "0 12 30 12 *", "2011-12-28T00:00", "2012-01-02T00:00", "2011-12-30T10:00"},                       // a day was skipped
	} {
		s := parse(t, test.expression, test.zone)
		var got []string
		for _, at := range moments(s, when(t, test.from), when(t, test.to)) {
			got = append(got, at.Format("2006-01-02T15:04"))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s in %s: %v, not %s", test.expression, test.zone, got, test.want)
		}
	}
}

func when(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04", s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// scan finds the moments by looking at the wall clock minute by minute. It knows the rules only as the package comment tells them.
func scan(s *Schedule, from, to time.Time, fits func(shown time.Time) bool) (all []time.Time) {
	everyHour := true
	for hour := range 24 {
		everyHour = everyHour && has(s.hours, hour)
	}
	var reached time.Time // the latest that the clock has shown
	for t := from.Add(-48 * time.Hour); t.Before(to); t = t.Add(time.Minute) {
		y, month, d := t.In(s.zone).Date()
		h, m, _ := t.In(s.zone).Clock()
		shown := time.Date(y, month, d, h, m, 0, 0, time.UTC)
		due := everyHour && fits(shown)
		if !everyHour && !reached.IsZero() {
			for passed := reached.Add(time.Minute); !passed.After(shown); passed = passed.Add(time.Minute) {
				due = due || fits(passed)
			}
		}
		if reached.IsZero() || shown.After(reached) {
			reached = shown
		}
		if due && !t.Before(from) {
			all = append(all, t)
		}
	}
	return all
}

// field is one at random, with the values that it stands for.
func field(r *rand.Rand, least, most int) (text string, values map[int]bool, isStar bool) {
	values = make(map[int]bool)
	add := func(from, to, step int) {
		for v := from; v <= to; v += step {
			values[v] = true
		}
	}
	switch from := least + r.IntN(most-least+1); r.IntN(5) {
	case 0, 1:
		add(least, most, 1)
		return "*", values, true
	case 2:
		step := 2 + r.IntN(5)
		add(least, most, step)
		return fmt.Sprintf("*/%d", step), values, false
	case 3:
		to := from + r.IntN(most-from+1)
		add(from, to, 1)
		return fmt.Sprintf("%d-%d", from, to), values, false
	default:
		other := least + r.IntN(most-least+1)
		values[from], values[other] = true, true
		return fmt.Sprintf("%d,%d", from, other), values, false
	}
}

// TestScan compares with the scan, over expressions at random and around the changes of many clocks.
func TestScan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	spans := []struct{ zone, around string }{
		{"UTC", "2026-02-27T00:00"},
		{"Europe/Berlin", "2024-03-31T00:00"},
		{"Europe/Berlin", "2024-10-27T00:00"},
		{"America/Havana", "2024-03-10T00:00"},
		{"America/Havana", "2024-11-03T00:00"},
		{"America/New_York", "2026-03-08T00:00"},
		{"Australia/Lord_Howe", "2024-10-05T12:00"},
		{"Australia/Lord_Howe", "2025-04-05T12:00"},
		{"Pacific/Apia", "2011-12-30T00:00"},
		{"Asia/Kathmandu", "1985-12-31T12:00"},
		{"Africa/Casablanca", "2026-02-15T00:00"},
		{"America/Sao_Paulo", "2018-11-04T00:00"},
		{"Antarctica/Troll", "2024-03-31T00:00"},
		{"Antarctica/Troll", "2024-10-27T00:00"},
		{"Asia/Tehran", "2022-03-21T00:00"},
	}
	for range 600 {
		span := spans[r.IntN(len(spans))]
		minute, minutes, _ := field(r, 0, 59)
		hour, hours, _ := field(r, 0, 23)
		day, days, anyDay := field(r, 1, 31)
		month, months, _ := field(r, 1, 12)
		weekday, weekdays, anyWeekday := field(r, 0, 6)
		expression := strings.Join([]string{minute, hour, day, month, weekday}, " ")
		s, err := Parse(expression, zone(t, span.zone))
		if err != nil {
			continue // it names no day
		}
		fits := func(shown time.Time) bool {
			inMonth, inWeek := days[shown.Day()], weekdays[int(shown.Weekday())]
			isDay := inMonth && inWeek
			if !anyDay && !anyWeekday {
				isDay = inMonth || inWeek
			}
			return isDay && minutes[shown.Minute()] && hours[shown.Hour()] && months[int(shown.Month())]
		}
		from, to := when(t, span.around).Add(-36*time.Hour), when(t, span.around).Add(60*time.Hour)
		got, want := moments(s, from, to), scan(s, from, to, fits)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s in %s around %s is due\n%v, not\n%v", expression, span.zone, span.around, got, want)
		}
		for range 20 {
			after := from.Add(time.Duration(r.Int64N(int64(to.Sub(from)))))
			var next time.Time
			for _, at := range want {
				if at.After(after) {
					next = at
					break
				}
			}
			if got := s.Next(after); !next.IsZero() && !got.Equal(next) {
				t.Fatalf("%s in %s is due after %v at %v, not %v", expression, span.zone, after, got, next)
			}
		}
		last := s.Last(from, to.Add(-time.Second))
		if len(want) == 0 && !last.IsZero() || len(want) > 0 && !last.Equal(want[len(want)-1]) {
			t.Fatalf("%s in %s: the last is %v of %v", expression, span.zone, last, want)
		}
	}
}

// TestYears compares with the scan over whole years of zones with few and many changes.
func TestYears(t *testing.T) {
	for _, test := range []struct{ zone, expression string }{
		{"Europe/Berlin", "30 2 * * *"}, {"America/Havana", "0 0 * * *"}, {"Africa/Casablanca", "15 2,3 * * *"}, {"Antarctica/Troll", "10 1,2 * * *"},
	} {
		s := parse(t, test.expression, test.zone)
		fits := func(shown time.Time) bool {
			return s.isDue(shown) && has(s.minutes, shown.Minute()) && has(s.hours, shown.Hour())
		}
		if got, want := moments(s, year(2024), year(2027)), scan(s, year(2024), year(2027), fits); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s in %s: %d moments, not %d", test.expression, test.zone, len(got), len(want))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0 0 13 * 5", int64(0))
	f.Add("*/7 1-3 ? jan-mar fri-sun", int64(1e9))
	f.Fuzz(func(t *testing.T, expression string, at int64) {
		s, err := Parse(expression, time.UTC)
		if err != nil {
			return
		}
		from := time.Unix(at%4e9, 0)
		if next := s.Next(from); !next.After(from) {
			t.Errorf("%q is due at %v after %v", expression, next, from)
		}
	})
}
