package cache

// call is an activation as the load generator knows it, without asking the server: what it reads and writes, and what it calls.
type call struct {
	action, input string
	reads, writes []string // records
	below         []*call
}

// oracle tells how many activations a cache that is right could answer: those whose input an earlier execution had, if nothing below that
// execution wrote, and no record that it or its callees read was written since.
type oracle struct {
	versions map[string]int // of records, by name
	rows     map[string]map[string]int
	calls    int // activations that began: what a hit spares does not begin
	hits     int
}

func newOracle() *oracle {
	return &oracle{versions: map[string]int{}, rows: map[string]map[string]int{}}
}

// play has a call happen. It returns the versions of the records on which the result rests; none if no result may be kept.
func (o *oracle) play(c *call) (read map[string]int, pure bool) {
	o.calls++
	key := c.action + " " + c.input
	if read, ok := o.rows[key]; ok && o.current(read) {
		o.hits++
		return read, true
	}
	read, pure = map[string]int{}, true
	for _, record := range c.reads {
		read[record] = o.versions[record]
	}
	for _, called := range c.below {
		more, isPure := o.play(called)
		pure = pure && isPure
		for record, version := range more {
			read[record] = version
		}
	}
	for _, record := range c.writes {
		o.versions[record]++
		pure = false
	}
	delete(o.rows, key)
	if pure {
		o.rows[key] = read
	}
	return read, pure
}

func (o *oracle) current(read map[string]int) bool {
	for record, version := range read {
		if o.versions[record] != version {
			return false
		}
	}
	return true
}
