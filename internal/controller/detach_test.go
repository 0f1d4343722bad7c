package controller

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"forerun.dev/forerun/internal/forerun"
)

// apart deploys a composition that runs a part of itself asynchronously.
func (t *town) apart() *forerun.Action {
	document := `{"type":"async","components":[{"type":"action","name":"/_/work"}]}`
	return t.deploy("apart", forerun.Exec{Kind: "nodejs:default"}, forerun.KeyValue{Key: "conductor", Value: json.RawMessage(document)})
}

func TestDetachedPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		var flying atomic.Int64
		town.Admit = func(context.Context, string) (func(), error) {
			flying.Add(1)
			return func() { flying.Add(-1) }, nil
		}
		town.function("work", add("worked", 1))
		action := town.apart()
		action.Parameters = []forerun.KeyValue{{Key: "p", Value: json.RawMessage("2")}}
		record := town.invoke(action, `{"x":0}`)
		synctest.Wait() // for the part, which has begun
		var ids struct {
			Method                string
			ActivationID, Session forerun.ActivationID
		}
		if err := json.Unmarshal(record.Result, &ids); err != nil || ids.Method != "async" || record.Duration != 0 || len(record.Logs) != 0 || flying.Load() != 1 {
			t.Errorf("it is %+v, %v; %d are in flight", record, err, flying.Load())
		}
		if !town.isAccepted(ids.ActivationID) {
			t.Error("the id was told of what would be lost with the server")
		}
		town.Close(t.Context())
		synctest.Wait()
		records := slices.Concat(town.written...)
		part := records[len(records)-1]
		if len(records) != 3 || part.ID != ids.ActivationID || part.Cause != record.ID || string(part.Result) != `{"p":2,"worked":1,"x":0}` ||
			annotated(part, "topmost") != "true" || flying.Load() != 0 || len(town.accepted) != 0 {
			t.Errorf("%d records, the last %+v; %d are in flight, %d accepted", len(records), part, flying.Load(), len(town.accepted))
		}
	})
}

func TestDetachedPartIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.Admit = func(context.Context, string) (func(), error) {
			return nil, forerun.Errorf(forerun.TooMany, "", "too many")
		}
		record := town.invoke(town.apart(), `{}`)
		if string(record.Result) != `{"error":"Async combinator failed to invoke composition at AST node root (see log for details)"}` {
			t.Errorf("%v %s", record.Status, record.Result)
		}
	})
}

// TestGivenUpWhileItDetaches gives a namespace up while a part of a composition is being accepted.
func TestGivenUpWhileItDetaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		admitted, ended := make(chan bool), false
		town.Admit = func(context.Context, string) (func(), error) {
			<-admitted
			return func() { ended = true }, nil
		}
		i := town.Invoke(Request{Namespace: "ns", Action: town.apart(), Input: json.RawMessage("{}")})
		synctest.Wait()
		go town.EndNamespace(t.Context(), "ns", "It was deleted.")
		<-i.Done()
		close(admitted)
		town.Close(t.Context())
		if record := i.Record(); record.Status != forerun.InternalError || len(town.written) != 1 || !ended || len(town.accepted) != 0 {
			t.Errorf("%+v; %d records, %d accepted", record, len(town.written), len(town.accepted))
		}
	})
}
