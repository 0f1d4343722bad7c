package lua

import (
	"math"
	"sort"
)

func tableLibrary() *Table {
	return Library(nil,
		NewFunction("concat", tableConcat),
		NewFunction("foreach", tableForEach),
		NewFunction("foreachi", tableForEachI),
		NewFunction("getn", func(c *Call) []Value { return one(float64(c.table(0).Len())) }),
		NewFunction("insert", tableInsert),
		NewFunction("maxn", tableMaxN),
		NewFunction("remove", tableRemove),
		NewFunction("setn", func(c *Call) []Value { c.Fail("'setn' is obsolete"); return nil }),
		NewFunction("sort", tableSort),
	)
}

func tableConcat(c *Call) []Value {
	t := c.table(0)
	between := ""
	if c.arg(1) != nil {
		between = c.text(1)
	}
	from, to := c.intOr(2, 1), c.intOr(3, t.Len())
	b := builder{State: c.State}
	for i := from; i <= to; i++ {
		c.step()
		part, is := text(t.Get(float64(i)))
		if !is {
			c.Fail("invalid value (%s) at index %d in table for 'concat'", typeName(t.Get(float64(i))), i)
		}
		b.add(part)
		if i < to {
			b.add(between)
		}
	}
	return one(b.String())
}

func tableForEach(c *Call) []Value {
	t, f := c.table(0), c.function(1)
	for key, value, _ := c.following(t, nil); key != nil; key, value, _ = c.following(t, key) {
		if result := first(c.call(f, []Value{key, value}, c.line)); result != nil {
			return one(result)
		}
	}
	return nil
}

func tableForEachI(c *Call) []Value {
	t, f := c.table(0), c.function(1)
	for i := 1; i <= t.Len(); i++ {
		if result := first(c.call(f, []Value{float64(i), t.Get(float64(i))}, c.line)); result != nil {
			return one(result)
		}
	}
	return nil
}

func tableInsert(c *Call) []Value {
	t := c.table(0)
	end := t.Len() + 1
	switch len(c.args) {
	case 2:
		c.put(t, float64(end), c.args[1])
	case 3:
		at := c.int(1)
		end = max(end, at)
		c.busy(itemSize * max(0, end-at))
		for i := end; i > at; i-- {
			c.step()
			c.put(t, float64(i), t.Get(float64(i-1)))
		}
		c.put(t, float64(at), c.args[2])
	default:
		c.Fail("wrong number of arguments to 'insert'")
	}
	return nil
}

func tableRemove(c *Call) []Value {
	t := c.table(0)
	end := t.Len()
	at := c.intOr(1, end)
	if at < 1 || at > end {
		return nil
	}
	removed := t.Get(float64(at))
	for i := at; i < end; i++ {
		c.step()
		c.put(t, float64(i), t.Get(float64(i+1)))
	}
	c.put(t, float64(end), nil)
	return one(removed)
}

func tableMaxN(c *Call) []Value {
	t := c.table(0)
	most := float64(len(t.list))
	c.busy(itemSize * len(t.pairs))
	for _, e := range t.pairs {
		if n, is := e.key.(float64); is && e.value != nil {
			most = math.Max(most, n)
		}
	}
	return one(most)
}

// sorting is a list that a script sorts, whose comparison may throw and change it.
type sorting struct {
	*Call
	t     *Table
	n     int
	order *Function // nil: <
}

func (s *sorting) Len() int { return s.n }

func (s *sorting) Swap(i, j int) {
	a, b := s.at(i), s.at(j)
	s.put(s.t, float64(i+1), b)
	s.put(s.t, float64(j+1), a)
}

func (s *sorting) at(i int) Value { return s.t.Get(float64(i + 1)) }

func (s *sorting) Less(i, j int) bool {
	s.step()
	if s.order != nil {
		return truth(first(s.call(s.order, []Value{s.at(i), s.at(j)}, s.line)))
	}
	return s.less(s.at(i), s.at(j), false, s.line)
}

func tableSort(c *Call) []Value {
	s := &sorting{Call: c, t: c.table(0)}
	s.n = s.t.Len()
	if c.arg(1) != nil {
		s.order = c.function(1)
	}
	sort.Sort(s)
	return nil
}
