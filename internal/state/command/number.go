package command

import (
	"bytes"
	"math/big"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/state"
)

// parseInt reads a 64-bit integer exactly as strictly as Redis: no plus sign, no leading zero, no blank.
func parseInt(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	digits := b
	if b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// parseWithin reads an integer from low to high. The refusal is message or, if that is empty, Redis's usual one.
func parseWithin(b []byte, low, high int64, message string) (int64, *state.Reply) {
	n, isInt := parseInt(b)
	switch {
	case isInt && n >= low && n <= high:
		return n, nil
	case message != "":
		return 0, refuse("%s", message)
	case !isInt:
		return 0, refuse("ERR value is not an integer or out of range")
	}
	return 0, refuse("ERR value is out of range, value must between %d and %d", low, high)
}

// addInt adds; ok is false on overflow.
func addInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// longDoublePrecision is the mantissa of C's long double on x86, in which Redis adds floats.
const longDoublePrecision = 64

// maxFloatText is the longest text that Redis takes for a float.
const maxFloatText = 5 * 1024

// parseFloat reads what C's strtold reads completely, but for NaN; infinities are allowed.
func parseFloat(b []byte) (*big.Float, bool) {
	text := string(b)
	if len(text) >= maxFloatText || !isFloat(b) {
		return nil, false
	}
	f, _, err := big.ParseFloat(text, 0, longDoublePrecision, big.ToNearestEven)
	if err != nil {
		return nil, false
	}
	return f, outOfRange(f) == "" || strings.Contains(strings.ToLower(text), "inf")
}

// isFloat says whether b is a decimal or hexadecimal float or an infinity, in the syntax of C.
func isFloat(b []byte) bool {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	if bytes.EqualFold(b, []byte("inf")) || bytes.EqualFold(b, []byte("infinity")) {
		return true
	}
	digits, mark := "0123456789", "eE"
	if len(b) > 2 && b[0] == '0' && (b[1] == 'x' || b[1] == 'X') {
		b, digits, mark = b[2:], "0123456789abcdefABCDEF", "pP"
	}
	mantissa := len(b)
	if i := bytes.IndexAny(b, mark); i >= 0 {
		mantissa = i
		if !isExponent(b[i+1:]) {
			return false
		}
	}
	whole, fraction, _ := bytes.Cut(b[:mantissa], []byte("."))
	return len(whole)+len(fraction) > 0 && len(bytes.Trim(whole, digits)) == 0 && len(bytes.Trim(fraction, digits)) == 0
}

func isExponent(b []byte) bool {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	return len(b) > 0 && len(bytes.Trim(b, "0123456789")) == 0
}

// outOfRange says how a float does not fit a long double; "" if it does.
func outOfRange(f *big.Float) string {
	switch {
	case f.IsInf() || f.MantExp(nil) > 16384:
		return "too large"
	case f.Sign() != 0 && f.MantExp(nil) < -16445:
		return "too small"
	}
	return ""
}

// addFloat adds as C adds long doubles; ok is false if the sum is not finite.
func addFloat(a, b *big.Float) (sum *big.Float, ok bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum = new(big.Float).SetPrec(longDoublePrecision).Add(a, b)
	return sum, outOfRange(sum) != "too large"
}

// formatFloat writes a sum as Redis does for people: 17 digits after the point at most, without trailing zeros.
func formatFloat(f *big.Float) []byte {
	text := f.Text('f', 17)
	text = strings.TrimRight(text, "0")
	text = strings.TrimSuffix(text, ".")
	if text == "-0" {
		text = "0"
	}
	return []byte(text)
}

// rangeOf turns the bounds of a range that may count from the end into offsets into n items; from > to if it is empty.
func rangeOf(from, to, n int64) (int64, int64) {
	if from < 0 {
		from = max(from+n, 0)
	}
	if to < 0 {
		to += n
	}
	return from, min(to, n-1)
}

// maxName is longer than the longest name of a command.
const maxName = 32

// is says whether an argument is a word, in any case.
func is(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}
