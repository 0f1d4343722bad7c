package microtasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// outcome is what a sort took, in seconds.
type outcome struct {
	makespan         float64
	cpu              float64 // of all phases
	chain            float64 // the longest activation of the first stage and of the second, alone
	wrote, wroteLast float64 // the first beginning and the last end of a phase that writes in the first stage
}

// bound is the least that any policy could take: the processors are busy all the time, or the longest chain has no pause.
func (o outcome) bound() float64 { return max(o.cpu/float64(runtime.NumCPU()), o.chain) }

// write is how long the first stage wrote, from the first beginning to the last end.
func (o outcome) write() float64 { return o.wroteLast - o.wrote }

// step is a phase as the function tells it: name, begin, end, processor time.
type step struct {
	name            string
	begin, end, cpu float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *step) UnmarshalJSON(data []byte) error {
	fields := []any{&s.name, &s.begin, &s.end, &s.cpu}
	return json.Unmarshal(data, &fields)
}

// sort sorts the input once, and validates the output.
func (b *bench) sort(ctx context.Context, s *side) (o outcome, err error) {
	b.objects.keep(isInput)
	latency := time.Duration(b.objects.latency.Load()).Seconds()
	began := time.Now()
	first, err := b.stage(ctx, s, 1, mappers)
	if err != nil {
		return o, err
	}
	second, err := b.stage(ctx, s, 2, parts)
	if err != nil {
		return o, err
	}
	o.makespan = time.Since(began).Seconds()
	o.chain = o.add(first, latency*(1+parts)) + o.add(second, latency*(1+mappers))
	outputs := make([][]byte, parts)
	for i := range outputs {
		outputs[i], _ = b.objects.get(fmt.Sprint("out/", i)) // validate misses one that is not there
	}
	return o, validate(outputs, mappers*b.records, b.checksum)
}

// add adds the phases of a stage, whose activations each wait for so long, and returns what the longest activation takes alone.
func (o *outcome) add(activations [][]step, waits float64) (longest float64) {
	for _, steps := range activations {
		cpu := 0.0
		for _, s := range steps {
			cpu += s.cpu
			if s.name == "write" {
				if o.wrote == 0 || s.begin < o.wrote {
					o.wrote = s.begin
				}
				o.wroteLast = max(o.wroteLast, s.end)
			}
		}
		o.cpu += cpu
		longest = max(longest, cpu+waits)
	}
	return longest
}

// stage runs the activations of a stage at once.
func (b *bench) stage(ctx context.Context, s *side, stage, n int) (activations [][]step, err error) {
	var group sync.WaitGroup
	activations = make([][]step, n)
	failures := make([]error, n)
	for i := range n {
		group.Go(func() {
			r, err := s.client.Invoke(ctx, "sort", map[string]any{"address": b.objects.Address, "stage": stage, "n": i, "of": mappers, "light": light})
			if err != nil {
				failures[i] = err
				return
			}
			var result struct{ Phases []step }
			if !r.Response.Success {
				failures[i] = fmt.Errorf("activation %d of stage %d: %s", i, stage, r.Response.Result)
			} else if failures[i] = json.Unmarshal(r.Response.Result, &result); failures[i] == nil {
				activations[i] = result.Phases
			}
		})
	}
	group.Wait()
	return activations, errors.Join(failures...)
}
