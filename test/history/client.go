package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

// client sends commands, one after the other, and writes down what it is told.
type client struct {
	run    *run
	number int
	rng    *rand.Rand
	values int // the last value that it has chosen; no other client chooses the same
	redis  *redis.Client
	done   []porcupine.Operation
	err    error // what ended it
}

// work sends commands as long as more says so and they are answered.
func (c *client) work(ctx context.Context, more func() bool) {
	o := &redis.Options{
		Dialer:   func(ctx context.Context, _, _ string) (net.Conn, error) { return c.run.door.Dial(ctx) },
		Protocol: 2, MaxRetries: -1, PoolSize: 1, DisableIdentity: true, ReadTimeout: -1, WriteTimeout: -1,
	}
	if l := c.run.plan.Login; l != nil {
		o.Username, o.Password = l[0], l[1]
	}
	c.redis = redis.NewClient(o)
	defer c.redis.Close()
	for more() {
		if c.err == nil { // one that ended early counts down what is left, so that the crash comes
			c.err = c.send(ctx, c.run.records[c.rng.IntN(len(c.run.records))])
		}
	}
}

// send sends a random command that fits the record.
func (c *client) send(ctx context.Context, r record) error {
	c.values++
	value := strconv.Itoa(c.values)
	field := string(rune('a' + c.rng.IntN(3)))
	switch r.kind {
	case list:
		return c.list(ctx, r, value)
	case hash, sorted:
		switch c.rng.IntN(5) {
		case 0:
			return c.do(ctx, r, "set", field, value)
		case 1, 2:
			return c.do(ctx, r, "add", field, "1")
		case 3:
			return c.do(ctx, r, "del", field)
		}
		return c.do(ctx, r, "all")
	case pair:
		if c.rng.IntN(2) == 0 {
			return c.do(ctx, r, "get")
		}
		return c.do(ctx, r, "incrby", "1")
	}
	return c.sendNumber(ctx, r, value)
}

func (c *client) list(ctx context.Context, r record, value string) error {
	switch word := []string{"rpush", "lpush", "lpop", "rpop", "lrange"}[c.rng.IntN(5)]; word {
	case "rpush", "lpush":
		return c.do(ctx, r, word, value)
	default:
		return c.do(ctx, r, word)
	}
}

func (c *client) sendNumber(ctx context.Context, r record, value string) error {
	switch word := []string{"get", "get", "set", "getset", "setnx", "getdel", "incrby", "incrby", "cas", "cas"}[c.rng.IntN(10)]; word {
	case "get", "getdel":
		return c.do(ctx, r, word)
	case "incrby":
		return c.do(ctx, r, word, "1")
	case "cas":
		return c.exchange(ctx, r, value)
	default:
		return c.do(ctx, r, word, value)
	}
}

// do sends one command and writes it down.
func (c *client) do(ctx context.Context, r record, words ...string) error {
	return c.note(input{r, words}, func() (string, error) { return c.ask(ctx, r, words) })
}

// note writes down a command and what was told. One that only reads, and is told nothing, says nothing.
func (c *client) note(in input, ask func() (string, error)) error {
	o := porcupine.Operation{ClientId: c.number, Input: in, Call: c.run.now()}
	reply, err := ask()
	o.Return, o.Output = c.run.now(), output{err == nil, reply}
	c.done = append(c.done, o)
	return err
}

// exchange is get, and set if nothing has changed since: what WATCH is for.
func (c *client) exchange(ctx context.Context, r record, value string) error {
	return c.redis.Watch(ctx, func(tx *redis.Tx) error {
		var old string
		err := c.note(input{r, []string{"get"}}, func() (reply string, err error) {
			old, err = text(tx.Get(ctx, r.name).Result())
			return old, err
		})
		if err != nil {
			return err
		}
		return c.note(input{r, []string{"cas", old, value}}, func() (string, error) {
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, r.name, value, 0).Err() })
			if errors.Is(err, redis.TxFailedErr) {
				return none, nil
			}
			return "OK", err
		})
	}, r.name)
}

// ask puts words into a command of Redis, and its reply into words.
func (c *client) ask(ctx context.Context, r record, words []string) (string, error) {
	switch {
	case r.kind == hash || r.kind == sorted:
		return c.askFields(ctx, r, words)
	case r.kind == pair:
		return c.askPair(ctx, r, words)
	case words[0] == "lrange":
		items, err := c.redis.LRange(ctx, r.name, 0, -1).Result()
		reply := fmt.Sprint(items)
		return reply[1 : len(reply)-1], err
	}
	args := []any{words[0], r.name}
	for _, w := range words[1:] {
		args = append(args, w)
	}
	return text(c.redis.Do(ctx, args...).Result())
}

// text is a reply as the model writes it.
func text(reply any, err error) (string, error) {
	if errors.Is(err, redis.Nil) {
		return none, nil
	}
	return fmt.Sprint(reply), err
}

func (c *client) askFields(ctx context.Context, r record, words []string) (string, error) {
	if words[0] == "all" {
		fields, err := c.fields(ctx, r)
		return joined(fields), err
	}
	args := map[kind]map[string][]any{
		hash:   {"set": {"hset", r.name, words[1]}, "add": {"hincrby", r.name, words[1]}, "del": {"hdel", r.name, words[1]}},
		sorted: {"set": {"zadd", r.name}, "add": {"zincrby", r.name}, "del": {"zrem", r.name, words[1]}},
	}[r.kind][words[0]]
	if len(words) > 2 {
		args = append(args, words[2])
	}
	if r.kind == sorted && len(words) > 2 {
		args = append(args, words[1])
	}
	return text(c.redis.Do(ctx, args...).Result())
}

func (c *client) fields(ctx context.Context, r record) (map[string]string, error) {
	if r.kind == hash {
		return c.redis.HGetAll(ctx, r.name).Result()
	}
	members, err := c.redis.ZRangeWithScores(ctx, r.name, 0, -1).Result()
	fields := make(map[string]string)
	for _, m := range members {
		fields[fmt.Sprint(m.Member)] = strconv.FormatFloat(m.Score, 'f', -1, 64)
	}
	return fields, err
}

// askPair works on two records in one step. If they differ, so does the reply from all that the model knows.
func (c *client) askPair(ctx context.Context, r record, words []string) (string, error) {
	names := []string{r.name + "-a", r.name + "-b"}
	if words[0] == "get" {
		values, err := c.redis.MGet(ctx, names...).Result()
		if err != nil {
			return "", err
		}
		return agreed(values[0], values[1]), nil
	}
	var sums [2]*redis.IntCmd
	_, err := c.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			sums[i] = p.IncrBy(ctx, name, 1)
		}
		return nil
	})
	return agreed(sums[0].Val(), sums[1].Val()), err
}

func agreed(a, b any) string {
	switch {
	case a != b:
		return fmt.Sprintf("torn: %v and %v", a, b)
	case a == nil:
		return none
	}
	return fmt.Sprint(a)
}
