package openwhisk

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/timer"
)

// A trigger's timer is Forerun's own resource below the trigger. The feeds of /whisk.system/alarms turn OpenWhisk's events into requests for it.

// timerPut is what the body of a PUT or PATCH gives: the feed, and its parameters.
type timerPut struct {
	Feed       string
	Parameters timer.Parameters
}

// timerBody reads a request about a timer.
func (a *API) timerBody(c *call) (name forerun.Name, put timerPut, err error) {
	if name, err = c.name(); err != nil {
		return name, put, err
	}
	body, err := c.input()
	if err != nil {
		return name, put, err
	}
	if err = c.decode(body, &put.Parameters); err != nil {
		return name, put, err
	}
	if feed, ok := put.Parameters["feed"]; ok && json.Unmarshal(feed, &put.Feed) != nil {
		return name, put, malformed("'feed' must be a string")
	}
	delete(put.Parameters, "feed")
	return name, put, nil
}

// putTimer answers PUT .../triggers/NAME/timer: it makes the timer, or replaces it.
func (a *API) putTimer(c *call) error {
	name, put, err := a.timerBody(c)
	if err != nil {
		return err
	}
	return a.changeTimer(c, name, func([]byte) (*timer.Timer, error) {
		return timer.New(put.Feed, put.Parameters, a.Controller.Clock.Now())
	})
}

// patchTimer answers PATCH .../triggers/NAME/timer: it changes what the body names.
func (a *API) patchTimer(c *call) error {
	name, put, err := a.timerBody(c)
	if err != nil {
		return err
	}
	return a.changeTimer(c, name, func(old []byte) (*timer.Timer, error) {
		if old == nil {
			_, err := a.Registry.Timer(c.r.Context(), name)
			return nil, err
		}
		t, err := timer.Decode(old)
		if err != nil {
			return nil, err
		}
		return t.Update(put.Parameters, a.Controller.Clock.Now())
	})
}

func (a *API) changeTimer(c *call, name forerun.Name, change func(old []byte) (*timer.Timer, error)) error {
	made, err := within(a, c, func() (made *timer.Timer, err error) {
		err = a.Registry.PutTimer(c.r.Context(), name, func(old []byte) ([]byte, error) {
			if made, err = change(old); err != nil {
				return nil, err
			}
			return made.Encode()
		})
		return made, err
	})
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, made.Document(name))
	}
	return err
}

// getTimer answers GET .../triggers/NAME/timer.
func (a *API) getTimer(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	_, t, err := a.timerOf(c.r.Context(), name)
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, t.Document(name))
	}
	return err
}

func (a *API) timerOf(ctx context.Context, name forerun.Name) (registry.Timer, *timer.Timer, error) {
	stored, err := a.Registry.Timer(ctx, name)
	if err != nil {
		return stored, nil, err
	}
	t, err := timer.Decode(stored.Data)
	return stored, t, err
}

// deleteTimer answers DELETE .../triggers/NAME/timer. A trigger without one is fine: it may have been deleted with its timer before its feed is told.
func (a *API) deleteTimer(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	_, err = within(a, c, func() (struct{}, error) { return struct{}{}, a.Registry.DeleteTimer(c.r.Context(), name) })
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, document{})
	}
	return err
}

// FireTimer fires a trigger for its timer, once for each ID and moment: what an earlier call began is found, not begun again. The error is
// forerun.NotFound or Unauthorized if there is no such timer any more; else the firing is to be tried again. It is Forbidden while the tenant is
// suspended.
func (a *API) FireTimer(ctx context.Context, f timer.Firing) error {
	defer a.Controller.Enter(f.Trigger.Namespace)() // the tenant is not erased meanwhile
	if err := a.isStillTimed(ctx, f); err != nil {
		return err
	}
	tenant, err := a.Registry.Tenant(ctx, f.Trigger.Namespace)
	if err == nil {
		err = tenant.Active()
	}
	if err != nil {
		return err
	}
	trigger, err := a.Registry.Entity(ctx, registry.Triggers, f.Trigger)
	if err != nil {
		return err
	}
	if hasActive(trigger) {
		r := new(http.Request).WithContext(context.WithoutCancel(ctx))
		c := &call{w: nowhere{}, r: r, caller: gateway.Caller{Namespace: tenant.Namespace, Subject: tenant.Subject}}
		if err := a.fireRules(ctx, c, f, trigger); err != nil {
			return err
		}
	}
	return a.deleteFired(ctx, f, trigger)
}

