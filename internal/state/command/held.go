package command

import (
	"slices"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// held are the commands that wait for the turn of a function that runs ahead, by why they do, in the order of docs/reference/state.md.
var held = []struct {
	why   forerun.ReasonCode
	names []string
}{
	{forerun.ReasonReadsUnnamed, []string{"keys", "scan", "randomkey", "dbsize", "sort", "sort_ro"}}, // the last two with BY or GET
	{forerun.ReasonUnversioned, []string{"object", "pubsub", "script exists"}},
	{forerun.ReasonDeletesUnnamed, []string{"flushdb", "flushall"}},
	{forerun.ReasonMayBlock, []string{"blpop", "brpop", "blmove", "blmpop", "brpoplpush", "bzpopmax", "bzpopmin", "bzmpop"}},
	{forerun.ReasonChance, []string{"spop", "srandmember", "hrandfield", "zrandmember"}},
	{forerun.ReasonCursor, []string{"hscan", "sscan", "zscan"}},
	{forerun.ReasonWatches, []string{"watch"}},
	{forerun.ReasonEndsConnection, []string{"client kill", "client unblock"}},
	{forerun.ReasonTracks, []string{"client tracking"}},
	{forerun.ReasonPublishes, []string{"publish"}},
	{forerun.ReasonKeepsScript, []string{"script load"}},
	{forerun.ReasonListens, []string{"subscribe", "psubscribe", "unsubscribe", "punsubscribe", "reset"}}, // those that end it while there is any
}

// Held is why a command waits for its turn.
func Held(name string) *forerun.Reason {
	code := forerun.ReasonIrreversible
	for _, h := range held {
		if slices.Contains(h.names, name) {
			code = h.why
		}
	}
	return heldAs(code, name)
}

func heldAs(code forerun.ReasonCode, name string) *forerun.Reason {
	return forerun.NewReason(code, forerun.Detail{Command: strings.ToUpper(name)})
}

// HeldForScript is why a command waits with which a script becomes known.
func HeldForScript(name string) *forerun.Reason { return heldAs(forerun.ReasonKeepsScript, name) }

// HeldForWaiter is why a command waits whose records a client waits for.
func HeldForWaiter(name string) *forerun.Reason { return heldAs(forerun.ReasonWaiterFirst, name) }
