package forerun

import "time"

// Cached says which way an execution of an annotated function went: whether a row of the memo table stood for it, and why or why not.
type Cached struct {
	Outcome  CacheOutcome
	Why      *Reason       `json:",omitempty"`
	Of       ActivationID  `json:",omitempty"` // of a hit, the execution that it repeats
	Checked  []Checked     `json:",omitempty"` // of a hit, the records whose versions were checked: the first MaxCheckedShown
	Records  int           `json:",omitempty"` // of a hit, how many there were
	Checking time.Duration `json:",omitempty"` // for how long the versions were asked for
	Age      time.Duration `json:"-"`          // of a hit on a row that stands until some moment, since the execution; 0: of another
	Saved    time.Duration `json:",omitempty"` // of a hit, how much longer the execution took, without its calls
}

// Checked is a record whose version was the one that the execution had read. An absent record has version 0.
type Checked struct {
	Record  string  `json:"record"` // as ShownName has it
	Version Version `json:"version"`
}

// CacheOutcome is a way that it went.
type CacheOutcome string

// The outcomes.
const (
	CacheHit    CacheOutcome = "hit"    // a row stood for the execution
	CacheMiss   CacheOutcome = "miss"   // there was no row, or none that may stand for an execution
	CacheStale  CacheOutcome = "stale"  // what the row rests on has changed
	CacheBypass CacheOutcome = "bypass" // rows were not looked at: the request says so, or the action is a workflow
	CacheOff    CacheOutcome = "off"    // the cache is
)

// CacheOutcomes lists them.
func CacheOutcomes() []CacheOutcome {
	return []CacheOutcome{CacheHit, CacheMiss, CacheStale, CacheBypass, CacheOff}
}

// MaxCheckedShown bounds Cached.Checked.
const MaxCheckedShown = 16
