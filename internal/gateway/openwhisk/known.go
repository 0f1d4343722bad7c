package openwhisk

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/memo"
	"forerun.dev/forerun/internal/trace"
)

// cacheUse is how the cache fares for one action.
type cacheUse struct {
	Action string  `json:"action"` // empty: all actions that are not counted one by one
	Hits   uint64  `json:"hits"`
	Misses uint64  `json:"misses"`
	Stale  uint64  `json:"stale"`
	Bypass uint64  `json:"bypass"`
	Off    uint64  `json:"off"`
	Rows   int     `json:"rows"`
	Bytes  int     `json:"bytes"`
	Saved  float64 `json:"saved"` // seconds

	StaleBytes int `json:"staleBytes"` // of these bytes, those of results of which a record was written since

	Verified  uint64 `json:"verified"`            // hits that were executed again, and agreed
	Suspended string `json:"suspended,omitempty"` // no result is used, and why
}

// cacheStats answers GET .../cache.
func (a *API) cacheStats(c *call) error {
	namespace, err := c.namespace("cache")
	if err != nil {
		return err
	}
	list := []cacheUse{}
	for _, u := range a.Controller.CacheUses(c.r.Context(), namespace) {
		list = append(list, cacheUse{
			Action: u.Action, Rows: u.Rows, Bytes: u.Bytes, StaleBytes: u.Stale, Saved: u.Saved.Seconds(),
			Hits: u.Outcomes[forerun.CacheHit], Misses: u.Outcomes[forerun.CacheMiss], Stale: u.Outcomes[forerun.CacheStale],
			Bypass: u.Outcomes[forerun.CacheBypass], Off: u.Outcomes[forerun.CacheOff],
			Verified: u.Verified, Suspended: trace.Sentence(u.Suspended),
		})
	}
	gateway.WriteJSON(c.w, http.StatusOK, list)
	return nil
}

// keptRow is a result that is kept.
type keptRow struct {
	Action  string               `json:"action"`
	Input   string               `json:"input"` // SHA-256 of the input as it was delivered
	Of      forerun.ActivationID `json:"of"`    // the execution that gave it
	Bytes   int                  `json:"bytes"`
	Records int                  `json:"records"`         // that the execution read
	Stale   bool                 `json:"stale,omitempty"` // one of them was written since
	Why     string               `json:"why,omitempty"`   // no invocation is answered with it, and why
	Until   int64                `json:"until,omitempty"` // milliseconds since 1970: from then on none is
	Given   json.RawMessage      `json:"given,omitempty"` // that input without bound parameters, if it is short
	Output  json.RawMessage      `json:"output,omitempty"`
	Reads   []forerun.Checked    `json:"reads,omitempty"`
}

func keptRowOf(k *memo.Kept, show bool) keptRow {
	row := keptRow{
		Action: k.Row.Home.Action, Input: hex.EncodeToString(k.Input[:]), Of: k.Row.By, Bytes: k.Bytes, Stale: k.Stale, Records: len(k.Row.Reads),
	}
	if !k.Row.Stands() {
		row.Why = trace.Sentence(k.Row.Why)
	}
	if !k.Row.Until.IsZero() {
		row.Until = k.Row.Until.UnixMilli()
	}
	if show {
		row.Given, row.Output = k.Row.Input, k.Row.Output
		for _, read := range k.Row.Reads {
			row.Reads = append(row.Reads, forerun.Checked{Record: forerun.ShownName(read.Key.Name), Version: read.Version})
		}
	}
	return row
}

// queriedAction is the name of the tenant's action that a request asks about; empty if it names none.
func (a *API) queriedAction(c *call) (string, error) {
	text := c.query.Get("action")
	if text == "" {
		return "", nil
	}
	found, err := a.ownAction(c, text)
	if err != nil {
		return "", err
	}
	return found.FoundAs(), nil
}

// cacheRows answers GET .../cache/rows.
func (a *API) cacheRows(c *call) error {
	namespace, err := c.namespace("cache")
	if err != nil {
		return err
	}
	skip, limit, err := c.page("cache")
	if err != nil {
		return err
	}
	show, err := c.flag("show", false)
	if err != nil {
		return err
	}
	action, err := a.queriedAction(c)
	if err != nil {
		return err
	}
	rows := a.Controller.KeptRows(c.r.Context(), namespace, action)
	rows = rows[min(skip, len(rows)):]
	list := []keptRow{}
	for i := range rows[:min(limit, len(rows))] {
		list = append(list, keptRowOf(&rows[i], show))
	}
	gateway.WriteJSON(c.w, http.StatusOK, list)
	return nil
}

// ownAction finds an action as the caller would call it.
func (a *API) ownAction(c *call, text string) (*forerun.Action, error) {
	name, err := forerun.ParseName(text, c.caller.Namespace)
	if err != nil {
		return nil, err
	}
	action, err := a.Registry.Resolve(c.r.Context(), name, c.caller.Namespace)
	if forerun.KindOf(err) == forerun.NotFound {
		return nil, forerun.Errorf(forerun.NotFound, "", "There is no action %s.", name)
	}
	return action, err
}

