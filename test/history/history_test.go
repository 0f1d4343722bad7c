package history

import (
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// told is a command of a client, from one time to another, and the reply; "?" is none.
func told(from, to int64, k kind, reply string, words ...string) porcupine.Operation {
	return porcupine.Operation{
		Input: input{record{k, "r"}, words}, Output: output{reply != "?", reply}, Call: from, Return: to,
	}
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		done []porcupine.Operation
		fine bool
	}{
		"nothing": {nil, true},
		"two at the same time, in either order": {[]porcupine.Operation{
			told(1, 9, number, "OK", "set", "1"), told(2, 8, number, none, "get"), told(3, 7, number, "1", "get"),
		}, true},
		"a read of what was overwritten": {[]porcupine.Operation{
			told(1, 2, number, "OK", "set", "1"), told(3, 4, number, "OK", "set", "2"), told(5, 6, number, "1", "get"),
		}, false},
		"an update is lost": {[]porcupine.Operation{
			told(1, 4, number, "1", "incrby", "1"), told(2, 5, number, "1", "incrby", "1"),
		}, false},
		"an exchange of something else": {[]porcupine.Operation{
			told(1, 2, number, "5", "incrby", "5"), told(3, 4, number, "OK", "cas", "4", "6"),
		}, false},
		"an exchange that was given up": {[]porcupine.Operation{
			told(1, 2, number, "5", "incrby", "5"), told(3, 4, number, none, "cas", "5", "6"), told(5, 6, number, "5", "get"),
		}, true},
		"what was not answered has happened": {[]porcupine.Operation{
			told(1, 5, list, "?", "rpush", "a"), told(6, 7, list, "a", "lrange"),
		}, true},
		"what was not answered has not happened": {[]porcupine.Operation{
			told(1, 5, list, "?", "rpush", "a"), told(6, 7, list, "", "lrange"), told(8, 9, list, none, "lpop"),
		}, true},
		"what was not answered happens after the crash": {[]porcupine.Operation{
			told(1, 5, list, "?", "rpush", "a"), told(6, 7, list, "", "lrange"), told(8, 9, list, "a", "lpop"),
		}, false},
		"what was acknowledged is gone": {[]porcupine.Operation{
			told(1, 2, hash, "1", "set", "f", "1"), told(3, 4, hash, "3", "add", "f", "2"), told(6, 7, hash, "f=1 ", "all"),
		}, false},
		"half of a transaction": {[]porcupine.Operation{
			told(1, 2, pair, "1", "incrby", "1"), told(3, 4, pair, "torn: 1 and 2", "get"),
		}, false},
	} {
		if wrong := judge(test.done); (wrong == "") != test.fine {
			t.Errorf("%s: %q", name, wrong)
		} else if !test.fine && !strings.Contains(wrong, test.done[0].Input.(input).words[0]) {
			t.Errorf("%s is not shown: %q", name, wrong)
		}
	}
}
