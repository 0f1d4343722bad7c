// Package lua runs scripts in Lua 5.1, as Redis has it: without files, modules, processes and coroutines.
//
// A script is compiled once and run often. It sees nothing but its host's functions, its arguments, and a library that it cannot change.
// It promises that two runs of a script with the same answers of the host do the same: tables are walked in the order in which their
// keys were set, and no address is shown. Chance is asked of the host.
//
// A run is bounded by its own counts: each step and each byte that it makes is work, which the host is told of, and no instruction makes more than
// was counted before. A bound that is reached ends the run, whatever the script does about errors.
package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value is nil, bool, float64, string, *Table, *Function or Null.
type Value any

// Null is what cjson makes of null: a value that is true and equals only itself.
type Null struct{}

// Function is a function of the library or of a script.
type Function struct {
	name   string
	native func(c *Call) []Value // nil: it is a script's
	proto  *proto
	cells  []*cell
}

// NewFunction makes a function of the host.
func NewFunction(name string, native func(c *Call) []Value) *Function {
	return &Function{name: name, native: native}
}

// cell is a local variable that functions share.
type cell struct{ v Value }

// typeName is what TYPE answers.
func typeName(v Value) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case *Table:
		return "table"
	case *Function:
		return "function"
	}
	return "userdata"
}

func truth(v Value) bool {
	b, is := v.(bool)
	return v != nil && (!is || b)
}

// FormatNumber writes a number as Lua does.
func FormatNumber(f float64) string {
	if i := int64(f); float64(i) == f && i > -1e14 && i < 1e14 && (i != 0 || !math.Signbit(f)) {
		return strconv.FormatInt(i, 10)
	}
	return formatDouble(f, 'g', 14)
}

// FormatDouble writes a number with so many digits, as C's %g does.
func FormatDouble(f float64, precision int) string { return formatDouble(f, 'g', precision) }

// formatDouble is C's printf of a double, without flags.
func formatDouble(f float64, verb byte, precision int) string {
	switch {
	case math.IsNaN(f) && math.Signbit(f):
		return "-nan"
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, verb, precision, 64)
}

// toNumber is the number that a value is or can be read as.
func toNumber(v Value) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		return parseNumber(v)
	}
	return 0, false
}

// parseNumber reads a number as C's strtod does, with blanks around it.
func parseNumber(text string) (float64, bool) {
	text = strings.Trim(text, " \t\n\v\f\r")
	if text == "" || strings.ContainsRune(text, '_') {
		return 0, false
	}
	body := strings.ToLower(strings.TrimLeft(text, "+-"))
	if len(text)-len(body) > 1 {
		return 0, false
	}
	if hex, is := strings.CutPrefix(body, "0x"); is {
		n, ok := parseHex(hex)
		if text[0] == '-' {
			n = -n
		}
		return n, ok
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func parseHex(digits string) (n float64, ok bool) {
	if strings.ContainsAny(digits, ".p") {
		f, err := strconv.ParseFloat("0x"+digits+map[bool]string{true: "", false: "p0"}[strings.Contains(digits, "p")], 64)
		return f, err == nil
	}
	for _, c := range []byte(digits) {
		d, is := digit(c)
		if !is || d > 15 {
			return 0, false
		}
		n = n*16 + float64(d)
	}
	return n, digits != ""
}

// digit is what a letter stands for in a number of any base.
func digit(c byte) (int, bool) {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0'), true
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 10, true
	case c >= 'A' && c <= 'Z':
		return int(c-'A') + 10, true
	}
	return 0, false
}

// text is the string that a string or a number is where one is wanted.
func text(v Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case float64:
		return FormatNumber(v), true
	}
	return "", false
}

// show is tostring of a value without metamethods. Tables and functions are numbered in the order in which they are shown.
func (s *State) show(v Value) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return FormatNumber(v)
	case string:
		return v
	case *Table, *Function:
		if s.shown == nil {
			s.shown = make(map[Value]int)
		}
		if _, known := s.shown[v]; !known {
			s.alloc(entrySize)
			s.shown[v] = len(s.shown) + 1
		}
		return fmt.Sprintf("%s: 0x%08x", typeName(v), s.shown[v]*16)
	}
	return "userdata: (nil)"
}
