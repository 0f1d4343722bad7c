package command

import (
	"errors"
	"math"
	"strings"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/lua"
)

// value is what a script gets of a reply, in the protocol that it has asked for.
func (r *running) value(c *lua.Call, reply state.Reply) lua.Value {
	switch reply.Kind {
	case state.Integer:
		return float64(reply.Int)
	case state.Bulk:
		return c.Text(reply.Text)
	case state.Simple:
		return r.made(c, "ok", c.Text(reply.Text))
	case state.Error:
		return r.made(c, "err", c.Text(reply.Text))
	case state.Array:
		return r.list(c, reply.Items)
	}
	if r.protocol == 2 {
		return r.nearest(c, reply)
	}
	switch reply.Kind {
	case state.MapReply:
		t := new(lua.Table)
		for i := 0; i+1 < len(reply.Items); i += 2 {
			key := r.value(c, reply.Items[i])
			c.Charge(t.Set(key, r.value(c, reply.Items[i+1])))
		}
		return r.made(c, "map", t)
	case state.SetReply:
		t := new(lua.Table)
		for _, item := range reply.Items {
			c.Charge(t.Set(r.value(c, item), true))
		}
		return r.made(c, "set", t)
	case state.Pairs:
		pairs := make([]state.Reply, 0, len(reply.Items)/2)
		for i := 0; i+1 < len(reply.Items); i += 2 {
			pairs = append(pairs, array(reply.Items[i:i+2]))
		}
		return r.list(c, pairs)
	case state.Double:
		return r.made(c, "double", reply.Float)
	case state.Boolean:
		return reply.Int != 0
	case state.Verbatim:
		return r.made(c, "verbatim_string", lua.NewTable("string", c.Text(reply.Text), "format", "txt"))
	}
	return nil
}

// nearest is what a script gets in RESP2 of a reply that only RESP3 has.
func (r *running) nearest(c *lua.Call, reply state.Reply) lua.Value {
	switch reply.Kind {
	case state.MapReply, state.SetReply, state.Pairs, state.Push:
		return r.list(c, reply.Items)
	case state.Double:
		return c.Text(FormatDouble(reply.Float))
	case state.Boolean:
		return float64(reply.Int)
	case state.Verbatim:
		return c.Text(reply.Text)
	}
	return false
}

// What a table takes, about, and its first entry.
const (
	tableCost = 192
	entryCost = 384
)

func (r *running) made(c *lua.Call, field string, v lua.Value) *lua.Table {
	c.Charge(tableCost)
	return lua.NewTable(field, v)
}

func (r *running) list(c *lua.Call, items []state.Reply) *lua.Table {
	c.Charge(tableCost)
	t := new(lua.Table)
	for i, item := range items {
		c.Charge(t.Set(float64(i+1), r.value(c, item)))
	}
	return t
}

// maxReplyDepth is how deep tables of a reply may be nested.
const maxReplyDepth = 500

var errDeepReply = errors.New("reached lua stack limit")

// answer is the reply that the values of a script are.
func (r *running) answer(l *lua.State, values []lua.Value) (state.Reply, error) {
	if len(values) == 0 {
		return null(), nil
	}
	return r.reply(l, values[0], 0)
}

func (r *running) reply(l *lua.State, v lua.Value, depth int) (state.Reply, error) {
	switch v := v.(type) {
	case string:
		return bulk([]byte(v)), nil
	case float64:
		return integer(truncated(v)), nil
	case bool:
		switch {
		case r.protocol == 3:
			return state.Reply{Kind: state.Boolean, Int: truth(v).Int}, nil
		case v:
			return integer(1), nil
		}
	case *lua.Table:
		if depth == maxReplyDepth {
			return state.Reply{}, errDeepReply
		}
		return r.replyOf(l, v, depth+1)
	}
	return null(), nil
}

// truncated is a number without its fraction, as C has it.
func truncated(f float64) int64 {
	if math.IsNaN(f) || f >= 1<<63 || f < -1<<63 {
		return math.MinInt64
	}
	return int64(f)
}

// replyOf is the reply that a table is: of the kind that its field says, or a list up to the first nil.
func (r *running) replyOf(l *lua.State, t *lua.Table, depth int) (state.Reply, error) {
	if text, is := t.Get("err").(string); is {
		return state.Reply{Kind: state.Error, Text: oneLine([]byte(shortened(text)))}, nil
	}
	if text, is := t.Get("ok").(string); is {
		return state.Reply{Kind: state.Simple, Text: oneLine([]byte(text))}, nil
	}
	if f, is := t.Get("double").(float64); is {
		return double(f), nil
	}
	if of, is := t.Get("map").(*lua.Table); is {
		return r.walked(l, of, state.MapReply, depth)
	}
	if of, is := t.Get("set").(*lua.Table); is {
		return r.walked(l, of, state.SetReply, depth)
	}
	if text, is := t.Get("big_number").(string); is {
		return bulk([]byte(strings.TrimSpace(text))), nil
	}
	if of, is := t.Get("verbatim_string").(*lua.Table); is {
		if text, is := of.Get("string").(string); is {
			return state.Reply{Kind: state.Verbatim, Text: []byte(text)}, nil
		}
	}
	list := array([]state.Reply{})
	for i := 1; ; i++ {
		v := t.Get(float64(i))
		if v == nil {
			return list, nil
		}
		if err := r.add(l, &list, v, depth); err != nil {
			return state.Reply{}, err
		}
	}
}

// replyCost is about what a part of a reply takes in memory.
const replyCost = 96

func (r *running) add(l *lua.State, list *state.Reply, v lua.Value, depth int) error {
	item, err := r.reply(l, v, depth)
	if err != nil {
		return err
	}
	if err := r.collects(replyCost + len(item.Text)); err != nil {
		return err
	}
	if r.work(itemSize + len(item.Text)/5); r.err != nil {
		return r.err
	}
	list.Items = append(list.Items, item)
	return nil
}

// collects counts bytes that the reply takes, or takes to collect.
func (r *running) collects(bytes int) error {
	if r.shown += bytes; r.shown > maxStep {
		r.err = tooMuchShown()
	}
	return r.err
}

// walked is a map or a set of the pairs of a table.
func (r *running) walked(l *lua.State, t *lua.Table, kind state.ReplyKind, depth int) (state.Reply, error) {
	made := state.Reply{Kind: kind, Items: []state.Reply{}}
	for key, value, passed, _ := t.Next(nil); key != nil; key, value, passed, _ = t.Next(key) {
		if err := r.collects(itemSize * passed); err != nil {
			return state.Reply{}, err
		}
		if err := r.add(l, &made, key, depth); err != nil {
			return state.Reply{}, err
		}
		if kind == state.SetReply {
			continue
		}
		if err := r.add(l, &made, value, depth); err != nil {
			return state.Reply{}, err
		}
	}
	return made, nil
}
