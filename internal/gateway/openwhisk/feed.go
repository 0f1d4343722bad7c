package openwhisk

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/feed"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// beat is how often a silent feed is written to, so that both ends notice when the other one is gone.
const beat = 15 * time.Second

// lineDocument is an event of the feed: a line of a running activation.
type lineDocument struct {
	ActivationID forerun.ActivationID `json:"activationId"`
	Name         string               `json:"name"`
	Number       int                  `json:"number"` // in the activation's log, from 0
	Line         string               `json:"line"`
}

// follow answers GET .../feed with server-sent events until the client leaves, its key is void or the server stops. First come the
// activations that ended while the client was away, and those that run now.
func (a *API) follow(c *call) error {
	namespace, err := c.namespace("feed")
	if err != nil {
		return err
	}
	name, err := c.activationName()
	switch {
	case err != nil:
		return err
	case c.caller.Cause != "":
		return forerun.Errorf(forerun.Forbidden, "", "A function cannot follow the feed: it takes a key of the namespace.")
	}
	last, err := c.lastEvent()
	if err != nil {
		return err
	}
	listener, err := a.Feed.Listen(namespace, func(x *forerun.Activation) bool { return name == "" || activation.NameOf(x) == name })
	if err != nil {
		return err
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	uuid, _, _ := c.r.BasicAuth()
	defer a.Registry.WhenVoid(uuid, cancel)()
	if err := c.keys.IsStill(c.r, c.caller); err != nil {
		return err
	}
	var away missed
	if !last.IsZero() {
		if away, err = a.missedSince(ctx, namespace, name, last); err != nil {
			return err
		}
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("Cache-Control", "no-store")
	if err := c.sendMissed(away); err != nil {
		return nil // the client has left
	}
	a.Controller.Show(namespace)
	c.sendNews(ctx, listener, away.told)
	return nil
}

// sendNews sends what a listener hears until that ends, or the client is gone. Of some activations it was told already.
func (c *call) sendNews(ctx context.Context, from *feed.Listener, told map[forerun.ActivationID]bool) {
	for sent := []byte(": the feed of the namespace\n\n"); ; {
		if err := c.sendEvents(sent); err != nil {
			return
		}
		patience, cancel := context.WithTimeout(ctx, beat)
		news, err := from.Next(patience)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			sent = []byte(":\n\n")
		case err != nil:
			return
		case told[news.Activation.ID]:
			sent = nil
		default:
			sent = eventsOf(news)
		}
	}
}

// events are server-sent events as they are sent.
type events struct{ bytes.Buffer }

func (e *events) add(event string, data any) {
	e.WriteString("id: " + strconv.FormatInt(time.Now().UnixMilli(), 10) + "\nevent: " + event + "\ndata: ")
	e.Write(gateway.Marshal(data)) // JSON has no line breaks
	e.WriteString("\n\n")
}

// eventsOf are the events that tell news.
func eventsOf(news feed.News) []byte {
	var e events
	a := news.Activation
	if news.Begun {
		begun := activationSummaryOf(a)
		begun.ending, begun.StatusCode = nil, nil
		e.add("begun", begun)
	}
	for i, line := range news.Lines {
		e.add("line", lineDocument{a.ID, a.Action.Entity, news.First + i, line})
	}
	if news.Ended {
		e.add("ended", activationSummaryOf(a))
	}
	return e.Bytes()
}
