package command

import "forerun.dev/forerun/internal/state"

func sadd(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.Set)
	if !typed {
		return wrongType()
	}
	n := int64(0)
	for _, member := range args[2:] {
		if _, found := t.element(args[1], member); !found {
			t.setElement(args[1], member, nil)
			n++
		}
	}
	if n > 0 {
		t.settle(args[1], state.Set, r, r.count()+n)
	}
	return integer(n)
}

func srem(t *txn, args [][]byte) state.Reply { return removeMembers(t, args, state.Set) }

func scard(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.Set)
	if !typed {
		return wrongType()
	}
	return integer(r.count())
}

func sismember(t *txn, args [][]byte) state.Reply {
	reply := smismember(t, args)
	if reply.Kind == state.Array {
		return reply.Items[0]
	}
	return reply
}

func smismember(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.Set)
	if !typed {
		return wrongType()
	}
	items := make([]state.Reply, 0, len(args)-2)
	for _, member := range args[2:] {
		found := false
		if r.exists() {
			_, found = t.element(args[1], member)
		}
		items = append(items, truth(found))
	}
	return array(items)
}

func smembers(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.Set)
	if !typed {
		return wrongType()
	}
	items := []state.Reply{}
	if r.exists() {
		t.elements(args[1], func(member, _ []byte) { items = append(items, bulk(t.keep(member))) })
	}
	return state.Reply{Kind: state.SetReply, Items: items}
}
