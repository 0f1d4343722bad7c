package resp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/state/resp"
)

// TestOldCursorBeginsAnew: a SCAN whose cursor is not known any more shows everything, not less.
func TestOldCursorBeginsAnew(t *testing.T) {
	k := talkTo(t, "tcp", open(t).address)
	for i := range 30 {
		k.say("SET", fmt.Sprintf("key%02d", i), "v")
	}
	page := tree(k.say("SCAN", "0")).items
	cursor := texts(page[0].head)[0]
	if got := k.say("SCAN", cursor); !strings.Contains(got, "key10") || strings.Contains(got, "key09") {
		t.Errorf("the second page is %s", got)
	}
	for range 5000 { // more than are kept
		k.say("SCAN", "0")
	}
	for _, old := range []string{cursor, "12345678"} {
		if got := k.say("SCAN", old); !strings.Contains(got, "key00") {
			t.Errorf("with a cursor that is not known: %s", got)
		}
	}
}

func TestTooLargeTransaction(t *testing.T) {
	k := talkTo(t, "tcp", openWith(t, resp.Options{MaxBulk: 1 << 20}, vfs.NewMem()).address)
	k.say("MULTI")
	value := strings.Repeat("x", 1<<20)
	for range 2 {
		if got := k.say("SET", "k", value); got != "+QUEUED" {
			t.Fatal(got)
		}
	}
	for range 2 {
		if got := k.say("SET", "k", value); !strings.HasPrefix(got, "-ERR The transaction is too large") {
			t.Errorf("%.80s", got)
		}
	}
	if got := k.say("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
		t.Error(got)
	}
	if got := k.say("EXISTS", "k"); got != ":0" {
		t.Errorf("a part was executed: %s", got)
	}
}
