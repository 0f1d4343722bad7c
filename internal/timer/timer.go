// Package timer fires triggers at the times that OpenWhisk's alarm feeds name:
// alarm (a cron expression), interval (every so many minutes) and once (a date).
//
// A Timer is the schedule of one trigger, stored beside it. It is pure: it says
// when the trigger is due and what comes after. A Loop fires the triggers of a
// server.
//
// The loop promises that each moment of a timer is fired once, over restarts and
// kills of the server: it fires first and then notes the next moment on disk, and
// a firing that is repeated finds what the first one began (Firing.ID). Moments
// that pass while the server is down, or before an earlier firing has ended,
// become one firing, for the latest of them.
package timer

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a machine may have no time zones

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/cron"
	"forerun.dev/forerun/internal/forerun"
)

// The feeds.
const (
	Alarm    = "alarm"
	Once     = "once"
	Interval = "interval"
)

// Settings are the parameters of a feed, under OpenWhisk's names. A parameter that is not given is empty.
type Settings struct {
	Cron            string          `json:"cron,omitempty"`
	Timezone        string          `json:"timezone,omitempty"`
	Minutes         json.RawMessage `json:"minutes,omitempty"`
	Date            json.RawMessage `json:"date,omitempty"`
	StartDate       json.RawMessage `json:"startDate,omitempty"`
	StopDate        json.RawMessage `json:"stopDate,omitempty"`
	MaxTriggers     json.RawMessage `json:"maxTriggers,omitempty"`
	DeleteAfterFire json.RawMessage `json:"deleteAfterFire,omitempty"`
	Strict          json.RawMessage `json:"strict,omitempty"`
	Payload         json.RawMessage `json:"trigger_payload,omitempty"`
}

// Parameters are what a caller gives a feed, by name.
type Parameters map[string]json.RawMessage

// parametersOf are the names of each feed's parameters.
var parametersOf = map[string][]string{
	Alarm:    {"cron", "timezone", "startDate", "stopDate", "maxTriggers", "strict", "trigger_payload"},
	Once:     {"date", "deleteAfterFire", "trigger_payload"},
	Interval: {"minutes", "startDate", "stopDate", "maxTriggers", "trigger_payload"},
}

// Timer is when a trigger is fired, and how far that has come. Times are in milliseconds since 1970.
type Timer struct {
	ID       string   `json:"id"` // tells what it fires from what an earlier timer of the trigger did
	Feed     string   `json:"feed"`
	Settings Settings `json:"settings"`
	Begun    int64    `json:"begun"`            // of an interval: its first moment
	Next     int64    `json:"next,omitempty"`   // the moment that is fired next; 0: none is
	Fired    int      `json:"fired,omitempty"`  // how often it was
	Changed  int64    `json:"changed"`          // when it was made, changed or ended
	Reason   string   `json:"reason,omitempty"` // why it has ended

	minutes, most         int
	date, starts, stops   time.Time // zero: not given
	schedule              *cron.Schedule
	deleteTrigger, deRule bool
}

// startsIn is how long after its making an interval begins that names no date: its user makes the rules meanwhile.
const startsIn = 30 * time.Second

// New makes the timer of a feed. The error is forerun.Invalid, in OpenWhisk's words where it has some.
func New(feed string, parameters Parameters, now time.Time) (*Timer, error) {
	given, err := parameters.settings(feed)
	if err != nil {
		return nil, err
	}
	t := &Timer{Feed: feed, Settings: given, Begun: now.Add(startsIn).UnixMilli()}
	return t, t.begin(given, now)
}

// Update returns the timer with other settings: those that are given. It counts its firings afresh.
func (t *Timer) Update(parameters Parameters, now time.Time) (*Timer, error) {
	given, err := parameters.settings(t.Feed)
	if err != nil {
		return nil, err
	}
	updated := &Timer{Feed: t.Feed, Settings: t.Settings, Begun: t.Begun}
	if !updated.Settings.overlay(given) {
		return nil, invalid("no updatable parameters were specified")
	}
	return updated, updated.begin(given, now)
}

