// Command fill writes actions and activations into the store of a server that does not run, as the server itself
// would write them, for the benchmark of a store that holds many.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state/embedded"
)

func main() {
	var f filling
	flag.StringVar(&f.store, "store", "", "`FOLDER` of the store, in the server's data folder")
	flag.StringVar(&f.namespace, "namespace", "guest", "the tenant whose they are")
	flag.IntVar(&f.actions, "actions", 100_000, "how many actions, named stored-0 and so on")
	flag.IntVar(&f.activations, "activations", 1_000_000, "how many activations of them")
	flag.Parse()
	if err := f.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

// filling is what is to be written, and where.
type filling struct {
	store, namespace     string
	actions, activations int
}

func (f *filling) run(ctx context.Context) error {
	if f.store == "" || f.actions < 1 {
		return fmt.Errorf("name a folder with --store, and at least one of --actions")
	}
	store, err := embedded.Open(f.store, embedded.Options{})
	if err != nil {
		return err
	}
	actions := registry.Open(store, registry.DefaultLimits(), nil)
	err = inParallel(f.actions, writers, func(i int) error { return f.putAction(ctx, actions, i) })
	actions.Close()
	if err == nil {
		log := activation.Open(store, false)
		err = inParallel((f.activations+batch-1)/batch, 2, func(i int) error { return f.putActivations(ctx, log, i*batch) })
	}
	if closing := store.Close(); err == nil {
		err = closing
	}
	return err
}

const (
	writers = 64  // of actions: they wait for one sync together
	batch   = 100 // activations that are written in one step
)

// inParallel calls do with each number below n, from several goroutines, until one fails.
func inParallel(n, goroutines int, do func(i int) error) error {
	var working sync.WaitGroup
	failures := make(chan error, goroutines)
	for first := range goroutines {
		working.Go(func() {
			for i := first; i < n && len(failures) == 0; i += goroutines {
				if err := do(i); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	working.Wait()
	close(failures)
	return <-failures
}

func (f *filling) name(i int) forerun.Name {
	return forerun.Name{Namespace: f.namespace, Entity: fmt.Sprintf("stored-%d", i)}
}

func (f *filling) putAction(ctx context.Context, r *registry.Registry, i int) error {
	_, err := r.PutAction(ctx, f.name(i), true, func(*forerun.Action) (*forerun.Action, error) {
		return &forerun.Action{
			Exec:        forerun.Exec{Kind: "python:3", Code: fmt.Sprintf("# %d\ndef main(args):\n    return args\n", i)},
			Annotations: []forerun.KeyValue{{Key: "exec", Value: json.RawMessage(`"python:3"`)}},
			Limits:      forerun.DefaultLimits(),
		}, nil
	})
	return err
}

// putActivations writes a batch of records, a second apart from each other, which all lie in the past.
func (f *filling) putActivations(ctx context.Context, log *activation.Log, from int) error {
	var records []*forerun.Activation
	for i := from; i < min(from+batch, f.activations); i++ {
		records = append(records, f.record(i))
	}
	return log.Put(ctx, records...)
}

func (f *filling) record(i int) *forerun.Activation {
	start := time.Now().Add(-time.Duration(f.activations-i) * time.Second)
	end := start.Add(time.Millisecond)
	name := f.name(i % f.actions)
	return &forerun.Activation{
		ID: forerun.NewActivationID(start), Namespace: f.namespace, Action: name, Version: "0.0.1", Subject: f.namespace,
		Start: start, End: end, Duration: end.Sub(start), Status: forerun.Success,
		Result: json.RawMessage(fmt.Sprintf(`{"x":%d}`, i)),
		Logs:   []string{start.UTC().Format("2006-01-02T15:04:05.000000000Z") + " stdout: a line that the function wrote"},
		Annotations: []forerun.KeyValue{
			{Key: "path", Value: json.RawMessage(`"` + name.Path() + "/" + name.Entity + `"`)},
			{Key: "kind", Value: json.RawMessage(`"python:3"`)},
			{Key: "timeout", Value: json.RawMessage("false")},
			{Key: "waitTime", Value: json.RawMessage("1")},
			{Key: "limits", Value: json.RawMessage(`{"timeout":60000,"memory":256,"logs":10,"concurrency":1}`)},
		},
		Timeline: forerun.Timeline{Queued: start, Launched: start, Promoted: start, Finished: end, Committed: end},
	}
}
