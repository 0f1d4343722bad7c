package forerun

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
)

// Reason is why a slot was speculative, in its turn, skipped, held or squashed: a code with its arguments. It never changes. nil: there
// is no reason. Sentences of reasons are made in internal/trace, and nowhere else.
type Reason struct {
	Code   ReasonCode `json:"code"`
	Slot   SlotName   `json:"slot,omitzero"`    // that the reason names
	Record string     `json:"record,omitempty"` // as ShownName has it
	*Detail
}

// Detail has the arguments that few codes have.
type Detail struct {
	Command string   `json:"command,omitempty"` // of Redis, "GET", or the method of a request to the API
	Records []string `json:"records,omitempty"` // the first three, as ShownName has them
	Count   int      `json:"count,omitempty"`   // a bound; or how many more Records there are
	Text    string   `json:"text,omitempty"`    // an error message
	Of      *Reason  `json:"of,omitempty"`      // the reason of the slot that is named
}

// SlotName names a slot of the same invocation. Its zero value stands for the slots of a fork.
type SlotName struct {
	Number int    `json:"number"` // Timeline.Slot
	Action string `json:"action"` // without the invocation's own namespace: "pay", "other/pay", "order (inline 3)"
}

// ReasonCode is what a reason is about. Codes are stable: records and clients keep them.
type ReasonCode string

// Why a slot was speculative, or skipped.
const (
	ReasonKnownOutput    ReasonCode = "known_output"    // Slot gave this on the same input before
	ReasonUsualWay       ReasonCode = "usual_way"       // Slot mostly goes this way
	ReasonExpectedCall   ReasonCode = "expected_call"   // Slot called it on the same input before
	ReasonCalled         ReasonCode = "called"          // Slot called it
	ReasonEnded          ReasonCode = "ended"           // Slot has ended, and its turn has not come
	ReasonPure           ReasonCode = "pure"            // a pure function, and its output is known
	ReasonReadsUnchanged ReasonCode = "reads_unchanged" // what it read then is as it was
)

// Why a slot was executed in its turn.
const (
	ReasonUnknownOutput   ReasonCode = "unknown_output"    // of Slot
	ReasonOtherOutput     ReasonCode = "other_output"      // Slot did not give what was expected; why it was squashed, too
	ReasonOtherCalls      ReasonCode = "other_calls"       // Slot did not call what was expected
	ReasonUnreliable      ReasonCode = "unreliable"        // Slot is soon over, or often gave something else
	ReasonUnclearWay      ReasonCode = "unclear_way"       // which way Slot goes
	ReasonOnlyBranches    ReasonCode = "only_branches"     // are predicted, and Slot is not one
	ReasonUnexpectedCall  ReasonCode = "unexpected_call"   // by Slot
	ReasonUnreliableCalls ReasonCode = "unreliable_calls"  // of Slot
	ReasonIDTold          ReasonCode = "id_told"           // Slot may be told its id before it ends
	ReasonDepth           ReasonCode = "depth"             // as many functions as may be were speculative
	ReasonLargeInput      ReasonCode = "large_input"       // it has too many bytes
	ReasonNonSpeculative  ReasonCode = "non_speculative"   // its annotation
	ReasonComputes        ReasonCode = "computes"          // and the processors are busy
	ReasonOftenSquashed   ReasonCode = "often_squashed"    // and the processors are busy
	ReasonLongBefore      ReasonCode = "long_before"       // it was speculative for half of its time limit
	ReasonServerOff       ReasonCode = "server_off"        // --speculate off
	ReasonOperatorOff     ReasonCode = "operator_off"      // forerun speculation off
	ReasonAnnotationOff   ReasonCode = "annotation_off"    // speculate
	ReasonRequestOff      ReasonCode = "request_off"       // X-Forerun-Speculate
	ReasonConductor       ReasonCode = "conductor"         // its steps are not known before
	ReasonMeasuring       ReasonCode = "measuring"         // what speculation costs
	ReasonNoProcessorTime ReasonCode = "no_processor_time" // for speculation
	ReasonNoGain          ReasonCode = "no_gain"           // of speculation on busy processors
)