// settings reads the parameters of a feed. One that the feed does not know is refused by its name: it may be a misspelt one.
func (p Parameters) settings(feed string) (s Settings, err error) {
	known, ok := parametersOf[feed]
	if !ok {
		return s, invalid("%q is not a feed: use %s, %s or %s", feed, Alarm, Once, Interval)
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(known, name) {
			return s, invalid("the feed %s has no parameter '%s': its parameters are %s", feed, name, strings.Join(known, ", "))
		}
	}
	for name, of := range map[string]*string{"cron": &s.Cron, "timezone": &s.Timezone} {
		if isGiven(p[name]) && json.Unmarshal(p[name], of) != nil {
			return s, invalid("the %s parameter must be a string", name)
		}
	}
	s.Minutes, s.Date, s.StartDate, s.StopDate = p["minutes"], p["date"], p["startDate"], p["stopDate"]
	s.MaxTriggers, s.DeleteAfterFire, s.Strict, s.Payload = p["maxTriggers"], p["deleteAfterFire"], p["strict"], p["trigger_payload"]
	return s, nil
}

// overlay puts the given settings over these, and reports whether any is given.
func (s *Settings) overlay(given Settings) bool {
	changed := false
	put := func(of, given *json.RawMessage) {
		if isGiven(*given) {
			*of, changed = *given, true
		}
	}
	put(&s.Minutes, &given.Minutes)
	put(&s.Date, &given.Date)
	put(&s.DeleteAfterFire, &given.DeleteAfterFire)
	put(&s.StartDate, &given.StartDate)
	put(&s.StopDate, &given.StopDate)
	put(&s.MaxTriggers, &given.MaxTriggers)
	put(&s.Strict, &given.Strict)
	put(&s.Payload, &given.Payload)
	if given.Cron != "" {
		s.Cron, changed = given.Cron, true
	}
	if given.Timezone != "" {
		s.Timezone, changed = given.Timezone, true
	}
	return changed
}

// isGiven tells whether a parameter is: the package's default for the payload is an empty string.
func isGiven(value json.RawMessage) bool {
	return len(value) > 0 && string(value) != "null" && string(value) != `""`
}

// begin checks the settings, and finds the first moment.
func (t *Timer) begin(given Settings, now time.Time) error {
	t.ID, t.Changed = rand.Text(), now.UnixMilli()
	if err := t.read(); err != nil {
		return err
	}
	for _, d := range []struct {
		name string
		text json.RawMessage
		at   time.Time
	}{{"date", t.Settings.Date, t.date}, {"startDate", given.StartDate, t.starts}, {"stopDate", t.Settings.StopDate, t.stops}} {
		if isGiven(d.text) && !d.at.After(now) {
			return invalid("%s parameter '%s' must be in the future", d.name, plain(d.text))
		}
	}
	if !t.stops.IsZero() && !t.stops.After(t.starts) {
		return invalid("stopDate parameter '%s' must be greater than the startDate parameter '%s'", plain(t.Settings.StopDate), plain(t.Settings.StartDate))
	}
	if !t.starts.IsZero() {
		t.Begun = t.starts.UnixMilli()
	}
	after := now
	if t.starts.After(now) {
		after = t.starts.Add(-time.Nanosecond)
	}
	next := t.after(after)
	if next.IsZero() {
		return invalid("the first scheduled trigger fire is not until after the stop date")
	}
	t.Next = next.UnixMilli()
	return nil
}

// read reads the settings of the timer's feed.
func (t *Timer) read() (err error) {
	s := &t.Settings
	if s.Payload, err = object(s.Payload); err != nil {
		return err
	}
	switch t.Feed {
	case Once:
		return t.readOnce()
	case Interval:
		if !isGiven(s.Minutes) {
			return invalid("interval trigger feed is missing the minutes parameter")
		}
		if t.minutes, err = strconv.Atoi(plain(s.Minutes)); err != nil {
			return invalid("the minutes parameter must be an integer")
		}
		if t.minutes <= 0 || t.minutes > maxMinutes {
			return invalid("the minutes parameter must be an integer greater than zero, and at most %d", maxMinutes)
		}
	case Alarm:
		if err := t.readCron(); err != nil {
			return err
		}
	default:
		return invalid("%q is not a feed: use %s, %s or %s", t.Feed, Alarm, Once, Interval)
	}
	if t.most, err = count(s.MaxTriggers); err != nil {
		return err
	}
	if t.most > 0 && isGiven(s.StopDate) {
		return invalid("maxTriggers is not allowed when the stopDate parameter is specified")
	}
	if t.starts, err = date("startDate", s.StartDate); err == nil {
		t.stops, err = date("stopDate", s.StopDate)
	}
	return err
}

