// Package audit keeps the audit log: who used which right on what, and who
// tried to without having it.
//
// It is one stream of JSON lines in a folder of its own, apart from the server's
// log, in files of bounded size of which the oldest goes first. An entry is in
// the operating system's hands when Note returns. An entry holds a secret only if
// its fields do. A source that floods the log does not push out the entries of
// other sources: each may write a bounded number in a given time, and further
// entries are counted only.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
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
	Forwarded string    `json:"forwardedFor,omitempty"` // what a proxy says of its client
	LeftOut   int       `json:"leftOut,omitempty"`      // entries of the same source before this one that were too many to be written
}

// Words of entries.
const (
	Unknown      = "unknown"
	Operator     = "operator"
	Authenticate = "authenticate" // with credentials that are not accepted
)

// How much is kept, and how fast one source may write: a burst, and then one each second.
const (
	fileSize   = 16 << 20
	maxFiles   = 16
	maxField   = 512 // bytes of a field that a client chooses
	burst      = 1000
	burstFails = 100 // of all failures to authenticate together
)

const (
	current = "audit.jsonl"
	old     = "audit-*.jsonl"
)

// Log is the audit log. Its methods may be called concurrently; a nil Log notes nothing.
type Log struct {
	folder string
	now    func() time.Time
	log    *slog.Logger

	failures, lost atomic.Int64

	mu      sync.Mutex // guards the rest
	file    *os.File
	size    int64
	sources map[string]*source // by namespace; failures are of ""
	broken  bool               // the last entry could not be written
}

// source bounds what one namespace causes.
type source struct {
	left    float64 // entries that may be written
	at      time.Time
	leftOut int
}

// Open opens the log in a folder, which it makes. now is the time of entries.
func Open(folder string, now func() time.Time, log *slog.Logger) (*Log, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of the audit log cannot be made: %w", err)
	}
	l := &Log{folder: folder, now: now, log: log, sources: make(map[string]*source)}
	return l, l.open()
}

func (l *Log) open() error {
	f, err := os.OpenFile(filepath.Join(l.folder, current), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("the audit log cannot be opened: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Close closes the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
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
	if !l.mayWrite(&e) {
		return
	}
	for _, field := range []*string{&e.Object, &e.Detail, &e.Request, &e.Peer, &e.Forwarded} {
		*field = shorten(*field)
	}
	line, err := json.Marshal(e)
	if err == nil {
		err = l.write(append(line, '\n'))
	}
	if err != nil {
		l.lost.Add(1)
		if !l.broken {
			l.log.Error("entries of the audit log cannot be written", "error", err)
		}
	}
	l.broken = err != nil
}

// mayWrite takes an entry from what its source may write, or counts it. The operator's are always written.
func (l *Log) mayWrite(e *Entry) bool {
	if e.Who == Operator {
		return true
	}
	key, most := e.Namespace, float64(burst)
	if e.Action == Authenticate {
		key, most = "", burstFails
	}
	s := l.sources[key]
	if s == nil {
		s = &source{left: most, at: e.Time}
		l.sources[key] = s
	}
	s.left, s.at = min(most, s.left+max(0, e.Time.Sub(s.at).Seconds())), e.Time
	if s.left < 1 {
		s.leftOut++
		return false
	}
	s.left--
	e.LeftOut, s.leftOut = s.leftOut, 0
	return true
}

func (l *Log) write(line []byte) error {
	if l.size > 0 && l.size+int64(len(line)) > fileSize {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return err
}

// rotate gives the file a name of its own, and removes the oldest.
func (l *Log) rotate() error {
	name := strings.Replace(old, "*", l.now().UTC().Format("20060102T150405.000000000Z"), 1)
	if err := os.Rename(filepath.Join(l.folder, current), filepath.Join(l.folder, name)); err != nil {
		return err
	}
	err := l.file.Close()
	names, _ := l.old()
	for i := 0; i <= len(names)-maxFiles; i++ {
		err = errors.Join(err, os.Remove(names[i]))
	}
	return errors.Join(err, l.open())
}

// old lists the files but the current one, oldest first.
func (l *Log) old() ([]string, error) {
	names, err := filepath.Glob(filepath.Join(l.folder, old))
	slices.Sort(names)
	return names, err
}

// Last returns the last entries since a time, at most so many, the newest last.
func (l *Log) Last(since time.Time, most int) ([]Entry, error) {
	names, err := l.old()
	if err != nil {
		return nil, err
	}
	names = append(names, filepath.Join(l.folder, current))
	var found []Entry // newest first
	for _, name := range slices.Backward(names) {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) { // it is being rotated, or has gone
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, line := range slices.Backward(strings.Split(string(text), "\n")) {
			var e Entry
			if json.Unmarshal([]byte(line), &e) != nil { // empty, or the end of a write that failed
				continue
			}
			if len(found) == most || e.Time.Before(since) {
				slices.Reverse(found)
				return found, nil
			}
			found = append(found, e)
		}
	}
	slices.Reverse(found)
	return found, nil
}

func shorten(s string) string {
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
