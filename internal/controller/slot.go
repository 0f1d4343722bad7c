package controller

import (
	"encoding/json"
	"time"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// slot is what the controller knows of a slot of the machine.
type slot struct {
	id         speculate.SlotID
	tree       *tree
	parent     *slot // whose program it is part of, or nil
	depth      int   // programs around it
	record     *forerun.Activation
	action     *forerun.Action
	program    bool          // it was entered, and has no function
	silent     bool          // it has no record
	accounting *accounting   // if its program is a conductor's
	counted    *int          // where an accounting counts it
	memory     int           // MB, the largest limit of what its program ran
	wait       time.Duration // between queued and launched
	initTime   time.Duration
	held       spans         // when a request of the speculative function was held
	idle       spans         // as well, and when what it called did
	waits      spans         // when it was held, or waited for what it called
	cpu        time.Duration // that its function takes of the processors; 0: not known
	timedOut   bool
	over       bool                   // its function has ended
	calls      bool                   // it called others, and waited
	ahead      bool                   // it is not a head, or not known to be one
	early      bool                   // its function began when it was none
	promoting  bool                   // the store has been asked to promote it, or what is behind it
	returned   bool                   // to a speculative caller, which is promoted with it
	noted      bool                   // a note of it is in the log
	writing    *writing               // of its function; nil: it was not asked to run
	shown      *forerun.Activation    // what listeners hear of it while it runs; nil: nothing yet
	followed   bool                   // the machine is told its reads and effects
	checking   time.Duration          // for how long the versions of its row were asked for
	claims     map[forerun.Key]*claim // of what it is to write
	input      json.RawMessage        // as delivered; of one that is resolved and not launched
	at         placement
	cache      annotation.Cache // of its action
	flight     *flight          // that it is the first of, or waits for
	changes    uint64           // of actions, as of before its action was found
	suspended  *forerun.Reason  // why no row stands for its action; nil: rows do
	watched    bool             // its reads and effects are noted for its action's advice (package behaviour)
	compared   *forerun.Row     // a rehearsal may be compared with it: it stood for this execution, or may stand for others after the rehearsal
	below      []forerun.Callee // whose code its output rests on, if it is skipped
}

// mayCount tells whether the store may have what the slot wrote: it has been asked to promote it, or what it returned to.
func (s *slot) mayCount() bool {
	for s.returned && !s.promoting {
		s = s.tree.caller
	}
	return s.promoting
}

// isDue reports whether a caller that is not speculative waits for the slot. The slot has begun, whether or not it is
// known to be a head.
func (s *slot) isDue() bool {
	t := s.tree
	return s.parent == nil && t.invocation != nil && (t.caller == nil || !t.caller.ahead)
}