// maxMinutes is ten years.
const maxMinutes = 10 * 366 * 24 * 60

func (t *Timer) readOnce() (err error) {
	if !isGiven(t.Settings.Date) {
		return invalid("alarms once trigger feed is missing the date parameter")
	}
	if t.date, err = date("date", t.Settings.Date); err != nil || !isGiven(t.Settings.DeleteAfterFire) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(plain(t.Settings.DeleteAfterFire))) {
	case "false":
	case "true":
		t.deleteTrigger = true
	case "rules":
		t.deleteTrigger, t.deRule = true, true
	default:
		return invalid("deleteAfterFire parameter must be one of [false, true, rules]")
	}
	return nil
}

func (t *Timer) readCron() error {
	s := &t.Settings
	if s.Cron == "" {
		return invalid("alarms trigger feed is missing the cron parameter")
	}
	if isGiven(s.Strict) {
		if _, err := strconv.ParseBool(strings.ToLower(plain(s.Strict))); err != nil {
			return invalid("the strict parameter must be true or false")
		}
	}
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil || s.Timezone == "Local" {
		return invalid("timezone '%s' is not known: name one of the IANA database, like Europe/Berlin", s.Timezone)
	}
	t.schedule, err = cron.Parse(s.Cron, zone)
	return err
}

// after is the first moment after another; the zero time if there is none.
func (t *Timer) after(at time.Time) (next time.Time) {
	switch t.Feed {
	case Once:
		next = t.date
		if !next.After(at) {
			return time.Time{}
		}
	case Interval:
		next = t.beat(at)
		if next.IsZero() {
			next = time.UnixMilli(t.Begun)
		}
		for !next.After(at) {
			next = next.Add(t.step())
		}
	default:
		next = t.schedule.Next(at)
	}
	if !t.stops.IsZero() && next.After(t.stops) {
		return time.Time{}
	}
	return next
}

func (t *Timer) step() time.Duration { return time.Duration(t.minutes) * time.Minute }

// beat is the latest moment of an interval up to a time; the zero time if it has not begun.
func (t *Timer) beat(at time.Time) time.Time {
	begun := time.UnixMilli(t.Begun)
	if at.Before(begun) {
		return time.Time{}
	}
	return begun.Add(at.Sub(begun) / t.step() * t.step())
}

// Due tells whether the trigger is to be fired, for which moment, and which was the first that has passed without a firing.
func (t *Timer) Due(now time.Time) (moment, first time.Time, ok bool) {
	first = time.UnixMilli(t.Next)
	if t.Next == 0 || first.After(now) {
		return moment, first, false
	}
	until := now
	if !t.stops.IsZero() && until.After(t.stops) {
		until = t.stops
	}
	switch t.Feed {
	case Once:
		moment = first
	case Interval:
		moment = t.beat(until)
	default:
		moment = t.schedule.Last(first, until)
	}
	if moment.Before(first) {
		moment = first
	}
	return moment, first, true
}

// Advance notes that a moment was fired.
func (t *Timer) Advance(moment, now time.Time) {
	t.Fired++
	t.Next = 0
	next := t.after(moment)
	switch {
	case t.Feed == Once:
		t.Reason = "Automatically disabled after firing once"
	case t.most > 0 && t.Fired >= t.most:
		t.Reason = "Automatically disabled after reaching max triggers"
	case next.IsZero():
		t.Reason = "Automatically disabled after firing the last time before the stop date"
	default:
		t.Next = next.UnixMilli()
		return
	}
	t.Changed = now.UnixMilli()
}

// Deletes tells whether the trigger, and its rules, go when it was fired.
func (t *Timer) Deletes() (trigger, rules bool) { return t.deleteTrigger, t.deRule }

// Payload is what the trigger is fired with, a canonical object.
func (t *Timer) Payload() json.RawMessage { return t.Settings.Payload }

