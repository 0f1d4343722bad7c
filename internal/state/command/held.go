package command

import (
	"slices"
	"strings"
)

// Why a command is not done ahead of a function's turn.
const (
	unnamed  = "it reads records that it does not name, which cannot be checked by versions"
	all      = "it deletes records that it does not name, so it cannot be buffered"
	waits    = "it may wait for what others write, so it cannot be buffered"
	chance   = "it depends on chance, and done again it would do something else, so it cannot be buffered"
	cursor   = "its cursor is in no record, so it cannot be buffered"
	inner    = "what it tells has no version, so it cannot be checked by versions"
	watching = "it is to notice whatever is written from then on, so it cannot be buffered"
	caches   = "it is to hear of each change from then on, and what its client keeps is read without a version"
	listens  = "messages come from then on, or no more, which cannot be undone"
	ends     = "it ends what another connection does, which cannot be undone"
	speaks   = "whoever listens hears it at once, which cannot be undone"
)

// held are the commands that wait for the turn of a function that runs ahead, by why they do, in the order of docs/reference/state.md.
var held = []struct {
	why   string
	names []string
}{
	{unnamed, []string{"keys", "scan", "randomkey", "dbsize", "sort", "sort_ro"}}, // the last two with BY or GET
	{inner, []string{"object", "pubsub"}},
	{all, []string{"flushdb", "flushall"}},
	{waits, []string{"blpop", "brpop", "blmove", "blmpop", "brpoplpush", "bzpopmax", "bzpopmin", "bzmpop"}},
	{chance, []string{"spop", "srandmember", "hrandfield", "zrandmember"}},
	{cursor, []string{"hscan", "sscan", "zscan"}},
	{watching, []string{"watch"}},
	{ends, []string{"client kill", "client unblock"}},
	{caches, []string{"client tracking"}},
	{speaks, []string{"publish"}},
	{listens, []string{"subscribe", "psubscribe", "unsubscribe", "punsubscribe", "reset"}}, // those that end it while there is any
}

// Held says for people why a command waits for its turn.
func Held(name string) string {
	why := "it cannot be undone"
	for _, h := range held {
		if slices.Contains(h.names, name) {
			why = h.why
		}
	}
	return strings.ToUpper(name) + " waits for its turn: " + why
}
