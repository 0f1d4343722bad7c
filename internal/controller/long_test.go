package controller

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

func TestALoopThatNeverEndsIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.function("yes", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"value": true}, nil })
		town.function("work", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{}, nil })
		loop := town.deploy("loop", forerun.Exec{Kind: "nodejs:20"}, forerun.KeyValue{Key: "conductor", Value: []byte(
			`{"type":"while","test":{"type":"action","name":"/ns/yes"},"body":{"type":"action","name":"/ns/work"}}`,
		)})
		record := town.invoke(loop, `{}`)
		if record.Status == forerun.Success || !strings.Contains(string(record.Result), "does a loop in it never end?") {
			t.Errorf("it ended with %s", record.Result)
		}
		time.Sleep(time.Second) // the town's worker lets a squashed function end by itself
	})
}

// TestLastOfTooManyRunInTurn: of activations that are too many none has an effect, also where they would have run ahead, and be promoted
// with the last; but the one that would begin next may have begun.
func TestLastOfTooManyRunInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newAheadTown(t)
		var ran atomic.Int64
		town.function("write", func(run *forerun.Run, _ map[string]any) (any, error) {
			n := ran.Add(1)
			_, err := town.do(run, "SET", fmt.Sprint("k", n), "v")
			if n%37 == 0 { // those behind it wait for it, and are promoted with the next
				time.Sleep(time.Millisecond)
			}
			return map[string]any{}, err
		})
		loop := town.deploy("loop", forerun.Exec{Kind: "nodejs:20"}, forerun.KeyValue{Key: "conductor", Value: []byte(
			`{"type":"repeat","count":20000,"components":[{"type":"action","name":"/ns/write"}]}`,
		)}, forerun.KeyValue{Key: "speculate", Value: []byte(`"all; depth=32; least=0s"`)})
		record, tally := town.invokeAhead(loop, `{}`)
		time.Sleep(time.Second) // the town's worker lets a squashed function end by itself
		written := town.others(t, "DBSIZE").Int
		if tally.Used < maxCommitted/2 || written < maxCommitted || written > maxCommitted+1 {
			t.Errorf("%d were ahead, %d have written, and it ends with %s", tally.Used, written, record)
		}
	})
}

// TestLastOfTooManyRunInTurnAfterSkips: nor if nothing is heard of a function while most of these come, as none is executed.
func TestLastOfTooManyRunInTurnAfterSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newAheadTown(t)
		pure := town.function("pure", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{}, nil })
		pure.Annotations = []forerun.KeyValue{{Key: "pure-function", Value: []byte("true")}}
		var ran atomic.Int64
		town.function("write", func(run *forerun.Run, _ map[string]any) (any, error) {
			_, err := town.do(run, "SET", fmt.Sprint("k", ran.Add(1)), "v")
			if !run.Speculative { // those behind it wait for it, and are promoted with the next
				time.Sleep(time.Millisecond)
			}
			return map[string]any{}, err
		})
		town.invokeAhead(town.deploy("known", forerun.Exec{Kind: "sequence", Components: []string{"/ns/pure", "/ns/write"}}), `{}`)
		before := town.others(t, "DBSIZE").Int
		const left = 10
		line := town.deploy("line", forerun.Exec{Kind: "nodejs:20"}, forerun.KeyValue{Key: "conductor", Value: fmt.Appendf(nil,
			`{"type":"sequence","components":[{"type":"repeat","count":%d,"components":[{"type":"action","name":"/ns/pure"}]},
			{"type":"repeat","count":%d,"components":[{"type":"action","name":"/ns/write"}]}]}`, maxCommitted-left, 4*left,
		)}, forerun.KeyValue{Key: "speculate", Value: []byte(`"all; depth=32; least=0s"`)})
		record, tally := town.invokeAhead(line, `{}`)
		time.Sleep(time.Second) // the town's worker lets a squashed function end by itself
		written := town.others(t, "DBSIZE").Int - before
		if tally.Skipped != maxCommitted-left || written < left || written > left+1 || !strings.Contains(record, "does a loop in it never end?") {
			t.Errorf("%d were skipped, %d have written, and it ends with %s", tally.Skipped, written, record)
		}
	})
}

// TestLargeRecordsAreWrittenEarly: the bytes of records that an invocation holds until it ends are bounded.
func TestLargeRecordsAreWrittenEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.function("big", func(*forerun.Run, map[string]any) (any, error) {
			return map[string]any{"text": strings.Repeat("x", largeRecords/2)}, nil
		})
		seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/big", "/ns/big", "/ns/big", "/ns/big", "/ns/big"}})
		record := town.invoke(seq, `{}`)
		synctest.Wait()
		var ids []string
		for _, batch := range town.written {
			for _, r := range batch {
				ids = append(ids, string(r.ID))
			}
		}
		if len(town.written) != 3 || len(town.written[0]) != 2 || len(ids) != 6 || ids[5] != string(record.ID) {
			t.Errorf("written: %d batches, %v", len(town.written), ids)
		}
		if got := strings.Join(record.Logs, " "); got != strings.Join(ids[:5], " ") {
			t.Errorf("the record's logs are %s, written were %v", got, ids)
		}
	})
}
