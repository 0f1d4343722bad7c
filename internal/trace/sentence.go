package trace

import (
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// sentences are what a person reads of each code. In braces are its arguments.
var sentences = map[forerun.ReasonCode]string{
	forerun.ReasonKnownOutput:    "{slot} gave this on the same input before",
	forerun.ReasonUsualWay:       "{slot} mostly goes this way",
	forerun.ReasonExpectedCall:   "{slot} called it on the same input before",
	forerun.ReasonCalled:         "{slot} called it",
	forerun.ReasonEnded:          "{slot} has ended, and its turn has not come",
	forerun.ReasonPure:           "a pure function, and its output on this input is known",
	forerun.ReasonReadsUnchanged: "what it read when it ran on this input is as it was",

	forerun.ReasonUnknownOutput:   "what {slot} gives on this input was not known",
	forerun.ReasonOtherOutput:     "{slot} did not give what was expected",
	forerun.ReasonOtherCalls:      "{slot} did not call what was expected",
	forerun.ReasonUnreliable:      "{slot} is soon over, or often gave something else than expected",
	forerun.ReasonUnclearWay:      "it was not known, or is not certain enough, which way {slot} goes",
	forerun.ReasonOnlyBranches:    "nothing but branches is predicted for it, and {slot} is none",
	forerun.ReasonUnexpectedCall:  "it was not expected that {slot} calls it",
	forerun.ReasonUnreliableCalls: "{slot} often called something else than expected",
	forerun.ReasonIDTold:          "{slot} may be told its id before it ends",
	forerun.ReasonDepth:           "as many functions as may be were speculative",
	forerun.ReasonLargeInput:      "its input is too large for speculation",
	forerun.ReasonNonSpeculative:  "it is annotated non-speculative",
	forerun.ReasonComputes:        "it computes, and the processors are busy",
	forerun.ReasonOftenSquashed:   "it is often squashed, and the processors are busy",
	forerun.ReasonLongBefore:      "it was speculative for half of its time limit before",
	forerun.ReasonServerOff:       "the server was started with --speculate off",
	forerun.ReasonOperatorOff:     "the operator has switched speculation off",
	forerun.ReasonAnnotationOff:   "its annotation 'speculate' says off",
	forerun.ReasonRequestOff:      "the request says off",
	forerun.ReasonConductor:       "a conductor's steps are not known before it takes them",
	forerun.ReasonMeasuring:       "speculation pauses for a moment, to measure what it costs",
	forerun.ReasonNoProcessorTime: "the processors have no time for speculation",
	forerun.ReasonNoGain:          "the processors are busy, and speculation does not make its answers faster then",

	forerun.ReasonNoRow:         "no result on this input is kept",
	forerun.ReasonChangedRecord: "{record} was written",
	forerun.ReasonChangedCode:   "an action that it calls was updated or deleted",
	forerun.ReasonWrote:         "it writes {record}",
	forerun.ReasonReached:       "it reaches for the outside",
	forerun.ReasonTTLOver:       "its cache-ttl is over",
	forerun.ReasonReadFromHosts: "it reads from a host of read-hosts, of which no change is seen",
	forerun.ReasonAskedAPI:      "it asks the API for something else than the result of a call",
	forerun.ReasonNoVersion:     "{command} reads something that has no version",
	forerun.ReasonTwoVersions:   "{record} was written while it ran, and it read it twice",
	forerun.ReasonOverwritten:   "{record} was overwritten within its workflow before it was in the store",
	forerun.ReasonLooseCall:     "a call of it was refused, or it did not wait for one",
	forerun.ReasonLooseRequest:  "it did not wait for something that it had asked for",
	forerun.ReasonPlatformError: "it, or a function that it called, failed on the platform",
	forerun.ReasonRemembers:     "{text}, which it called, has no annotation, and its process may remember earlier records",
	forerun.ReasonManyReads:     "it reads more than {count} records",
	forerun.ReasonManyCallees:   "more than {count} executions are below it",
	forerun.ReasonDetaches:      "it begins another invocation",
	forerun.ReasonBypass:        "the request says so",
	forerun.ReasonWorkflow:      "a workflow has no results of its own: annotate its functions",
	forerun.ReasonSetsCookie:    "its answer sets a cookie",
	forerun.ReasonNoStore:       "its answer has Cache-Control: no-store or private",
	forerun.ReasonVaries:        "its answer has Vary with a header that does not count",
	forerun.ReasonCacheOff:      "the server was started with --cache off",
	forerun.ReasonCacheSwitch:   "the operator has switched the cache off",
	forerun.ReasonUnverified:    "its process had served others before, and no new process has given the same yet",
	forerun.ReasonUnverifiable:  "its process had served others before, and a new process cannot give the same behind an answer: {of}",
	forerun.ReasonSharesMemory:  "its code shares memory between its processes, or has threads, once it is loaded",
	forerun.ReasonCallsWorkflow: "it calls a workflow",
	forerun.ReasonSuspended:     "it gave another {record} on the same input and records, so its results are suspended",
	forerun.ReasonSuspendedRead: "it read {record} in one of two executions on the same input and records, so its results are suspended",
	forerun.ReasonNotAnnotated:  "it has no annotation by which results are kept",

	forerun.ReasonCalledOther:            "{slot} called something else first",
	forerun.ReasonNotCalled:              "{slot} ended without calling it",
	forerun.ReasonStaleRead:              "it had read {record} before {slot} wrote it",
	forerun.ReasonStaleForward:           "it read {record} as it was before another function wrote it",
	forerun.ReasonOtherVersion:           "it read another version of {record} than a function before it",
	forerun.ReasonOtherVersionThanCaller: "it read another version of {record} than its caller",
	forerun.ReasonNeverStored:            "what it read of {record} never was in the store",
	forerun.ReasonConflict:               "what it read was written by others: {records}",
	forerun.ReasonExpired:                "the life of {record} has ended, which it read",
	forerun.ReasonClientFirst:            "a client waits for what it wrote, and is served first",
	forerun.ReasonStoreFull:              "the store has no room for what it wrote",
	forerun.ReasonUpdated:                "its action, or one that it called, was updated or deleted",
	forerun.ReasonRunsAgain:              "{slot} runs again: {of}",
	forerun.ReasonFailedEarly:            "it failed before its turn" + again,
	forerun.ReasonLeftRequests:           "it ended without waiting for what it had asked for" + again,
	forerun.ReasonWithdrew:               "it did not wait for what it had asked for" + again,
	forerun.ReasonLeftSends:              "it ended without waiting for what it sent to the outside" + again,
	forerun.ReasonManyRequests:           "it asked for more than {count} things that must wait" + again,
	forerun.ReasonManyDatagrams:          "it sent more datagrams than can wait" + again,
	forerun.ReasonNoConnection:           "there was no connection left for it" + again,
	forerun.ReasonMadeWay:                "it made way for what is not speculative" + again,
	forerun.ReasonHalfLimit:              "it was speculative for half of its time limit" + again,
	forerun.ReasonStopped:                "{text}",

	forerun.ReasonIrreversible:      "it waits for its turn: it cannot be undone",
	forerun.ReasonReadsUnnamed:      "{command} waits for its turn: it reads records that it does not name, which cannot be checked by versions",
	forerun.ReasonDeletesUnnamed:    "{command} waits for its turn: it deletes records that it does not name, so it cannot be buffered",
	forerun.ReasonMayBlock:          "{command} waits for its turn: it may wait for what others write, so it cannot be buffered",
	forerun.ReasonChance:            "{command} waits for its turn: it depends on chance, and done again it would do something else, so it cannot be buffered",
	forerun.ReasonCursor:            "{command} waits for its turn: its cursor is in no record, so it cannot be buffered",
	forerun.ReasonUnversioned:       "{command} waits for its turn: what it tells has no version, so it cannot be checked by versions",
	forerun.ReasonWatches:           "{command} waits for its turn: it is to notice whatever is written from then on, so it cannot be buffered",
	forerun.ReasonTracks:            "{command} waits for its turn: it is to hear of each change from then on, and what its client keeps is read without a version",
	forerun.ReasonListens:           "{command} waits for its turn: messages come from then on, or no more, which cannot be undone",
	forerun.ReasonEndsConnection:    "{command} waits for its turn: it ends what another connection does, which cannot be undone",
	forerun.ReasonPublishes:         "{command} waits for its turn: whoever listens hears it at once, which cannot be undone",
	forerun.ReasonKeepsScript:       "{command} waits for its turn: from then on every client finds the script, which cannot be undone",
	forerun.ReasonTakesLong:         "{command} waits for its turn: it takes long, with what its transaction did before, and all that runs in its invocation would wait for it",
	forerun.ReasonWaiterFirst:       "{command} waits for its turn: a client that waits for such a record is served first",
	forerun.ReasonAPIRead:           "a {command} of the API waits for its turn: what it tells may be something else by then",
	forerun.ReasonAPIEffect:         "a {command} of the API waits for its turn: it cannot be undone",
	forerun.ReasonCallRefused:       "a call waits for its turn: it was refused while its caller was speculative",
	forerun.ReasonOutside:           "what reaches for the outside waits for its turn: it cannot be undone",
	forerun.ReasonHotRecord:         "others write {record} all the time: it waits for its turn",
	forerun.ReasonAwaitedWrite:      "{slot} mostly writes {record}: it waits for that",
	forerun.ReasonWriteUnderWay:     "{slot} writes {record} just now",
	forerun.ReasonTwoBranches:       "two branches wrote {record}: it waits until the turn of both has come",
	forerun.ReasonChangedSinceCall:  "{record} was written since what it called read it: it waits for its turn",
	forerun.ReasonSkippedCallee:     "{slot} called what depends on {record}: it waits for that one's turn",
	forerun.ReasonEarlierInvocation: "an invocation that began earlier is to write what it reads: it waits a while for that",
	forerun.ReasonBehindListening:   "it waits for its turn: so does what it listens to, or waits for, since before",
	forerun.ReasonOtherCall:         "it waits for another call: this one waits for its turn",
	forerun.ReasonCalleeHeld:        "what it called waits for its turn",
	forerun.ReasonConnectionMemory:  "there is no room for what its connections hold: it waits for its turn",
	forerun.ReasonLargeCopy:         "what it reads is too large for a copy: it waits for its turn",
	forerun.ReasonColumnFull:        "it has written as much as can be kept apart: it waits for its turn",
}

// again ends the reasons of slots that run again as heads. Behind another slot's name it is left out.
const again = ": it runs again in its turn"

// Sentence tells a reason to a person. It names slots by their numbers: "a #1 gave this on the same input before".
func Sentence(r *forerun.Reason) string {
	return sentence(r, slotNumber)
}

func slotNumber(slot int) string { return " #" + strconv.Itoa(slot) }

// sentence tells a reason. number is what stands behind the name of a slot.
func sentence(r *forerun.Reason, number func(slot int) string) string {
	if r == nil {
		return ""
	}
	d := r.Rest()
	switch template, ok := sentences[r.Code]; {
	case r.Code == forerun.ReasonText:
		return renumbered(d.Text, number)
	case !ok: // of a newer version
		return r.String()
	default:
		return strings.NewReplacer(
			"{slot}", slotName(r.Slot, number), "{record}", `"`+r.Record+`"`, "{command}", d.Command, "{records}", recordList(d),
			"{count}", strconv.Itoa(d.Count), "{text}", d.Text, "{of}", inner(d.Of, number),
		).Replace(template)
	}
}

func slotName(n forerun.SlotName, number func(slot int) string) string {
	if n == (forerun.SlotName{}) {
		return "what ran in parallel"
	}
	return n.Action + number(n.Number)
}

// recordList is `["a" "b"] and 3 more`.
func recordList(d forerun.Detail) string {
	list := make([]string, len(d.Records))
	for i, record := range d.Records {
		list[i] = `"` + record + `"`
	}
	text := "[" + strings.Join(list, " ") + "]"
	if d.Count > 0 {
		text += " and " + strconv.Itoa(d.Count) + " more"
	}
	return text
}

// inner is the reason within another.
func inner(of *forerun.Reason, number func(slot int) string) string {
	return strings.TrimSuffix(sentence(of, number), again)
}
