package simulation

import (
	"encoding/json"
	"slices"
	"strconv"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// store has the records, with versions of one sequence for all (rule R11), and remembers what each version was.
type store struct {
	values   oracle.Store
	versions [oracle.Records]forerun.Version // 0: there is no record
	last     forerun.Version
	past     map[past]oracle.Value
	large    bool // to the machine all that records hold is
}

type past struct {
	record  int
	version forerun.Version
}

func newStore() *store { return &store{past: make(map[past]oracle.Value)} }

// image is a value as the machine keeps it.
type image struct {
	oracle.Value
	size int
}

func (i image) Absent() bool { return i.Kind == 0 }
func (i image) Size() int    { return i.size }

// largeSize makes a column with one large record large, and many of them have room.
const largeSize = 1 << 20

func (s *store) image(v oracle.Value) image {
	if s.large {
		return image{v, largeSize}
	}
	return image{v, len(v.Text)}
}

func keyOf(record int) forerun.Key { return forerun.Key{Name: "r" + strconv.Itoa(record)} }

func keysOf(records []int) []forerun.Key {
	keys := make([]forerun.Key, len(records))
	for i, r := range records {
		keys[i] = keyOf(r)
	}
	return keys
}

func recordOf(key forerun.Key) int { return int(key.Name[1] - '0') }

// seen are the versions that records have.
func (s *store) seen(records []int) []forerun.Seen {
	seen := make([]forerun.Seen, len(records))
	for i, r := range records {
		seen[i] = forerun.Seen{Key: keyOf(r), Version: s.versions[r]}
	}
	return seen
}

func (s *store) fetch(keys []forerun.Key) []speculate.Record {
	records := make([]speculate.Record, len(keys))
	for i, key := range keys {
		r := recordOf(key)
		records[i] = speculate.Record{Key: key, Image: s.image(s.values[r]), Version: s.versions[r]}
	}
	return records
}

// do runs commands as one transaction, and tells the reply of the last and what was written.
func (s *store) do(commands ...oracle.Command) (reply string, wrote []forerun.Key) {
	var written [oracle.Records]bool
	version := s.last + 1
	for _, c := range commands {
		reads := c.Reads()
		values := make([]oracle.Value, len(reads))
		for i, r := range reads {
			values[i] = s.values[r]
		}
		var made []*oracle.Value
		reply, made = c.Execute(values)
		for i, r := range c.Writes() {
			if i < len(made) && made[i] != nil {
				s.values[r], written[r] = *made[i], true
			}
		}
	}
	for r, is := range written {
		if !is {
			continue
		}
		s.last, s.versions[r] = version, version
		s.past[past{r, version}] = s.values[r]
		if s.values[r].Kind == 0 {
			s.versions[r] = 0
		}
		wrote = append(wrote, keyOf(r))
	}
	return reply, wrote
}

// changed are the records that are not as they were seen.
func (s *store) changed(seen []forerun.Seen) (keys []forerun.Key) {
	for _, e := range seen {
		if s.versions[recordOf(e.Key)] != e.Version {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// refuses tells whether a record that was there is not any more as it was seen: it never is that again.
func (s *store) refuses(seen []forerun.Seen) bool {
	return slices.ContainsFunc(seen, func(e forerun.Seen) bool { return e.Version != 0 && s.versions[recordOf(e.Key)] != e.Version })
}

// isLong tells whether a command that reads a value takes long.
func isLong(v oracle.Value) bool { return v.Kind == 'l' && len(v.Text) > 2 }

// records executes commands on images for the machine.
type records struct{ world *world }

func (r records) Execute(command any, reads []speculate.Image) (reply any, writes []speculate.Image) {
	values := make([]oracle.Value, len(reads))
	for i, read := range reads {
		values[i] = read.(image).Value
	}
	if slices.ContainsFunc(values, isLong) {
		return speculate.Later{Why: forerun.Because(forerun.ReasonTakesLong)}, nil
	}
	c := command.(oracle.Command)
	text, made := c.Execute(values)
	if c.Verb == oracle.Clock {
		text = oracle.ClockReply(r.world.clock)
	}
	if made == nil {
		return text, nil
	}
	writes = make([]speculate.Image, len(made))
	for i, v := range made {
		if v != nil {
			writes[i] = r.world.store.image(*v)
		}
	}
	return text, writes
}

// Over tells that no record has a life: what the clock shows is another record.
func (records) Over(speculate.Image) bool { return false }

// table is the memo table.
type table map[string]*forerun.Row

func (t table) Find(code forerun.Digest, input json.RawMessage) *forerun.Row {
	return t[string(code[:])+string(input)]
}
