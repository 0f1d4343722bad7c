package timer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// start is when the tests begin: a Saturday.
var start = time.Date(2026, 11, 28, 12, 0, 30, 0, time.UTC)

func settings(t *testing.T, text string) (p Parameters) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func newTimer(t *testing.T, feed, text string) *Timer {
	t.Helper()
	made, err := New(feed, settings(t, text), start)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// again stores a timer and reads it.
func again(t *testing.T, timer *Timer) *Timer {
	t.Helper()
	data, err := timer.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// firings lists for which moments a timer is fired that is looked at at once each time.
func firings(t *testing.T, timer *Timer, most int) string {
	t.Helper()
	var all []string
	for now := start; len(all) < most && timer.Next != 0; {
		timer = again(t, timer)
		if at := time.UnixMilli(timer.Next); at.After(now) {
			now = at
		}
		moment, _, ok := timer.Due(now)
		if !ok {
			t.Fatalf("it is not due at %v, but next at %v", now, iso(timer.Next))
		}
		all = append(all, moment.UTC().Format("2006-01-02T15:04:05"))
		timer.Advance(moment, now)
	}
	if timer.Next == 0 {
		all = append(all, timer.Reason)
	}
	return strings.Join(all, " ")
}

func TestMoments(t *testing.T) {
	for _, test := range []struct{ feed, settings, want string }{
		{Alarm, `{"cron": "0 * * * *"}`, "2026-11-28T13:00:00 2026-11-28T14:00:00 2026-11-28T15:00:00"},
		{Alarm, `{"cron": "*/10 * * * * *"}`, "2026-11-28T12:00:40 2026-11-28T12:00:50 2026-11-28T12:01:00"},
		{Alarm, `{"cron": "0 3 * * *", "timezone": "Europe/Berlin"}`, "2026-11-29T02:00:00 2026-11-30T02:00:00 2026-12-01T02:00:00"},
		{Alarm, `{"cron": "0 0 * * *", "maxTriggers": "2"}`, "2026-11-29T00:00:00 2026-11-30T00:00:00 Automatically disabled after reaching max triggers"},
		{
			Alarm, `{"cron": "0 0 * * *", "stopDate": "2026-11-30T00:00:00.000Z"}`,
			"2026-11-29T00:00:00 2026-11-30T00:00:00 Automatically disabled after firing the last time before the stop date",
		},
		{Alarm, `{"cron": "0 0 * * *", "startDate": "2027-01-01"}`, "2027-01-01T00:00:00 2027-01-02T00:00:00 2027-01-03T00:00:00"},
		{Alarm, `{"cron": "0 0 * * *", "startDate": "2027-01-01T00:00:00.001Z"}`, "2027-01-02T00:00:00 2027-01-03T00:00:00 2027-01-04T00:00:00"},
		{Interval, `{"minutes": 2}`, "2026-11-28T12:01:00 2026-11-28T12:03:00 2026-11-28T12:05:00"},
		{Interval, `{"minutes": "90", "startDate": 1798761600000}`, "2027-01-01T00:00:00 2027-01-01T01:30:00 2027-01-01T03:00:00"},
		{
			Interval, `{"minutes": 1, "startDate": "2027-01-01T00:00Z", "stopDate": "2027-01-01T02:01:30+02:00"}`,
			"2027-01-01T00:00:00 2027-01-01T00:01:00 Automatically disabled after firing the last time before the stop date",
		},
		{Interval, `{"minutes": 1, "maxTriggers": 1}`, "2026-11-28T12:01:00 Automatically disabled after reaching max triggers"},
		{Once, `{"date": "2026-12-25T12:30:00.000Z"}`, "2026-12-25T12:30:00 Automatically disabled after firing once"},
		{Once, `{"date": 1798201800000}`, "2026-12-25T12:30:00 Automatically disabled after firing once"},
		{Once, `{"date": "1798201800000"}`, "2026-12-25T12:30:00 Automatically disabled after firing once"},
	} {
		if got := firings(t, newTimer(t, test.feed, test.settings), 3); got != test.want {
			t.Errorf("%s %s: %s, not %s", test.feed, test.settings, got, test.want)
		}
	}
}

// TestLate: moments that have passed become one firing, for the latest.
func TestLate(t *testing.T) {
	for _, test := range []struct {
		feed, settings string
		late           time.Duration
		moment, next   string
	}{
		{Alarm, `{"cron": "0 * * * *"}`, 0, "2026-11-28T13:00:00.000Z", "2026-11-28T14:00:00.000Z"},
		{Alarm, `{"cron": "0 * * * *"}`, 59 * time.Minute, "2026-11-28T13:00:00.000Z", "2026-11-28T14:00:00.000Z"},
		{Alarm, `{"cron": "0 * * * *"}`, 49*time.Hour + time.Second, "2026-11-30T14:00:00.000Z", "2026-11-30T15:00:00.000Z"},
		{Alarm, `{"cron": "* * * * * *"}`, 10000*time.Hour + time.Millisecond, "2028-01-19T04:00:31.000Z", "2028-01-19T04:00:32.000Z"},
		{Alarm, `{"cron": "0 0 29 2 *"}`, time.Hour, "2028-02-29T00:00:00.000Z", "2032-02-29T00:00:00.000Z"},
		{Alarm, `{"cron": "0 0 * * *", "stopDate": "2026-11-30T12:00:00Z"}`, 1000 * time.Hour, "2026-11-30T00:00:00.000Z", ""},
		{Interval, `{"minutes": 7}`, 15 * time.Minute, "2026-11-28T12:15:00.000Z", "2026-11-28T12:22:00.000Z"},
		{Once, `{"date": "2026-12-25T12:30:00Z"}`, 1000 * time.Hour, "2026-12-25T12:30:00.000Z", ""},
	} {
		timer := newTimer(t, test.feed, test.settings)
		due := time.UnixMilli(timer.Next)
		if _, _, ok := timer.Due(due.Add(-time.Millisecond)); ok {
			t.Errorf("%s is due too early", test.settings)
		}
		moment, first, ok := timer.Due(due.Add(test.late))
		if !ok || iso(moment.UnixMilli()) != test.moment || !first.Equal(due) {
			t.Errorf("%s, %v late: %v %v since %v, not %s", test.settings, test.late, ok, moment, first, test.moment)
		}
		timer.Advance(moment, due.Add(test.late))
		if got := timer.Document(forerun.Name{}).Status.NextFire; got != test.next {
			t.Errorf("%s goes on at %s, not %s", test.settings, got, test.next)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct{ feed, settings, want string }{
		{"other", `{}`, `"other" is not a feed`},
		{Alarm, `{}`, "alarms trigger feed is missing the cron parameter"},
		{Alarm, `{"cron": 5}`, "the cron parameter must be a string"},
		{Alarm, `{"cron": "0 0 * * *", "timeZone": "Asia/Tokyo"}`, "the feed alarm has no parameter 'timeZone': its parameters are cron, timezone, startDate, stopDate, maxTriggers, strict, trigger_payload"},
		{Interval, `{"minutes": 5, "cron": "0 0 * * *"}`, "the feed interval has no parameter 'cron': its parameters are minutes, "},
		{Once, `{"date": "2030-01-01", "minutes": null}`, "the feed once has no parameter 'minutes': its parameters are date, deleteAfterFire, trigger_payload"},
		{Alarm, `{"cron": "0 0 31 2 *"}`, "none of its months has one of its days"},
		{Alarm, `{"cron": "0 0 * * 5-1"}`, "ends before it begins"},
		{Alarm, `{"cron": "0 0 * * *", "timezone": "Mars/Olympus"}`, "timezone 'Mars/Olympus' is not known"},
		{Alarm, `{"cron": "0 0 * * *", "timezone": "Local"}`, "timezone 'Local' is not known"},
		{Alarm, `{"cron": "0 0 * * *", "timezone": "../../etc/passwd"}`, "is not known"},
		{Alarm, `{"cron": "0 0 * * *", "strict": "perhaps"}`, "strict"},
		{Alarm, `{"cron": "0 0 * * *", "maxTriggers": 0}`, "maxTriggers"},
		{Alarm, `{"cron": "0 0 * * *", "maxTriggers": 2, "stopDate": "2030-01-01"}`, "maxTriggers is not allowed when the stopDate parameter is specified"},
		{Alarm, `{"cron": "0 0 * * *", "startDate": "soon"}`, "startDate parameter 'soon' is not a valid Date"},
		{Alarm, `{"cron": "0 0 * * *", "startDate": "2026-11-28T12:00:30Z"}`, "startDate parameter '2026-11-28T12:00:30Z' must be in the future"},
		{Alarm, `{"cron": "0 0 * * *", "stopDate": 1000000000000}`, "stopDate parameter '1000000000000' must be in the future"},
		{Alarm, `{"cron": "0 0 * * *", "startDate": "2027-01-02", "stopDate": "2027-01-01"}`, "must be greater than the startDate parameter '2027-01-02'"},
		{Alarm, `{"cron": "0 0 1 1 *", "stopDate": "2026-12-31"}`, "the first scheduled trigger fire is not until after the stop date"},
		{Alarm, `{"cron": "0 0 * * *", "trigger_payload": [1]}`, "trigger_payload parameter must be an object or a string"},
		{Interval, `{}`, "interval trigger feed is missing the minutes parameter"},
		{Interval, `{"minutes": 1.5}`, "the minutes parameter must be an integer"},
		{Interval, `{"minutes": 0}`, "greater than zero"},
		{Interval, `{"minutes": 99999999999999}`, "at most"},
		{Once, `{}`, "alarms once trigger feed is missing the date parameter"},
		{Once, `{"date": "2026-11-28"}`, "date parameter '2026-11-28' must be in the future"},
		{Once, `{"date": "2026-13-01"}`, "is not a valid Date"},
		{Once, `{"date": "2030-01-01", "deleteAfterFire": "perhaps"}`, "deleteAfterFire parameter must be one of [false, true, rules]"},
	} {
		_, err := New(test.feed, settings(t, test.settings), start)
		if err == nil || !strings.Contains(err.Error(), test.want) || forerun.KindOf(err) != forerun.Invalid {
			t.Errorf("%s %s: %v, not %q", test.feed, test.settings, err, test.want)
		}
	}
}

func TestUpdate(t *testing.T) {
	later := start.Add(time.Hour)
	for _, test := range []struct{ feed, made, given, want string }{
		{Alarm, `{"cron": "0 0 * * *", "trigger_payload": "x"}`, `{"cron": "0 1 * * *"}`, `"cron":"0 1 * * *"`},
		{Alarm, `{"cron": "0 0 * * *", "trigger_payload": "x"}`, `{"cron": "0 1 * * *"}`, `"payload":{"payload":"x"}`},
		{Alarm, `{"cron": "0 0 * * *"}`, `{"timezone": "Asia/Tokyo"}`, `"nextFire":"2026-11-28T15:00:00.000Z"`},
		{Alarm, `{"cron": "0 0 * * *"}`, `{"trigger_payload": {"b": 1}}`, `"payload":{"b":1}`},
		{Alarm, `{"cron": "0 0 * * *", "startDate": "2026-11-28T12:30:00Z"}`, `{"cron": "0 1 * * *"}`, `"nextFire":"2026-11-29T01:00:00.000Z"`}, // its start has passed
		{Interval, `{"minutes": 5}`, `{"minutes": 7}`, `"nextFire":"2026-11-28T13:04:00.000Z"`},
		{Once, `{"date": "2030-01-01"}`, `{"date": "2031-01-01"}`, `"nextFire":"2031-01-01T00:00:00.000Z"`},
		{Once, `{"date": "2030-01-01"}`, `{"cron": "* * * * *"}`, "the feed once has no parameter 'cron'"},
		{Once, `{"date": "2030-01-01"}`, `{}`, "no updatable parameters were specified"},
		{Alarm, `{"cron": "0 0 * * *"}`, `{"trigger_payload": ""}`, "no updatable parameters were specified"},
		{Alarm, `{"cron": "0 0 * * *"}`, `{"cron": "0 0 31 2 *"}`, "none of its months"},
		{Once, `{"date": "2026-11-28T12:30:00Z"}`, `{"trigger_payload": "x"}`, "must be in the future"},
	} {
		old := again(t, newTimer(t, test.feed, test.made))
		updated, err := old.Update(settings(t, test.given), later)
		if err != nil {
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s to %s: %v, not %q", test.made, test.given, err, test.want)
			}
			continue
		}
		if text, err := json.Marshal(updated.Document(forerun.Name{Namespace: "guest", Entity: "t"})); err != nil || !strings.Contains(string(text), test.want) {
			t.Errorf("%s to %s: %s %v, without %s", test.made, test.given, text, err, test.want)
		}
		if updated.ID == old.ID {
			t.Errorf("%s to %s: firings before and after cannot be told apart", test.made, test.given)
		}
	}
}
