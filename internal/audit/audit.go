// Package audit keeps the audit log: who used which right on what, and who
// tried to without having it.
//
// It is JSON lines in a folder of its own, apart from the server's log, in files
// of bounded size of which the oldest goes first. An entry is in the operating
// system's hands when Note returns. An entry holds a secret only if its fields do.
//
// A flood does not push out the entries of others. The operator's requests, the
// tenants' changes and the failures to authenticate have files of their own. Each
// source may write a bounded number of entries in a given time, and further
// entries are counted only.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Entry is one line.
type Entry struct {
	Time      time.Time `json:"time"`
	Who       string    `json:"who"` // "operator", "key UUID", "activation ID", or Unknown
	Namespace string    `json:"namespace,omitempty"`
	Action    string    `json:"action"`           // the method of a request, or Authenticate
	Object    string    `json:"object"`           // the path of a request, or the door
	Status    int       `json:"status"`           // of the answer
	Detail    string    `json:"detail,omitempty"` // what the request sets, where that matters
	Request   string    `json:"request,omitempty"`
	Peer      string    `json:"peer,omitempty"`
	Forwarded string    `json:"forwardedFor,omitempty"` // what the peer says of its client
	LeftOut   int       `json:"leftOut,omitempty"`      // entries of the same source before this one that were too many to be written
}

// Words of entries.
const (
	Unknown      = "unknown"
	Operator     = "operator"
	Authenticate = "authenticate" // with credentials that are not accepted
)

const maxField = 512 // bytes of a field that a client chooses

// Log is the audit log. Its methods may be called concurrently; a nil Log notes nothing.
type Log struct {
	now func() time.Time
	log *slog.Logger

	failures, lost atomic.Int64

	mu      sync.Mutex // guards the rest
	streams [classes]*stream
	sources *sources
	broken  bool // the last entry could not be written
}

// Open opens the log in a folder, which it makes. now is the time of entries.
func Open(folder string, now func() time.Time, log *slog.Logger) (*Log, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the audit log cannot be made: %w", err)
	}
	l := &Log{now: now, log: log, streams: newStreams(folder, now), sources: newSources()}
	for _, s := range l.streams {
		if err := s.open(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// Close closes the log.
func (l *Log) Close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.streams {
		err = errors.Join(err, s.close())
	}
	return err
}

// Failures is how many failures to authenticate were noted, those that were left out too.
func (l *Log) Failures() int64 { return l.failures.Load() }

// Lost is how many entries could not be written.
func (l *Log) Lost() int64 { return l.lost.Load() }

// Note writes an entry with the time that is now.
func (l *Log) Note(e Entry) {
	if l == nil {
		return
	}
	if e.Action == Authenticate {
		l.failures.Add(1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time = l.now().UTC()
	if !l.sources.admit(&e) {
		return
	}
	for _, field := range []*string{&e.Object, &e.Detail, &e.Request, &e.Peer, &e.Forwarded} {
		*field = shorten(*field)
	}
	line, err := json.Marshal(e)
	if err == nil {
		err = l.streams[classOf(&e)].write(append(line, '\n'))
	}
	if err != nil {
		l.lost.Add(1)
		if !l.broken {
			l.log.Error("entries of the audit log cannot be written", "error", err)
		}
	}
	l.broken = err != nil
}

// Last returns the last entries since a time, at most so many, the newest last.
func (l *Log) Last(since time.Time, most int) ([]Entry, error) {
	var all []Entry
	for _, s := range l.streams {
		found, err := s.last(since, most)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	return all[max(0, len(all)-most):], nil
}

// shorten makes text of a client valid and short enough, so that a line has a bound.
func shorten(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= maxField {
		return s
	}
	return strings.ToValidUTF8(s[:maxField], "") + "..."
}

// KeyOf names a tenant's key by its public half. Text of another form may be a secret in the
// wrong place, so it is not named.
func KeyOf(uuid string) string {
	isHex := func(c rune) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c == '-' }
	if len(uuid) != 36 && len(uuid) != 32 || strings.ContainsFunc(uuid, func(c rune) bool { return !isHex(c) }) {
		return Unknown
	}
	return "key " + uuid
}
