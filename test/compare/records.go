package compare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// patience is how long activations may take that nobody waits for.
const patience = 10 * time.Minute

// record is an activation's, as far as it says how it belongs to others.
type record struct {
	ActivationID string   `json:"activationId"`
	Cause        string   `json:"cause"`
	Logs         []string `json:"logs"`
	text         string   // all of it, without the names of others
}

// Records waits until all activations have ended that the ids and the records themselves name, and returns those that it has not
// returned before: each with those that it caused below it. Those that ran at the same time are in any order if forks.
func (s *Side) Records(ctx context.Context, ids []string, forks bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		list, err := s.unseen(ctx)
		if err != nil {
			return "", err
		}
		missing := s.missing(list, ids)
		if missing == "" {
			for _, r := range list {
				s.seen[r.ActivationID] = true
			}
			return trees(list, forks), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("there is no record of %s", missing)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Await waits until an activation has ended that nobody waited for.
func (s *Side) Await(ctx context.Context, id string) error {
	_, err := s.Client.Await(ctx, id)
	return err
}

// unseen lists the records that were not told yet, the oldest first.
func (s *Side) unseen(ctx context.Context) ([]*record, error) {
	var list []*record
	for skip := 0; ; skip += 200 {
		var page []json.RawMessage
		if err := s.Client.Get(ctx, fmt.Sprintf("activations?docs=true&limit=200&skip=%d", skip), &page); err != nil {
			return nil, err
		}
		found := 0
		for _, document := range page {
			r := new(record)
			if err := json.Unmarshal(document, r); err != nil {
				return nil, err
			}
			if s.seen[r.ActivationID] {
				continue
			}
			found++
			var err error
			if r.text, err = byStream(document, r.Logs); err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		if found == 0 || len(page) < 200 {
			slices.Reverse(list)
			return list, nil
		}
	}
}

// byStream is a record whose log has the lines of each stream together: which of two streams was read first is by chance.
func byStream(document json.RawMessage, logs []string) (string, error) {
	var before, after bytes.Buffer
	encoder := json.NewEncoder(&before)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(logs); err != nil {
		return "", err
	}
	sorted := slices.Clone(logs)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return cmp.Compare(stream(a), stream(b))
	})
	encoder = json.NewEncoder(&after)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(sorted)
	return strings.Replace(string(document), strings.TrimSpace(before.String()), strings.TrimSpace(after.String()), 1), err
}

// stream is the stream that a line of a log comes from.
func stream(line string) string {
	_, rest, _ := strings.Cut(line, " ")
	name, _, _ := strings.Cut(rest, ":")
	return name
}

// missing names an activation that has no record yet.
func (s *Side) missing(list []*record, ids []string) string {
	there := make(map[string]bool)
	for _, r := range list {
		there[r.ActivationID] = true
		ids = append(ids, IDs(r.text)...)
	}
	for _, id := range ids {
		if !there[id] && !s.seen[id] {
			return id
		}
	}
	return ""
}

// trees are the records as texts, each with those that it names or that name it below it.
func trees(list []*record, forks bool) string {
	byID, called := make(map[string]*record), make(map[string][]*record)
	part := make(map[string]bool)
	for _, r := range list {
		byID[r.ActivationID] = r
		for _, id := range r.Logs {
			part[id] = true
		}
	}
	for _, r := range list {
		if r.Cause != "" && byID[r.Cause] != nil && !part[r.ActivationID] {
			called[r.Cause] = append(called[r.Cause], r)
		}
	}
	var show func(r *record) string
	show = func(r *record) string {
		var parts, calls []string
		for _, id := range r.Logs {
			if child := byID[id]; child != nil {
				parts = append(parts, show(child))
			}
		}
		for _, child := range called[r.ActivationID] {
			calls = append(calls, "called "+show(child))
		}
		if forks {
			slices.Sort(parts)
		}
		slices.Sort(calls) // they may begin in the same millisecond
		return Timeless(r.text) + "\n" + indented(parts) + indented(calls)
	}
	var roots []string
	for _, r := range list {
		if !part[r.ActivationID] && (r.Cause == "" || byID[r.Cause] == nil) {
			roots = append(roots, show(r))
		}
	}
	slices.Sort(roots)
	return strings.Join(roots, "")
}

func indented(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		for line := range strings.Lines(text) {
			b.WriteString("  " + line)
		}
	}
	return b.String()
}