// Encode is the timer as it is stored.
func (t *Timer) Encode() ([]byte, error) { return canonical.Marshal(t) }

// Decode reads a timer that was stored.
func Decode(data []byte) (*Timer, error) {
	t := new(Timer)
	err := json.Unmarshal(data, t)
	if err == nil {
		err = t.read()
	}
	if err != nil {
		return nil, forerun.Errorf(forerun.Internal, "timer", "The timer's record is damaged: %w", err)
	}
	return t, nil
}

func invalid(format string, args ...any) error {
	return forerun.Errorf(forerun.Invalid, "timer", format, args...)
}

// plain is a value as a person writes it: a string without its quotes.
func plain(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// object is the payload as an object. As in OpenWhisk a string becomes its member payload.
func object(value json.RawMessage) (json.RawMessage, error) {
	if !isGiven(value) {
		return json.RawMessage("{}"), nil
	}
	var s string
	if json.Unmarshal(value, &s) == nil {
		return canonical.Marshal(map[string]string{"payload": s})
	}
	o, err := canonical.Object(value)
	if err != nil {
		return nil, invalid("the trigger_payload parameter must be an object or a string")
	}
	return o, nil
}

// count reads maxTriggers; 0: there is no bound.
func count(value json.RawMessage) (int, error) {
	if !isGiven(value) || plain(value) == "-1" {
		return 0, nil
	}
	n, err := strconv.Atoi(plain(value))
	if err != nil || n < 1 {
		return 0, invalid("the maxTriggers parameter must be an integer greater than zero")
	}
	return n, nil
}

// layouts are the forms of ISO 8601 that a date may have; without a zone it is in UTC.
var layouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"}

// date reads milliseconds since 1970, or a date of ISO 8601. The zero time means that none is given.
func date(name string, value json.RawMessage) (time.Time, error) {
	if !isGiven(value) {
		return time.Time{}, nil
	}
	text := plain(value)
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms > 9999 && ms < maxDate { // a number of four digits is a year
		return time.UnixMilli(ms).UTC(), nil
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil && at.UnixMilli() > 0 && at.UnixMilli() < maxDate {
			return at.UTC().Truncate(time.Millisecond), nil
		}
	}
	return time.Time{}, invalid("%s parameter '%s' is not a valid Date: write milliseconds since 1970, or a date like 2030-01-31T23:59:00.000Z", name, text)
}

// maxDate is the year 10000.
const maxDate = 253402300800000

// Document is the timer as the feeds' event READ shows it.
type Document struct {
	Config Config `json:"config"`
	Status Status `json:"status"`
}

// Config is what a timer was made with.
type Config struct {
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Payload   json.RawMessage `json:"payload"`
	Settings
	Strict bool `json:"strict"` // a timer is never late on purpose, whatever was asked
}

// Status is how far a timer has come.
type Status struct {
	Active         bool    `json:"active"`
	DateChanged    int64   `json:"dateChanged"`
	DateChangedISO string  `json:"dateChangedISO"`
	Reason         *Reason `json:"reason,omitempty"`
	Fired          int     `json:"fired"`
	NextFire       string  `json:"nextFire,omitempty"`
}

// Reason is why a timer is not active.
type Reason struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Document shows the timer of a trigger.
func (t *Timer) Document(trigger forerun.Name) Document {
	config := Config{Name: trigger.Entity, Namespace: trigger.Namespace, Payload: t.Settings.Payload, Settings: t.Settings, Strict: true}
	config.Settings.Payload, config.Settings.Strict = nil, nil
	if isGiven(t.Settings.Strict) {
		config.Strict = strings.EqualFold(plain(t.Settings.Strict), "true")
	}
	status := Status{Active: t.Next != 0, DateChanged: t.Changed, DateChangedISO: iso(t.Changed), Fired: t.Fired}
	if t.Next != 0 {
		status.NextFire = iso(t.Next)
	} else {
		status.Reason = &Reason{"AUTO", t.Reason}
	}
	return Document{config, status}
}

func iso(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// String is for logs.
func (t *Timer) String() string { return fmt.Sprintf("%s %s", t.Feed, t.ID) }
