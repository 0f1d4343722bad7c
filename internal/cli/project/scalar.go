package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// The forms of numbers in YAML 1.2's core schema, and the ones that only YAML 1.1 reads as numbers, or reads as others.
var (
	decimal     = regexp.MustCompile(`^[-+]?[0-9]+$`)
	octal       = regexp.MustCompile(`^0o[0-7]+$`)
	hexadecimal = regexp.MustCompile(`^0x[0-9a-fA-F]+$`)
	float       = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	infinite    = regexp.MustCompile(`^([-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN)$`)
	ambiguous   = regexp.MustCompile(`^[-+]?(0[0-9]+|0[_0-9]*_[_0-9]*|[1-9][0-9]*_[_0-9]*|0b[01_]+|0x[0-9a-fA-F]*_[0-9a-fA-F_]*)$`)
)

// resolve reads a scalar without quotes by the core schema of YAML 1.2. It refuses a number that YAML 1.1 reads otherwise,
// so that a file means the same to its author as to Forerun, and one that JSON does not have.
func resolve(value string) (shape, any, error) {
	switch value {
	case "", "~", "null", "Null", "NULL":
		return null, nil, nil
	case "true", "True", "TRUE":
		return boolean, true, nil
	case "false", "False", "FALSE":
		return boolean, false, nil
	}
	switch {
	case ambiguous.MatchString(value):
		return null, nil, fmt.Errorf("%s means different things in YAML 1.1 and 1.2: write a number as in JSON, or put text in quotes", value)
	case infinite.MatchString(value):
		return null, nil, fmt.Errorf("%s is not a number in JSON: write a finite number, or put text in quotes", value)
	case decimal.MatchString(value):
		return number, json.Number(strings.TrimPrefix(value, "+")), nil
	case octal.MatchString(value), hexadecimal.MatchString(value):
		n, _ := new(big.Int).SetString(value, 0) // the pattern has checked it
		return number, json.Number(n.String()), nil
	case float.MatchString(value):
		return floating(value)
	}
	return text, value, nil
}

// floating writes a number with a point or an exponent as JSON does.
func floating(value string) (shape, any, error) {
	if _, err := strconv.ParseFloat(value, 64); errors.Is(err, strconv.ErrRange) {
		return null, nil, fmt.Errorf("%s is beyond the range of a double (1.8e308): put it in quotes", value)
	}
	mantissa, exponent := value, ""
	if i := strings.IndexAny(value, "eE"); i >= 0 {
		mantissa, exponent = value[:i], value[i:]
	}
	digits, negative := strings.CutPrefix(strings.TrimPrefix(mantissa, "+"), "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction == "" && exponent == "" {
		fraction = "0" // it stays a float
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if negative {
		whole = "-" + whole
	}
	return number, json.Number(whole + exponent), nil
}
