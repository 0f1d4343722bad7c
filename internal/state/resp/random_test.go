package resp_test

import (
	"slices"
	"strconv"
	"strings"
)

// isRandom says whether a command answers at random.
func isRandom(name string) bool {
	return slices.Contains([]string{"SPOP", "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER"}, name)
}

// drawn is what a random command may answer where Redis has answered want: got, if it has the same form and what it
// drew can be drawn; else what is wrong with it. After SPOP, what Redis popped is made what Forerun popped.
func drawn(redis *talker, args []string, want, got string) string {
	w, g := texts(want), texts(got)
	if len(w) == 0 || form(want) != form(got) {
		return want
	}
	name := strings.ToUpper(args[0])
	if name == "SPOP" {
		redis.say(append([]string{"SADD", args[1]}, w...)...)
		if n := redis.say(append([]string{"SREM", args[1]}, g...)...); n != ":"+strconv.Itoa(len(g)) {
			return "members that are there: " + n
		}
		return got
	}
	step := 1
	if len(args) == 4 {
		step = 2
	}
	seen := make(map[string]bool)
	for i := 0; i < len(g); i += step {
		found := redis.say(map[string]string{"SRANDMEMBER": "SISMEMBER", "HRANDFIELD": "HGET", "ZRANDMEMBER": "ZSCORE"}[name], args[1], g[i])
		if found == ":0" || strings.HasPrefix(found, "$-1") || found == "_" || step == 2 && !strings.HasSuffix(found, g[i+1]) && !strings.HasSuffix(found, strconv.Quote(g[i+1])) {
			return "something that is there, not " + g[i]
		}
		if seen[g[i]] && !strings.HasPrefix(args[2], "-") {
			return "different ones, not " + g[i] + " twice"
		}
		seen[g[i]] = true
	}
	return got
}

// texts are the bulk strings and doubles of a reply.
func texts(reply string) (list []string) {
	for _, part := range strings.Split(reply, "|") {
		if _, quoted, found := strings.Cut(part, " "); found && part[0] == '$' {
			text, _ := strconv.Unquote(quoted)
			list = append(list, text)
		}
		if part[0] == ',' {
			list = append(list, part[1:])
		}
	}
	return list
}

// form is a reply without its texts.
func form(reply string) string {
	var parts []string
	for _, part := range strings.Split(reply, "|") {
		parts = append(parts, part[:1])
	}
	return strings.Join(parts, "")
}
