package speculate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"forerun.dev/forerun/internal/forerun"
)

// Where each customer has records of his own, the same producer and consumer meet at another record each time, and no record has
// three squashes before most customers had one. So they are counted for all records of a kind, too: those whose names begin alike.

// pair is a producer and a consumer, in a space of records.
type pair struct {
	producer, consumer forerun.Digest
	space              string
}

// family are the records of which the consumer of a pair read some before the producer wrote them.
type family struct {
	prefix   string // of their names: it ends behind a separator, or is the one name there is
	squashes int    // likewise as in blameCount
	stalls   int
}

// blameFamily counts a squash for all records of the kind. mu is held.
func (p *Predictor) blameFamily(b Blame) {
	of := pair{b.Producer, b.Consumer, b.Key.Space}
	f := p.families[of]
	if f == nil {
		if len(p.families) >= maxBlames {
			p.pardon()
		}
		f = &family{prefix: b.Key.Name}
		p.families[of] = f
	}
	if f.prefix = commonPrefix(f.prefix, b.Key.Name); f.prefix == "" { // records of another kind
		if f.stalls > 0 {
			p.hot.Add(-1)
		}
		*f = family{prefix: b.Key.Name}
	}
	if f.squashes++; f.squashes >= squashesToStall && f.stalls == 0 {
		f.stalls = stallsToRetry
		p.hot.Add(1)
	}
}

// listedFamily is the family of a blame, if its reads are to be stalled. mu is held.
func (p *Predictor) listedFamily(b blame) *family {
	f := p.families[pair{b.producer, b.consumer, b.key.Space}]
	if f == nil || b.others || f.stalls == 0 || !strings.HasPrefix(b.key.Name, f.prefix) {
		return nil
	}
	return f
}

// commonPrefix is what two names begin with, up to a separator, if they are not the same: "ticket:ada" and "ticket:bob" do with "ticket:".
func commonPrefix(a, b string) string {
	if a == b {
		return a
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	separates := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != utf8.RuneError }
	return a[:strings.LastIndexFunc(a[:n], separates)+1]
}
