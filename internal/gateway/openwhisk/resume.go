package openwhisk

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/forerun"
)

// The id of an event of the feed is the moment at which it was sent. A client that connects again shows the last one in Last-Event-ID. Then
// it is told what ended since, from the log: so a server that was started again knows it, too, and keeps nothing for clients that are away.
const (
	mostMissed  = 200         // records that are looked at: the newest
	longestAway = time.Hour   // so long ago the activations of these records began at most
	lateRecord  = time.Minute // a record may come so long after its end; what a client is told twice it knows by its id
)

// missed is what a client of the feed was not told while it was away.
type missed struct {
	ended []*forerun.Activation // the oldest first
	told  map[forerun.ActivationID]bool
	some  bool // there may be more than these
}

// lastEvent reads the moment in Last-Event-ID. It is zero if the client has none.
func (c *call) lastEvent() (time.Time, error) {
	text := c.r.Header.Get("Last-Event-ID")
	if text == "" {
		return time.Time{}, nil
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil || at < 0 {
		return time.Time{}, forerun.Errorf(forerun.Invalid, text, "Last-Event-ID is not an id of this feed: send the last one that the feed sent, or none.")
	}
	return time.UnixMilli(at), nil
}

// missedSince finds what has ended since a moment. The parts of a workflow have their records when it ends, whenever they did.
func (a *API) missedSince(ctx context.Context, namespace, name string, at time.Time) (m missed, err error) {
	now := time.Now()
	list, err := a.Activations.List(ctx, namespace, activation.Query{Name: name, Since: now.Add(-longestAway), Limit: mostMissed + 1})
	if err != nil {
		return m, err
	}
	m.some = len(list) > mostMissed || now.Sub(at) > longestAway
	list = list[:min(len(list), mostMissed)]
	slices.Reverse(list)
	m.told = make(map[forerun.ActivationID]bool)
	for before := -1; before < len(m.told); { // until no part of what is told is left: it may stand before its workflow, of the same millisecond
		before = len(m.told)
		for _, x := range list {
			if m.told[x.Cause] || !x.End.Before(at.Add(-lateRecord)) {
				m.told[x.ID] = true
			}
		}
	}
	m.ended = slices.DeleteFunc(list, func(x *forerun.Activation) bool { return !m.told[x.ID] })
	return m, nil
}

// sendMissed tells a client what has ended while it was away, and says if it was not told of everything.
func (c *call) sendMissed(m missed) error {
	var e events
	if m.some {
		e.add("gap", document{"message": "More ended than is told here: look at the list of activations."})
	}
	for _, a := range m.ended {
		e.add("ended", activationSummaryOf(a))
	}
	return c.sendEvents(e.Bytes())
}

// sendEvents sends events at once.
func (c *call) sendEvents(sent []byte) error {
	if _, err := c.w.Write(sent); err != nil {
		return err
	}
	return http.NewResponseController(c.w).Flush()
}
