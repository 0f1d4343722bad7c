package lua

import "math"

func mathLibrary() *Table {
	plain := map[string]func(float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil, "cos": math.Cos, "cosh": math.Cosh,
		"deg": func(x float64) float64 { return x * 180 / math.Pi }, "exp": math.Exp, "floor": math.Floor, "log": math.Log, "log10": math.Log10,
		"rad": func(x float64) float64 { return x * math.Pi / 180 }, "sin": math.Sin, "sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
	}
	pairwise := map[string]func(x, y float64) float64{
		"atan2": math.Atan2, "fmod": math.Mod, "mod": math.Mod, "pow": math.Pow,
		"ldexp": func(x, y float64) float64 { return math.Ldexp(x, whole(y)) },
	}
	values := map[string]Value{"huge": math.Inf(1), "pi": math.Pi}
	for name, f := range plain {
		values[name] = NewFunction(name, func(c *Call) []Value { return one(f(c.number(0))) })
	}
	for name, f := range pairwise {
		values[name] = NewFunction(name, func(c *Call) []Value { return one(f(c.number(0), c.number(1))) })
	}
	return Library(values,
		NewFunction("frexp", func(c *Call) []Value {
			fraction, exponent := math.Frexp(c.number(0))
			return []Value{fraction, float64(exponent)}
		}),
		NewFunction("max", func(c *Call) []Value { return one(c.extreme(func(a, b float64) bool { return a > b })) }),
		NewFunction("min", func(c *Call) []Value { return one(c.extreme(func(a, b float64) bool { return a < b })) }),
		NewFunction("modf", func(c *Call) []Value {
			n := c.number(0)
			if math.IsInf(n, 0) {
				return []Value{n, 0.0}
			}
			integer, fraction := math.Modf(n)
			return []Value{integer, fraction}
		}),
		NewFunction("random", random),
		NewFunction("randomseed", func(c *Call) []Value {
			c.State.random = newGenerator(uint32(int32(int64(c.number(0)))))
			return nil
		}),
	)
}

func (c *Call) extreme(better func(a, b float64) bool) float64 {
	found := c.number(0)
	for i := 1; i < len(c.args); i++ {
		c.step()
		if n := c.number(i); better(n, found) {
			found = n
		}
	}
	return found
}

// generator is C's lrand48, as Redis has it.
type generator struct{ x uint64 }

func newGenerator(seed uint32) *generator { return &generator{uint64(seed)<<16 | 0x330e} }

func (g *generator) next() uint32 {
	g.x = (g.x*0x5deece66d + 0xb) & (1<<48 - 1)
	return uint32(g.x >> 17)
}

func random(c *Call) []Value {
	if c.State.random == nil {
		seed, err := c.host.Seed()
		if err != nil {
			c.Stop(err)
		}
		c.State.random = newGenerator(uint32(seed))
	}
	const most = math.MaxInt32
	r := float64(c.State.random.next()%most) / most
	low, high := 1.0, 0.0
	switch len(c.args) {
	case 0:
		return one(r)
	case 1:
		high = math.Trunc(c.number(0))
	case 2:
		low, high = math.Trunc(c.number(0)), math.Trunc(c.number(1))
	default:
		c.Fail("wrong number of arguments")
	}
	if low > high {
		c.bad(len(c.args)-1, "interval is empty")
	}
	return one(math.Floor(r*(high-low+1)) + low)
}
