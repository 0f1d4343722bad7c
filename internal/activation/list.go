package activation

import (
	"context"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Query says which records of a namespace are wanted.
type Query struct {
	Name        string    // of the action, "name" or "package/name"; empty: of any
	Since, Upto time.Time // bounds of the start, both inclusive to the millisecond; zero: none
	Skip        int       // of the newest
	Limit       int       // at most so many
	Docs        bool      // whole records, not summaries without Result, Logs and Timeline
}

// List returns records, the newest first.
func (l *Log) List(ctx context.Context, namespace string, q Query) ([]*forerun.Activation, error) {
	prefix := q.prefix(namespace)
	var tails []string
	for entry, err := range l.store.Scan(ctx, q.scope(prefix)) {
		if err != nil {
			return nil, err
		}
		if q.Skip--; q.Skip >= 0 {
			continue
		}
		if len(tails) == q.Limit {
			break
		}
		rest, ok := tail(entry.Name, prefix)
		if !ok {
			return nil, forerun.Errorf(forerun.Internal, entry.Name, "The log's index holds a record that it cannot read.")
		}
		tails = append(tails, rest)
	}
	return l.listed(ctx, namespace, tails, q.Docs)
}

// listed reads the records that index entries stand for, or their summaries: those of large records lie beside them,
// those of the others are made of the records themselves.
func (l *Log) listed(ctx context.Context, namespace string, tails []string, docs bool) ([]*forerun.Activation, error) {
	beside, whole := make([]string, len(tails)), make([]string, len(tails))
	for i, rest := range tails {
		beside[i], whole[i] = timePrefix(namespace)+rest, idKey(namespace, forerun.ActivationID(rest[17:]))
	}
	if docs {
		return l.read(ctx, whole...)
	}
	summaries, err := l.fetch(ctx, beside...)
	if err != nil {
		return nil, err
	}
	for i, data := range summaries {
		if len(data) > 0 {
			whole[i] = beside[i]
		}
	}
	list, err := l.read(ctx, whole...)
	for i, a := range list {
		list[i] = summary(a)
	}
	return list, err
}

// Count counts the records that List would return without a limit. It walks them all.
func (l *Log) Count(ctx context.Context, namespace string, q Query) (int, error) {
	n := 0
	for _, err := range l.store.Scan(ctx, q.scope(q.prefix(namespace))) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return max(0, n-q.Skip), nil
}

// prefix is what the names in the index that serves the query begin with.
func (q Query) prefix(namespace string) string {
	if q.Name == "" {
		return timePrefix(namespace)
	}
	pkg, entity, ok := strings.Cut(q.Name, "/")
	if !ok {
		pkg, entity = "", q.Name
	}
	return namePrefix(namespace, pkg, entity)
}

func (q Query) scope(prefix string) state.Range {
	r := state.Range{Space: space, From: prefix, To: after(prefix), Reverse: true}
	if !q.Since.IsZero() {
		r.From = prefix + stamp(q.Since.Truncate(time.Millisecond))
	}
	if !q.Upto.IsZero() {
		r.To = prefix + stamp(q.Upto.Truncate(time.Millisecond).Add(time.Millisecond))
	}
	return r
}
