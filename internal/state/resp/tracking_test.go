package resp_test

import (
	"strconv"
	"strings"
	"testing"
)

// TestTrackingIsThatOfRedis: a client in RESP3 hears of the changes of what it has read, of what begins with its prefixes, or of what it
// chose, behind the reply to its command.
func TestTrackingIsThatOfRedis(t *testing.T) {
	socket := startRedis(t)
	for name, lines := range map[string]string{
		"read":         "a3 CLIENT TRACKING ON\n a3 GET k\n b SET k 1\n a3 <\n b SET k 2\n a3 PING\n a3 GET k\n a3 GET k\n b DEL k\n a3 <\n a3 PING",
		"not read":     "a3 CLIENT TRACKING ON\n a3 SET k 1\n b SET k 2\n a3 PING\n a3 GET l\n b SET k 3\n a3 PING",
		"its own":      "a3 CLIENT TRACKING ON\n a3 GET k\n a3 SET k 1\n a3 <\n a3 PING",
		"no loop":      "a3 CLIENT TRACKING ON NOLOOP\n a3 GET k\n a3 SET k 1\n a3 PING\n a3 GET k\n b SET k 2\n a3 <\n a3 PING",
		"several keys": "a3 CLIENT TRACKING ON\n a3 MGET k l\n b SET l 1\n a3 <\n b SET k 1\n a3 <\n a3 HGETALL h\n b HSET h f v\n a3 <",
		"transaction":  "a3 CLIENT TRACKING ON\n a3 MULTI\n a3 GET k\n a3 LLEN l\n a3 EXEC\n b MULTI\n b SET k 1\n b EXEC\n a3 <\n b RPUSH l 1\n a3 <",
		"opt in":       "a3 CLIENT TRACKING ON OPTIN\n a3 GET k\n b SET k 1\n a3 PING\n a3 CLIENT CACHING YES\n a3 GET k\n b SET k 2\n a3 <\n a3 CLIENT CACHING YES\n a3 PING\n a3 GET k\n b SET k 3\n a3 PING",
		"opt out":      "a3 CLIENT TRACKING ON OPTOUT\n a3 CLIENT CACHING NO\n a3 GET k\n b SET k 1\n a3 PING\n a3 GET k\n b SET k 2\n a3 <",
		"broadcast":    "a3 CLIENT TRACKING ON BCAST PREFIX k PREFIX m\n b SET k1 1\n a3 <\n b SET l 1\n b SET m 1\n a3 <\n a3 CLIENT TRACKING OFF\n b SET k1 2\n a3 PING",
		"off":          "a3 CLIENT TRACKING ON\n a3 GET k\n a3 CLIENT TRACKING OFF\n b SET k 1\n a3 PING\n a3 CLIENT TRACKING OFF\n a3 CLIENT GETREDIR",
		"reset":        "a3 CLIENT TRACKING ON\n a3 GET k\n a3 RESET\n b SET k 1\n a3 PING\n a3 CLIENT TRACKINGINFO",
		"RESP2":        "a CLIENT TRACKING ON\n a GET k\n b SET k 1\n a PING\n a CLIENT TRACKINGINFO\n a CLIENT GETREDIR",
		"info":         "a3 CLIENT TRACKINGINFO\n a3 CLIENT TRACKING ON\n a3 CLIENT TRACKINGINFO\n a3 CLIENT TRACKING OFF\n a3 CLIENT TRACKING ON BCAST PREFIX x NOLOOP\n a3 CLIENT TRACKINGINFO\n a3 CLIENT TRACKING OFF\n a3 CLIENT TRACKING ON OPTIN\n a3 CLIENT CACHING YES\n a3 CLIENT TRACKINGINFO",
		"wrong": "a3 CLIENT TRACKING\n a3 CLIENT TRACKING MAYBE\n a3 CLIENT TRACKING ON NONSENSE\n a3 CLIENT TRACKING ON PREFIX x\n a3 CLIENT TRACKING ON BCAST OPTIN\n a3 CLIENT TRACKING ON OPTIN OPTOUT\n a3 CLIENT TRACKING ON PREFIX\n" +
			" a3 CLIENT CACHING YES\n a3 CLIENT TRACKING ON BCAST PREFIX ab PREFIX a\n a3 CLIENT TRACKING ON BCAST PREFIX ab\n a3 CLIENT TRACKING ON BCAST PREFIX abc\n a3 CLIENT TRACKING ON\n a3 CLIENT TRACKING OFF\n" +
			" a3 CLIENT TRACKING ON OPTIN\n a3 CLIENT TRACKING ON OPTOUT\n a3 CLIENT CACHING NO\n a3 CLIENT CACHING MAYBE\n a3 CLIENT CACHING\n a3 CLIENT TRACKING OFF\n a3 CLIENT TRACKING ON OPTOUT\n a3 CLIENT CACHING YES",
		"with messages": "a3 SUBSCRIBE c\n a3 CLIENT TRACKING ON\n a3 GET k\n b PUBLISH c m\n a3 <\n b SET k 1\n a3 <\n a3 UNSUBSCRIBE c\n a3 GET k\n b SET k 2\n a3 <",
		"renamed":       "a3 CLIENT TRACKING ON\n b SET k 1\n a3 GET l\n b RENAME k l\n a3 <\n a3 PING",
	} {
		t.Run(name, func(t *testing.T) { script(t, socket, lines) })
	}
}

// TestTrackingIsBounded: a client that has read very much is told to forget some of it, and hears of the rest as before.
func TestTrackingIsBounded(t *testing.T) {
	const records, least = 70_000, 70_000 - 1<<16
	d := open(t)
	a, b := talkTo(t, "tcp", d.address), talkTo(t, "tcp", d.address)
	a.say("HELLO", "3")
	a.say("CLIENT", "TRACKING", "ON")
	go func() { // beside the reading: neither end is to wait for the other
		for first := 0; first < records; first += 1000 {
			words := []string{"EXISTS"}
			for i := range 1000 {
				words = append(words, strconv.Itoa(first+i))
			}
			a.send(words...)
		}
	}()
	for answers, told := 0, 0; answers < records/1000 || told < least; {
		if strings.HasPrefix(a.reply(), ">2|") {
			told++
		} else {
			answers++
		}
	}
	a.send("GET", "k")
	for a.reply() != "_" { // before it come more that are to be forgotten
	}
	b.say("SET", "k", "1")
	for !strings.HasSuffix(a.reply(), `"k"`) {
	}
}

// TestTrackingOfOtherSpaces: the changes of another tenant's records of the same names are not told.
func TestTrackingOfOtherSpaces(t *testing.T) {
	d := openForBoth(t)
	ann, _ := d.enter(t, "ann")
	bob, _ := d.enter(t, "bob")
	ann.say("HELLO", "3")
	ann.say("CLIENT", "TRACKING", "ON", "BCAST")
	bob.say("SET", "k", "1")
	if got := ann.say("PING"); got != "+PONG" {
		t.Errorf("ann hears %s", got)
	}
}
