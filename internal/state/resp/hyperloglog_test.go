package resp_test

import (
	"fmt"
	"testing"
)

// TestHyperLogLogsAreThoseOfRedis takes small and large ones to Forerun and back.
func TestHyperLogLogsAreThoseOfRedis(t *testing.T) {
	redis := talkTo(t, "unix", startRedis(t))
	ours := talkTo(t, "tcp", open(t).address)
	for _, size := range []int{1, 10, 500, 20_000} {
		add := []string{"PFADD", "a"}
		for n := range size {
			add = append(add, fmt.Sprint("element", n))
		}
		redis.say(add...)
		want := redis.say("PFCOUNT", "a")
		ours.say("SET", "a", texts(redis.say("GET", "a"))[0])
		if got := ours.say("PFCOUNT", "a"); got != want {
			t.Errorf("%d elements of Redis count %s there, %s here", size, want, got)
		}
		ours.say("PFMERGE", "b", "a")
		redis.say("SET", "b", texts(ours.say("GET", "b"))[0])
		if got := redis.say("PFCOUNT", "b"); got != want {
			t.Errorf("%d elements of ours count %s there, not %s", size, got, want)
		}
		if ours.say("PFADD", "a", "element0") != ":0" {
			t.Error("an element that was counted already is counted again")
		}
	}
}
