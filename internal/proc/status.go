package proc

import (
	"bytes"
	"strconv"
	"strings"
)

// Status is what the kernel tells of a thread, or of a process, in its file status: lines of a name and a value. Where it tells
// nothing, or something else, a value is "" or 0.
type Status []byte

// ReadStatus reads that of a thread, or of a process, which is its first thread.
func ReadStatus(id int) (Status, error) { return ReadFile("/proc/" + strconv.Itoa(id) + "/status") }

// Field is the value of a name.
func (s Status) Field(name string) string {
	for line := range bytes.Lines(s) {
		if of, value, found := bytes.Cut(line, []byte(":")); found && string(of) == name {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// Number is a value that is a number, with a unit or without.
func (s Status) Number(name string) uint64 {
	number, _, _ := strings.Cut(s.Field(name), " ")
	n, _ := strconv.ParseUint(number, 10, 64)
	return n
}

// Innermost is the last of a value's numbers: of ids, the one in the innermost namespace.
func (s Status) Innermost(name string) int {
	ids := s.Field(name)
	id, _ := strconv.Atoi(ids[strings.LastIndexByte(ids, '\t')+1:])
	return id
}

// Signals is a value that is a set of signals, as bits.
func (s Status) Signals(name string) uint64 {
	set, _ := strconv.ParseUint(s.Field(name), 16, 64)
	return set
}
