// Package compare does the same to several servers, and tells what can be seen of it in words that are equal if it is.
//
// It promises to leave out nothing that a client, another client of the state or the outside can see, but ids, times, what depends
// on whether a sandbox was warm, or a result known (the annotation cached, and the header X-Forerun-Cache), and the headers
// X-Forerun-Speculation and X-Forerun-Speculate-Ignored, which tell the servers apart.
package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/apps"
	"forerun.dev/forerun/test/server"
)

// Side is one server with what is around it.
type Side struct {
	Server  *server.Server
	Client  *server.Client
	State   *redis.Client
	Outside *Outside

	mu                    sync.Mutex // guards the rest
	early, used, squashed int
	seen                  map[string]bool   // the ids of activations that were told
	put                   map[string]string // documents of actions
}

// NewSide makes a side of a server that was started with its door for Redis's clients, and a host outside at the address.
func NewSide(s *server.Server, address string) (*Side, error) {
	side := &Side{Server: s, Client: s.Client(16), seen: make(map[string]bool), put: make(map[string]string)}
	user, password, _ := strings.Cut(s.Auth, ":")
	side.State = redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: password, DialTimeout: time.Minute, ReadTimeout: time.Minute})
	var err error
	side.Outside, err = NewOutside(address, func(ctx context.Context, args []string) { side.command(ctx, args) })
	return side, err
}

// Close closes the connections. The server goes on.
func (s *Side) Close() {
	s.Outside.Close()
	s.Client.Close()
	_ = s.State.Close()
}

// Tally is how many slots began ahead of their turn so far, and of these used and squashed, as the answers of blocking invocations told.
func (s *Side) Tally() (early, used, squashed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.early, s.used, s.squashed
}

// Put deploys an application, but for what is deployed already.
func (s *Side) Put(ctx context.Context, app *apps.App) error {
	for _, step := range app.Before {
		if answer, err := s.Do(ctx, step); err != nil || answer.Status != http.StatusOK {
			return fmt.Errorf("%v was answered %s: %w", step, answer.Text, err)
		}
	}
	for _, action := range app.Actions {
		document, err := json.Marshal(action.Document)
		if err != nil {
			return err
		}
		if s.put[action.Name] == string(document) {
			continue
		}
		if err = s.Client.Put(ctx, action.Name, json.RawMessage(s.here(string(document)))); err != nil {
			return err
		}
		s.put[action.Name] = string(document)
	}
	for _, step := range app.Setup {
		if answer, err := s.Do(ctx, step); err != nil || answer.Status != http.StatusOK {
			return fmt.Errorf("%v was answered %s: %w", step, answer.Text, err)
		}
	}
	return nil
}

// Answer is what one step was answered.
type Answer struct {
	Text   string // status, headers and body, comparable
	IDs    []string
	Status int
	Body   []byte
}

// Do takes a step.
func (s *Side) Do(ctx context.Context, step apps.Step) (Answer, error) {
	if step.Command != nil {
		return Answer{Text: s.command(ctx, step.Command)}, nil
	}
	url := s.Server.URL + "/api/v1/namespaces/_/" + step.Path
	if strings.HasPrefix(step.Path, "/") {
		url = s.Server.URL + step.Path
	}
	r, err := http.NewRequestWithContext(ctx, step.Method, url, strings.NewReader(s.here(step.Body)))
	if err != nil {
		return Answer{}, err
	}
	r.Host = "forerun.test" // which functions for the web are told
	if !strings.HasPrefix(step.Path, "/") {
		user, password, _ := strings.Cut(s.Server.Auth, ":")
		r.SetBasicAuth(user, password)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range step.Header {
		r.Header.Set(h[0], h[1])
	}
	resp, err := s.Client.HTTP.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	s.count(resp.Header.Get("X-Forerun-Speculation"))
	text, err := s.told(body)
	answer := Answer{fmt.Sprintf("%d\n%s%s", resp.StatusCode, headers(resp.Header), text), IDs(string(body)), resp.StatusCode, body}
	if err == nil && step.Later && answer.Status == http.StatusAccepted {
		err = s.fetch(ctx, &answer)
	}
	return answer, err
}

// told is what the API answered without what is of this side, or by chance.
func (s *Side) told(body []byte) (text string, err error) {
	text = string(body)
	if whole := new(record); json.Unmarshal(body, whole) == nil && len(whole.Logs) > 0 {
		text, err = byStream(body, whole.Logs)
	}
	return Timeless(strings.ReplaceAll(text, s.Outside.URL, apps.Outside)), err
}

// fetch adds the result and the logs of an activation that the client did not wait for.
func (s *Side) fetch(ctx context.Context, answer *Answer) error {
	id := answer.IDs[0]
	if err := s.Await(ctx, id); err != nil {
		return err
	}
	for _, part := range []string{"result", "logs"} {
		status, body, err := s.Client.Do(ctx, http.MethodGet, "activations/"+id+"/"+part, nil)
		if err != nil {
			return err
		}
		text, err := s.told(body)
		if err != nil {
			return err
		}
		answer.Text += fmt.Sprintf("\n%s: %d %s", part, status, text)
	}
	return nil
}

// here is a text with what is outside of this side.
func (s *Side) here(text string) string {
	return strings.ReplaceAll(text, apps.Outside, s.Outside.URL)
}

func (s *Side) command(ctx context.Context, words []string) string {
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word
	}
	v, err := s.State.Do(ctx, args...).Result()
	return fmt.Sprintf("%v %v", v, err)
}

// ReadTally reads the header X-Forerun-Speculation: how many functions ran ahead, and how many of them were used and squashed.
func ReadTally(header string) (early, used, squashed int, err error) {
	_, err = fmt.Sscanf(header, "early=%d, used=%d, squashed=%d", &early, &used, &squashed)
	return early, used, squashed, err
}

func (s *Side) count(header string) {
	if header == "" {
		return
	}
	early, used, squashed, _ := ReadTally(header) // zeros show that it is not understood
	s.mu.Lock()
	defer s.mu.Unlock()
	s.early, s.used, s.squashed = s.early+early, s.used+used, s.squashed+squashed
}

// headers are those of an answer, one on a line, without those whose values are never the same, or need not be.
func headers(h http.Header) string {
	var lines []string
	for name, values := range h {
		switch name {
		case "X-Forerun-Speculation", "X-Forerun-Speculate-Ignored", "X-Forerun-Cache", "Date", "Content-Length", "X-Request-Id":
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s\n", name, Timeless(strings.Join(values, ", "))))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

var (
	anID     = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	aTime    = regexp.MustCompile(`"(start|end|duration|updated)":\d+`)
	aWait    = regexp.MustCompile(`\{"key":"waitTime","value":\d+\}`)
	anInit   = regexp.MustCompile(`\{"key":"initTime","value":\d+\},?`)
	aCached  = regexp.MustCompile(`\{"key":"cached","value":"[^"]*"\},?`)
	aLogTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z `)
	aRequest = regexp.MustCompile(`"code": ?"[0-9A-Z]{26}"`)
)

// Timeless is a text of the API with its ids and times left out.
func Timeless(text string) string {
	text = anID.ReplaceAllString(aRequest.ReplaceAllString(text, `"code":"*"`), "*")
	text = aCached.ReplaceAllString(anInit.ReplaceAllString(aWait.ReplaceAllString(text, "waitTime"), ""), "")
	return aLogTime.ReplaceAllString(aTime.ReplaceAllString(text, `"$1":0`), "")
}

// IDs are the ids of activations in a text.
func IDs(text string) []string { return anID.FindAllString(text, -1) }
