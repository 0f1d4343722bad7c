package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Dump tells the records of state whose names begin with a prefix, one on a line: name, type, whether it expires, and value.
func (s *Side) Dump(ctx context.Context, prefix string) (string, error) {
	keys, err := s.State.Keys(ctx, escape(prefix)+"*").Result()
	if err != nil {
		return "", err
	}
	slices.Sort(keys)
	types := make([]*redis.StatusCmd, len(keys))
	_, err = s.State.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			types[i] = p.Type(ctx, key)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	values := make([]redis.Cmder, len(keys))
	expires := make([]*redis.DurationCmd, len(keys))
	_, err = s.State.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			values[i], expires[i] = read(ctx, p, types[i].Val(), key), p.TTL(ctx, key)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, key := range keys {
		value := fmt.Sprint(values[i])
		_, value, _ = strings.Cut(value, ": ")
		fmt.Fprintf(&b, "%q %s %v %.5000q\n", key, types[i].Val(), expires[i].Val() > 0, value)
	}
	return b.String(), nil
}

func read(ctx context.Context, p redis.Pipeliner, kind, key string) redis.Cmder {
	switch kind {
	case "list":
		return p.LRange(ctx, key, 0, -1)
	case "hash":
		return p.HGetAll(ctx, key)
	case "set":
		return p.SMembers(ctx, key)
	case "zset":
		return p.ZRangeWithScores(ctx, key, 0, -1)
	}
	return p.Get(ctx, key)
}

// escape writes a text as a pattern that only it fits.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}