// Why a slot was squashed. Of one that runs again it is also why that is in its turn.
const (
	ReasonCalledOther            ReasonCode = "called_other"              // Slot called something else first
	ReasonNotCalled              ReasonCode = "not_called"                // Slot ended without calling it
	ReasonStaleRead              ReasonCode = "stale_read"                // it had read Record before Slot wrote it
	ReasonStaleForward           ReasonCode = "stale_forward"             // it read Record as it was before another function wrote it
	ReasonOtherVersion           ReasonCode = "other_version"             // of Record than a function before it
	ReasonOtherVersionThanCaller ReasonCode = "other_version_than_caller" // of Record
	ReasonNeverStored            ReasonCode = "never_stored"              // what it read of Record
	ReasonConflict               ReasonCode = "conflict"                  // others wrote Records, and Count more
	ReasonExpired                ReasonCode = "expired"                   // Record, which it read
	ReasonClientFirst            ReasonCode = "client_first"              // a client waits for what it wrote
	ReasonStoreFull              ReasonCode = "store_full"                // for what it wrote
	ReasonUpdated                ReasonCode = "updated"                   // its action, or one that it called
	ReasonRunsAgain              ReasonCode = "runs_again"                // Slot, for the reason Of
	ReasonFailedEarly            ReasonCode = "failed_early"              // before its turn
	ReasonLeftRequests           ReasonCode = "left_requests"             // it ended without waiting for what it had asked for
	ReasonWithdrew               ReasonCode = "withdrew"                  // it did not wait for what it had asked for
	ReasonLeftSends              ReasonCode = "left_sends"                // it ended without waiting for what it sent
	ReasonManyRequests           ReasonCode = "many_requests"             // more than Count must wait
	ReasonManyDatagrams          ReasonCode = "many_datagrams"            // more than can wait
	ReasonNoConnection           ReasonCode = "no_connection"             // was left for it
	ReasonMadeWay                ReasonCode = "made_way"                  // for what is not speculative
	ReasonHalfLimit              ReasonCode = "half_limit"                // it was speculative for half of its time limit
	ReasonStopped                ReasonCode = "stopped"                   // the invocation, with the error Text
)

// Why a request of a slot was held.
const (
	ReasonIrreversible      ReasonCode = "irreversible"       // what it asks for
	ReasonReadsUnnamed      ReasonCode = "reads_unnamed"      // Command reads records that it does not name
	ReasonDeletesUnnamed    ReasonCode = "deletes_unnamed"    // Command deletes records that it does not name
	ReasonMayBlock          ReasonCode = "may_block"          // Command may wait for what others write
	ReasonChance            ReasonCode = "chance"             // Command depends on it
	ReasonCursor            ReasonCode = "cursor"             // of Command is in no record
	ReasonUnversioned       ReasonCode = "unversioned"        // what Command tells
	ReasonWatches           ReasonCode = "watches"            // Command is to notice whatever is written
	ReasonTracks            ReasonCode = "tracks"             // Command is to hear of each change
	ReasonListens           ReasonCode = "listens"            // Command, or listens no more
	ReasonEndsConnection    ReasonCode = "ends_connection"    // of another, with Command
	ReasonPublishes         ReasonCode = "publishes"          // Command
	ReasonKeepsScript       ReasonCode = "keeps_script"       // Command, for EVALSHA
	ReasonTakesLong         ReasonCode = "takes_long"         // Command, with what its transaction did before
	ReasonWaiterFirst       ReasonCode = "waiter_first"       // a client waits for a record that Command writes
	ReasonAPIRead           ReasonCode = "api_read"           // Command, a method
	ReasonAPIEffect         ReasonCode = "api_effect"         // Command, a method
	ReasonCallRefused       ReasonCode = "call_refused"       // while its caller was speculative
	ReasonOutside           ReasonCode = "outside"            // it reaches for that
	ReasonHotRecord         ReasonCode = "hot_record"         // others write Record all the time
	ReasonAwaitedWrite      ReasonCode = "awaited_write"      // Slot mostly writes Record
	ReasonWriteUnderWay     ReasonCode = "write_under_way"    // Slot writes Record just now
	ReasonTwoBranches       ReasonCode = "two_branches"       // wrote Record
	ReasonChangedSinceCall  ReasonCode = "changed_since_call" // Record, which what it called has read
	ReasonSkippedCallee     ReasonCode = "skipped_callee"     // of Slot depends on Record
	ReasonEarlierInvocation ReasonCode = "earlier_invocation" // is to write what it reads
	ReasonBehindListening   ReasonCode = "behind_listening"   // it asked to listen before
	ReasonOtherCall         ReasonCode = "other_call"         // is under way
	ReasonCalleeHeld        ReasonCode = "callee_held"        // what it called waits for its turn
	ReasonConnectionMemory  ReasonCode = "connection_memory"  // has no room
	ReasonLargeCopy         ReasonCode = "large_copy"         // of what it reads
	ReasonColumnFull        ReasonCode = "column_full"        // it has written as much as can be kept apart
)

