package resp

import (
	"math"
	"testing"

	"forerun.dev/forerun/internal/state"
)

func TestEncode(t *testing.T) {
	one := state.Reply{Kind: state.Integer, Int: 1}
	for _, c := range []struct {
		reply        state.Reply
		resp2, resp3 string
	}{
		{state.Reply{}, "$-1\r\n", "_\r\n"},
		{state.Reply{Kind: state.NilArray}, "*-1\r\n", "_\r\n"},
		{okReply(), "+OK\r\n", "+OK\r\n"},
		{failure("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"},
		{integer(math.MinInt64), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"},
		{bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"},
		{bulk("a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"},
		{state.Reply{Kind: state.Array, Items: []state.Reply{one, {}}}, "*2\r\n:1\r\n$-1\r\n", "*2\r\n:1\r\n_\r\n"},
		{state.Reply{Kind: state.MapReply, Items: []state.Reply{bulk("f"), one}}, "*2\r\n$1\r\nf\r\n:1\r\n", "%1\r\n$1\r\nf\r\n:1\r\n"},
		{state.Reply{Kind: state.SetReply, Items: []state.Reply{one}}, "*1\r\n:1\r\n", "~1\r\n:1\r\n"},
		{state.Reply{Kind: state.Double, Float: 1.5}, "$3\r\n1.5\r\n", ",1.5\r\n"},
		{state.Reply{Kind: state.Double, Float: math.Inf(-1)}, "$4\r\n-inf\r\n", ",-inf\r\n"},
		{state.Reply{Kind: state.Double, Float: math.Inf(1)}, "$3\r\ninf\r\n", ",inf\r\n"},
		{state.Reply{Kind: state.Boolean, Int: 1}, ":1\r\n", "#t\r\n"},
		{state.Reply{Kind: state.Boolean}, ":0\r\n", "#f\r\n"},
		{state.Reply{Kind: state.Verbatim, Text: []byte("some")}, "$4\r\nsome\r\n", "=8\r\ntxt:some\r\n"},
	} {
		if got := string(appendReply(nil, c.reply, 2)); got != c.resp2 {
			t.Errorf("%+v in RESP2: %q, want %q", c.reply, got, c.resp2)
		}
		if got := string(appendReply(nil, c.reply, 3)); got != c.resp3 {
			t.Errorf("%+v in RESP3: %q, want %q", c.reply, got, c.resp3)
		}
	}
}
