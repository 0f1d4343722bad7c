package speculate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"forerun.dev/forerun/internal/forerun"
)

// If each customer has records of their own, the same producer and consumer meet at a different record each time. No
// single record reaches three squashes before most customers had one. So squashes are also counted for a family of
// records: all whose names begin alike.

// pair is a producer and a consumer, in a space of records.
type pair struct {
	producer, consumer forerun.Digest
	space              string
}

// family are the records of which the consumer of a pair read some before the producer wrote them.
type family struct {
	prefix string // of their names: it ends behind a separator, or is the only name so far
	listing
}

// blameFamily counts a squash for the family of a record. Squashes of a single record have a list of their own. The
// caller holds mu.
func (p *Predictor) blameFamily(b Blame) {
	of := pair{b.Producer, b.Consumer, b.Key.Space}
	f := p.families[of]
	switch {
	case f == nil:
		if len(p.families) >= maxBlames {
			p.pardon()
		}
		f = &family{prefix: b.Key.Name}
		p.families[of] = f
	case f.prefix == b.Key.Name:
		return
	default:
		f.prefix = commonPrefix(f.prefix, b.Key.Name)
	}
	if f.prefix == "" { // records of another kind
		*f = family{prefix: b.Key.Name}
	}
	f.squash(false)
}

// familyOf is the knowledge about the family of a blame's record, if there is any. mu is held.
func (p *Predictor) familyOf(b blame) *listing {
	f := p.families[pair{b.producer, b.consumer, b.key.Space}]
	if f == nil || b.others || !strings.HasPrefix(b.key.Name, f.prefix) {
		return nil
	}
	return &f.listing
}

// commonPrefix is what two names begin with, up to a separator: "ticket:ada" and "ticket:bob" do with "ticket:".
func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	separates := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != utf8.RuneError }
	return a[:strings.LastIndexFunc(a[:n], separates)+1]
}
