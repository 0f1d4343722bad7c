package whisk

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Event is an event of a namespace's feed.
type Event struct {
	Kind string `json:"-"` // begun, line, ended or gap
	ID   string `json:"-"` // for Follow
	Data []byte `json:"-"` // as it came
	Activation
	Line   string `json:"line"`
	Number int    `json:"number"` // of the line in the activation's log, from 0
}

// Feed is a connection on which a namespace's events come.
type Feed struct {
	body  io.ReadCloser
	lines *bufio.Scanner
	url   string
}

// Follow connects to a namespace's feed. query narrows it down. last is the id of the last event that was read, if the feed is to tell what
// came after it. It ends with ctx.
func Follow(ctx context.Context, c *Client, namespace string, query url.Values, last string) (*Feed, error) {
	path := Collection(namespace, "feed", "")
	request, err := c.request(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return nil, err
	}
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if kind := response.Header.Get("Content-Type"); response.StatusCode == http.StatusOK && strings.HasPrefix(kind, "text/event-stream") {
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, maxAnswer)
		return &Feed{body: response.Body, lines: lines, url: request.URL.String()}, nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, &url.Error{Op: http.MethodGet, URL: request.URL.String(), Err: err}
	}
	return nil, c.refusal(&Answer{Status: response.StatusCode, Body: content}, http.MethodGet, path)
}

// Close ends the connection.
func (f *Feed) Close() { _ = f.body.Close() }

// Next reads an event. When the connection has ended it returns a *url.Error.
func (f *Feed) Next() (e Event, err error) {
	for f.lines.Scan() {
		line := f.lines.Text()
		if line == "" && e.Kind != "" {
			return e, nil
		}
		field, value, _ := strings.Cut(line, ":") // the field of a comment is empty
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.Kind = value
		case "id":
			e.ID = value
		case "data":
			e.Data = []byte(value)
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return e, fmt.Errorf("the server's feed cannot be read: %w", err)
			}
		}
	}
	return e, &url.Error{Op: http.MethodGet, URL: f.url, Err: cmp.Or(f.lines.Err(), io.ErrUnexpectedEOF)}
}
