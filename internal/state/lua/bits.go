package lua

import (
	"math"
	"math/bits"
	"strings"
)

func bitLibrary() *Table {
	fold := func(f func(a, b uint32) uint32) func(c *Call) []Value {
		return func(c *Call) []Value {
			n := c.bits(0)
			for i := 1; i < len(c.args); i++ {
				n = f(n, c.bits(i))
			}
			return signedBits(n)
		}
	}
	shift := func(f func(n uint32, by int) uint32) func(c *Call) []Value {
		return func(c *Call) []Value { return signedBits(f(c.bits(0), int(c.bits(1)&31))) }
	}
	return Library(nil,
		NewFunction("arshift", shift(func(n uint32, by int) uint32 { return uint32(int32(n) >> by) })),
		NewFunction("band", fold(func(a, b uint32) uint32 { return a & b })),
		NewFunction("bnot", func(c *Call) []Value { return signedBits(^c.bits(0)) }),
		NewFunction("bor", fold(func(a, b uint32) uint32 { return a | b })),
		NewFunction("bswap", func(c *Call) []Value { return signedBits(bits.ReverseBytes32(c.bits(0))) }),
		NewFunction("bxor", fold(func(a, b uint32) uint32 { return a ^ b })),
		NewFunction("lshift", shift(func(n uint32, by int) uint32 { return n << by })),
		NewFunction("rol", shift(bits.RotateLeft32)),
		NewFunction("ror", shift(func(n uint32, by int) uint32 { return bits.RotateLeft32(n, -by) })),
		NewFunction("rshift", shift(func(n uint32, by int) uint32 { return n >> by })),
		NewFunction("tobit", func(c *Call) []Value { return signedBits(c.bits(0)) }),
		NewFunction("tohex", toHex),
	)
}

// bits are the last 32 of a number that is rounded.
func (c *Call) bits(i int) uint32 {
	n := math.RoundToEven(c.number(i))
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	n = math.Mod(n, 1<<32)
	return uint32(int64(n))
}

func signedBits(n uint32) []Value { return one(float64(int32(n))) }

func toHex(c *Call) []Value {
	n, digits := c.bits(0), int32(8)
	letters := "0123456789abcdef"
	if c.arg(1) != nil {
		digits = int32(c.bits(1))
	}
	if digits < 0 {
		digits, letters = -digits, strings.ToUpper(letters)
	}
	digits = min(max(digits, 0), 8)
	b := make([]byte, digits)
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = letters[n&15]
		n >>= 4
	}
	return one(string(b))
}
