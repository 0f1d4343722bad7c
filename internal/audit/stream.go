package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// class is a kind of entries that has files of its own.
type class int

// The classes.
const (
	ofTenants  class = iota // what tenants and their functions do
	ofOperator              // what the operator does
	ofFailures              // failures to authenticate
	classes    int   = iota // how many there are
)

func classOf(e *Entry) class {
	switch {
	case e.Action == Authenticate:
		return ofFailures
	case e.Who == Operator:
		return ofOperator
	}
	return ofTenants
}

const fileSize = 8 << 20 // bytes of a file

// stream is the files of a class: a current one, and older ones whose names hold the time of their end.
type stream struct {
	folder, name string
	files        int   // that are kept
	most         int64 // bytes of a file, after which an entry begins another
	now          func() time.Time
	file         *os.File // nil: not open; the next entry opens it
	size         int64
}

func newStreams(folder string, now func() time.Time) [classes]*stream {
	return [classes]*stream{
		ofTenants:  {folder: folder, name: "audit", files: 16, most: fileSize, now: now},
		ofOperator: {folder: folder, name: "operator", files: 8, most: fileSize, now: now},
		ofFailures: {folder: folder, name: "failures", files: 8, most: fileSize, now: now},
	}
}

func (s *stream) current() string { return filepath.Join(s.folder, s.name+".jsonl") }

func (s *stream) open() error {
	f, err := os.OpenFile(s.current(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("the audit log cannot be opened: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.file, s.size = f, info.Size()
	return nil
}

func (s *stream) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

func (s *stream) write(line []byte) error {
	if s.file == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	if s.size > 0 && s.size+int64(len(line)) > s.most {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	n, err := s.file.Write(line)
	s.size += int64(n)
	return err
}

// rotate gives the current file a name of its own, and removes the oldest.
func (s *stream) rotate() error {
	ended := fmt.Sprintf("%s-%s.jsonl", s.name, s.now().UTC().Format("20060102T150405.000000000Z"))
	if err := os.Rename(s.current(), filepath.Join(s.folder, ended)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := s.file.Close()
	s.file, s.size = nil, 0
	names, _ := s.old()
	for i := 0; i <= len(names)-s.files; i++ {
		err = errors.Join(err, os.Remove(names[i]))
	}
	return errors.Join(err, s.open())
}

// old lists the files but the current one, oldest first.
func (s *stream) old() ([]string, error) {
	names, err := filepath.Glob(filepath.Join(s.folder, s.name+"-*.jsonl"))
	slices.Sort(names)
	return names, err
}

// last returns the last entries since a time, at most so many, the newest last.
func (s *stream) last(since time.Time, most int) ([]Entry, error) {
	names, err := s.old()
	if err != nil {
		return nil, err
	}
	names = append(names, s.current())
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
