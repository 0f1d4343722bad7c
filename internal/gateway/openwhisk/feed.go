package openwhisk

import (
	"bytes"
	"context"
	"errors"
	"net/http"
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
// activations that run now.
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
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("Cache-Control", "no-store")
	a.Controller.Show(namespace)
	c.sendNews(ctx, listener)
	return nil
}

// sendNews sends what a listener hears until that ends, or the client is gone.
func (c *call) sendNews(ctx context.Context, from *feed.Listener) {
	for sent := []byte(": the feed of the namespace\n\n"); ; {
		if _, err := c.w.Write(sent); err != nil {
			return
		}
		if err := http.NewResponseController(c.w).Flush(); err != nil {
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
		default:
			sent = eventsOf(news)
		}
	}
}

// eventsOf are the events that tell news.
func eventsOf(news feed.News) []byte {
	var b bytes.Buffer
	add := func(event string, data any) {
		b.WriteString("event: " + event + "\ndata: ")
		b.Write(gateway.Marshal(data)) // JSON has no line breaks
		b.WriteString("\n\n")
	}
	a := news.Activation
	if news.Begun {
		begun := activationSummaryOf(a)
		begun.ending, begun.StatusCode = nil, nil
		add("begun", begun)
	}
	for i, line := range news.Lines {
		add("line", lineDocument{a.ID, a.Action.Entity, news.First + i, line})
	}
	if news.Ended {
		add("ended", activationSummaryOf(a))
	}
	return b.Bytes()
}