// Why a row of the memo table stood for an execution, or did not. ReasonPure and ReasonReadsUnchanged say why one did.
const (
	ReasonNoRow         ReasonCode = "no_row"          // nothing is kept of an execution on this input
	ReasonChangedRecord ReasonCode = "changed_record"  // Record was written since
	ReasonChangedCode   ReasonCode = "changed_code"    // an action that it called was updated or deleted
	ReasonWrote         ReasonCode = "wrote"           // it wrote Record
	ReasonReached       ReasonCode = "reached_outside" // it reached for the outside
	ReasonTTLOver       ReasonCode = "ttl_over"        // cache-ttl, of it or of what it called
	ReasonReadFromHosts ReasonCode = "read_from_hosts" // of read-hosts
	ReasonAskedAPI      ReasonCode = "asked_api"       // for something else than the result of a call
	ReasonNoVersion     ReasonCode = "no_version"      // what it read with Command has none
	ReasonTwoVersions   ReasonCode = "two_versions"    // it read Record at two versions
	ReasonOverwritten   ReasonCode = "overwritten"     // what it read of Record was never in the store
	ReasonLooseCall     ReasonCode = "loose_call"      // a call was refused, or not waited for
	ReasonLooseRequest  ReasonCode = "loose_request"   // it did not wait for something else
	ReasonPlatformError ReasonCode = "platform_error"  // in it, or in what it called
	ReasonRemembers     ReasonCode = "remembers"       // Text, an action that it called, whose process served others before
	ReasonUnverified    ReasonCode = "unverified"      // its process served others before, and no new one has given the same yet
	ReasonUnverifiable  ReasonCode = "unverifiable"    // its process served others before, and no new one can give the same, because Of
	ReasonSharesMemory  ReasonCode = "shares_memory"   // with its other processes; or it has threads once it is loaded
	ReasonCallsWorkflow ReasonCode = "calls_workflow"  // whose result comes in its turn only
	ReasonManyReads     ReasonCode = "many_reads"      // more than Count records
	ReasonManyCallees   ReasonCode = "many_callees"    // more than Count
	ReasonDetaches      ReasonCode = "detaches"        // it began another invocation
	ReasonBypass        ReasonCode = "bypass"          // X-Forerun-Cache
	ReasonWorkflow      ReasonCode = "workflow"        // its functions have rows, it has none
	ReasonSetsCookie    ReasonCode = "sets_cookie"     // its answer has Set-Cookie
	ReasonNoStore       ReasonCode = "no_store"        // its answer has Cache-Control: no-store or private
	ReasonVaries        ReasonCode = "varies"          // its answer has Vary with what does not count
	ReasonCacheOff      ReasonCode = "cache_off"       // --cache off
	ReasonCacheSwitch   ReasonCode = "cache_switch"    // forerun cache off
	ReasonSuspended     ReasonCode = "suspended"       // Record, a member of its output, differed
	ReasonSuspendedRead ReasonCode = "suspended_read"  // it read Record in one of two executions only
	ReasonNotAnnotated  ReasonCode = "not_annotated"   // no annotation keeps results
)

// ReasonText is the code of a reason that a record of an older version has as a sentence, in Text.
const ReasonText ReasonCode = "text"

// Because makes a reason without arguments.
func Because(code ReasonCode) *Reason { return &Reason{Code: code} }

// NewReason makes a reason with arguments that few codes have.
func NewReason(code ReasonCode, d Detail) *Reason { return &Reason{Code: code, Detail: &d} }

// Rest is the reason's Detail, or an empty one.
func (r *Reason) Rest() Detail {
	if r == nil || r.Detail == nil {
		return Detail{}
	}
	return *r.Detail
}

// String writes a reason as its code and arguments: "stale_read(a #1, \"k\")".
func (r *Reason) String() string {
	if r == nil {
		return ""
	}
	var args []string
	if r.Slot != (SlotName{}) {
		args = append(args, r.Slot.String())
	}
	if r.Record != "" {
		args = append(args, `"`+r.Record+`"`)
	}
	d := r.Rest()
	if d.Command != "" {
		args = append(args, d.Command)
	}
	for _, record := range d.Records {
		args = append(args, `"`+record+`"`)
	}
	if d.Count > 0 {
		args = append(args, strconv.Itoa(d.Count))
	}
	if d.Text != "" {
		args = append(args, d.Text)
	}
	if d.Of != nil {
		args = append(args, d.Of.String())
	}
	if args == nil {
		return string(r.Code)
	}
	return string(r.Code) + "(" + strings.Join(args, ", ") + ")"
}

func (n SlotName) String() string { return n.Action + " #" + strconv.Itoa(n.Number) }

// UnmarshalJSON also reads what older versions recorded: a sentence.
func (r *Reason) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		var sentence string
		err := json.Unmarshal(text, &sentence)
		*r = Reason{Code: ReasonText, Detail: &Detail{Text: sentence}}
		return err
	}
	type plain Reason // without this method
	return json.Unmarshal(text, (*plain)(r))
}

// mostShown bounds the bytes that are repeated of a record's name in reasons, which activation records keep.
const mostShown = 60

// ShownName is what a reason has of a record's name: its beginning, and escaped, as between the quotes of a Go string, what cannot be
// printed. It makes a new string only of a name that is long, or has that.
func ShownName(name string) string {
	if len(name) > mostShown {
		name = strings.ToValidUTF8(name[:mostShown], "") + "..."
	}
	if !strings.ContainsFunc(name, isEscaped) {
		return name
	}
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}

func isEscaped(r rune) bool {
	return r == '"' || r == '\\' || r == unicode.ReplacementChar || !strconv.IsPrint(r)
}