// isStillTimed fails if the timer was changed or deleted.
func (a *API) isStillTimed(ctx context.Context, f timer.Firing) error {
	_, t, err := a.timerOf(ctx, f.Trigger)
	if err == nil && t.ID != f.ID {
		err = forerun.Errorf(forerun.NotFound, f.Trigger.String(), "The timer was changed.")
	}
	return err
}

// fireRules is what fire does, for a timer. A tenant that may fire no more has a record that says so: the moment passes.
func (a *API) fireRules(ctx context.Context, c *call, f timer.Firing, trigger *registry.Entity) error {
	id := firingID(f)
	if _, err := a.Activations.Get(ctx, trigger.Name.Namespace, id); forerun.KindOf(err) != forerun.NotFound {
		return err
	}
	record := a.newFiring(c, trigger, f.Payload)
	record.ID = id
	record.Annotations = []forerun.KeyValue{{Key: "scheduled", Value: isoOf(f.Moment)}}
	if f.First.Before(f.Moment) {
		record.Annotations = append(record.Annotations, forerun.KeyValue{Key: "missedSince", Value: isoOf(f.First)})
	}
	input, err := canonical.Merge(trigger.Parameters, f.Payload)
	if err == nil {
		err = a.Quotas.Fire(ctx, trigger.Name.Namespace)
	}
	switch {
	case forerun.KindOf(err) == forerun.TooMany:
		refused := forerun.Failure(forerun.ApplicationError, err.Error())
		record.Status, record.Result, record.End = refused.Status, refused.Value, record.Start
		return a.put(ctx, record)
	case err != nil:
		return err
	}
	var unavailable error // then all is tried again
	for _, rule := range rulesOf(trigger) {
		if err := ctx.Err(); err != nil {
			return err
		}
		once := &activation.Once{Namespace: trigger.Name.Namespace, Action: trigger.Rules[rule].Action, Key: onceKey(f, rule)}
		line := a.activate(c, rule, trigger.Rules[rule], input, terms{}, func(r controller.Request) (forerun.ActivationID, error) {
			r.Transaction = rand.Text()
			invocation, first, err := a.invokeOnce(c.r.Context(), r, once)
			if invocation != nil {
				first = invocation.ID()
			}
			if forerun.KindOf(err) == forerun.Unavailable {
				unavailable = err
			}
			return first, err
		})
		record.Logs = append(record.Logs, line.String())
	}
	if unavailable != nil {
		return unavailable
	}
	return a.put(ctx, record)
}

// deleteFired deletes what goes with a firing, if the timer is still the same.
func (a *API) deleteFired(ctx context.Context, f timer.Firing, trigger *registry.Entity) error {
	if !f.Delete {
		return nil
	}
	if err := a.isStillTimed(ctx, f); err != nil {
		return err
	}
	if f.Rules {
		for _, rule := range rulesOf(trigger) {
			if _, err := a.Registry.DeleteRule(ctx, rule); err != nil && !isAbsent(err) {
				return err
			}
		}
	}
	_, err := a.Registry.DeleteTrigger(ctx, f.Trigger)
	return err
}

// firingID is the id of the record of a firing, the same each time: the moment and 80 bits that nothing else has.
func firingID(f timer.Firing) forerun.ActivationID {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(f.Moment.UnixMilli())<<16)
	sum := sha256.Sum256([]byte(onceKey(f, f.Trigger)))
	copy(id[6:], sum[:])
	return forerun.ActivationID(hex.EncodeToString(id[:]))
}

// onceKey names one rule's part of a firing. No client knows a timer's ID.
func onceKey(f timer.Firing, rule forerun.Name) string {
	return "timer " + f.ID + " " + strconv.FormatInt(f.Moment.UnixMilli(), 10) + " " + rule.Entity
}

func isoOf(at time.Time) json.RawMessage {
	return json.RawMessage(at.UTC().Format(`"2006-01-02T15:04:05.000Z"`))
}

// nowhere takes the headers that an answer would have.
type nowhere struct{}

func (nowhere) Header() http.Header         { return make(http.Header) }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}
