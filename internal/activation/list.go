package activation

import (
	"context"
	"iter"
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
}

// List returns summaries of records, without Result, Logs and Timeline, the newest first.
func (l *Log) List(ctx context.Context, namespace string, q Query) ([]*forerun.Activation, error) {
	tails, err := l.tails(ctx, namespace, q)
	if err != nil {
		return nil, err
	}
	return l.listed(ctx, namespace, tails)
}

// Whole returns the records of which List has the summaries. Each is read when it is its turn, as together they may have gigabytes.
func (l *Log) Whole(ctx context.Context, namespace string, q Query) iter.Seq2[*forerun.Activation, error] {
	return func(yield func(*forerun.Activation, error) bool) {
		tails, err := l.tails(ctx, namespace, q)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, rest := range tails {
			found, err := l.read(ctx, idKey(namespace, idOf(rest)))
			if err != nil {
				yield(nil, err)
				return
			}
			for _, a := range found { // none if it was removed meanwhile
				if !yield(a, nil) {
					return
				}
			}
		}
	}
}

// idOf is the id in an index entry's tail.
func idOf(tail string) forerun.ActivationID { return forerun.ActivationID(tail[17:]) }

// tails finds the index entries of a query.
func (l *Log) tails(ctx context.Context, namespace string, q Query) ([]string, error) {
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
	return tails, nil
}

// listed reads the summaries of the records that index entries stand for: those of large records lie beside them, those of the others
// are made of the records themselves.
func (l *Log) listed(ctx context.Context, namespace string, tails []string) ([]*forerun.Activation, error) {
	beside, whole := make([]string, len(tails)), make([]string, len(tails))
	for i, rest := range tails {
		beside[i], whole[i] = timePrefix(namespace)+rest, idKey(namespace, idOf(rest))
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