// cachePut is the body of the requests about results of an action on an input.
type cachePut struct {
	Action string          `json:"action"`
	Input  json.RawMessage `json:"input"`
	Record string          `json:"record"`
}

func (c *call) cachePut() (*cachePut, json.RawMessage, error) {
	body, err := c.body(int64(c.bounds.Payload))
	if err != nil {
		return nil, nil, err
	}
	content := new(cachePut)
	if len(body) > 0 {
		if err := c.mustBeJSON(); err != nil {
			return nil, nil, err
		}
		if err := c.decode(body, content); err != nil {
			return nil, nil, err
		}
	}
	if content.Input == nil {
		return content, nil, nil
	}
	input, err := canonical.Object(content.Input)
	if err != nil {
		return nil, nil, malformed("'input': %w", err)
	}
	return content, input, nil
}

// purgeCache answers POST .../cache/purge.
func (a *API) purgeCache(c *call) error {
	namespace, err := c.namespace("cache")
	if err != nil {
		return err
	}
	content, input, err := c.cachePut()
	if err != nil {
		return err
	}
	purge := controller.Purge{Input: input, Record: content.Record}
	switch {
	case content.Action != "":
		if purge.Action, err = a.ownAction(c, content.Action); err != nil {
			return err
		}
	case input != nil:
		return malformed("'input' needs 'action': the input of which action?")
	}
	n, err := a.Controller.PurgeRows(c.r.Context(), namespace, purge)
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, document{"purged": n})
	}
	return err
}

// resumeCache answers POST .../cache/resume.
func (a *API) resumeCache(c *call) error {
	namespace, err := c.namespace("cache")
	if err != nil {
		return err
	}
	content, _, err := c.cachePut()
	switch {
	case err != nil:
		return err
	case content.Action == "":
		return malformed("'action' is missing: which action is to be resumed?")
	}
	action, err := a.ownAction(c, content.Action)
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, document{"resumed": a.Controller.Resume(namespace, action)})
	}
	return err
}

// explanation is what would happen with an invocation now.
type explanation struct {
	Outcome forerun.CacheOutcome `json:"outcome"`
	Why     string               `json:"why"`
	Reason  *forerun.Reason      `json:"reason"`
	Of      forerun.ActivationID `json:"of,omitempty"`      // the execution whose result is kept
	Changed []versionPair        `json:"changed,omitempty"` // records that have other versions now
	Text    string               `json:"text"`
}

type versionPair struct {
	Record string          `json:"record"`
	Read   forerun.Version `json:"read"`
	Now    forerun.Version `json:"now"`
}

// explainCache answers POST .../cache/explain.
func (a *API) explainCache(c *call) error {
	namespace, err := c.namespace("cache")
	if err != nil {
		return err
	}
	content, input, err := c.cachePut()
	switch {
	case err != nil:
		return err
	case content.Action == "":
		return malformed("'action' is missing: which action is to be explained?")
	case input == nil:
		input = json.RawMessage("{}")
	}
	action, err := a.ownAction(c, content.Action)
	if err != nil {
		return err
	}
	if err := checkFinal(action, input); err != nil {
		return err
	}
	x, err := a.Controller.Explain(c.r.Context(), namespace, action, input)
	if err != nil {
		return err
	}
	answer := explanation{Outcome: x.Outcome, Why: trace.Sentence(x.Why), Reason: x.Why, Text: sentenceOf(&x)}
	if x.Row != nil {
		answer.Of = x.Row.By
	}
	for _, pair := range x.Changed {
		answer.Changed = append(answer.Changed, versionPair(pair))
	}
	gateway.WriteJSON(c.w, http.StatusOK, answer)
	return nil
}

// sentenceOf tells an explanation to a person.
func sentenceOf(x *controller.Explanation) string {
	switch {
	case x.Outcome == forerun.CacheHit && len(x.Row.Reads) == 0:
		return fmt.Sprintf("hit: %s gave this result and read no records; the next call gives it again", x.Row.By)
	case x.Outcome == forerun.CacheHit:
		return fmt.Sprintf("hit: all records that %s read have the versions that it read (%d); the next call gives its result", x.Row.By, len(x.Row.Reads))
	case len(x.Changed) == 0:
		return fmt.Sprintf("%s: %s; the next call executes", x.Outcome, trace.Sentence(x.Why))
	}
	parts := make([]string, len(x.Changed))
	for i, c := range x.Changed {
		now, read := fmt.Sprintf("is at version %d", c.Now), fmt.Sprintf("it was read at %d", c.Read)
		if c.Now == 0 {
			now = "is absent"
		}
		if c.Read == 0 {
			read = "it was absent when it was read"
		}
		parts[i] = fmt.Sprintf("record %q %s, %s", c.Record, now, read)
	}
	return "stale: " + strings.Join(parts, "; ") + "; the next call executes"
}
