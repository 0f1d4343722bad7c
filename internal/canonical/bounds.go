package canonical

import (
	"bytes"
	"errors"
	"strconv"

	"forerun.dev/forerun/internal/forerun"
)

// MaxDepth is how deep objects and arrays may lie in each other: Python's parser gives up at 900, others do later.
const MaxDepth = 512

// maxDigits is how many digits a number may be written with: Python reads no integers that are longer.
const maxDigits = 4300

// Bounds refuses JSON that some language could not read: objects and arrays deeper than MaxDepth less the outer levels that
// will lie around it, fractions and powers beyond a double's range, numbers of more than 4300 digits. What is no JSON it may pass.
func Bounds(data []byte, outer int) error {
	depth := outer
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return forerun.Errorf(forerun.Invalid, "JSON",
					"Objects and arrays lie in each other more than %d deep, which not every language can read. Send what is deeper as a string.", MaxDepth)
			}
		case '}', ']':
			depth--
		case '"':
			i += stringLength(data[i:]) - 1
		default:
			if c < '0' || c > '9' {
				continue
			}
			n := numberLength(data[i:])
			if err := checkNumber(data[i : i+n]); err != nil {
				return err
			}
			i += n - 1
		}
	}
	return nil
}

// stringLength is the length of the string that data begins with, quotes included; all of data if it does not end.
func stringLength(data []byte) int {
	for i := 1; i < len(data); i++ {
		next := bytes.IndexByte(data[i:], '"')
		if next < 0 {
			break
		}
		escapes := 0
		for i += next; data[i-escapes-1] == '\\'; {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
	return len(data)
}

// numberLength is the length of the number that data begins with.
func numberLength(data []byte) int {
	for i, c := range data {
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && c != '+' && c != '-' {
			return i
		}
	}
	return len(data)
}

func checkNumber(n []byte) error {
	if len(n) > maxDigits {
		return forerun.Errorf(forerun.Invalid, "JSON", "A number has %d digits, which not every language can read: %d are allowed. Send it as a string.", len(n), maxDigits)
	}
	if !bytes.ContainsAny(n, ".eE") {
		return nil // integers have no range in Python
	}
	if _, err := strconv.ParseFloat(string(n), 64); errors.Is(err, strconv.ErrRange) {
		return forerun.Errorf(forerun.Invalid, "JSON", "The number %.40s is beyond the range of a double (1.8e308). Send it as a string.", n)
	}
	return nil
}
