package whisk

import (
	"context"
	"encoding/json"
	"net/http"
)

// CachePath is the path of what a tenant's annotated actions have of known results.
const CachePath = "namespaces/_/cache"

// CacheUse is how the cache fares for one action.
type CacheUse struct {
	Action string  `json:"action"`
	Hits   uint64  `json:"hits"`
	Misses uint64  `json:"misses"`
	Stale  uint64  `json:"stale"`
	Bypass uint64  `json:"bypass"`
	Off    uint64  `json:"off"`
	Rows   int     `json:"rows"`
	Bytes  int     `json:"bytes"`
	Saved  float64 `json:"saved"` // seconds

	StaleBytes int `json:"staleBytes"` // of these bytes, those of results of which a record was written since

	Verified  uint64 `json:"verified"`  // hits that were executed again, and agreed
	Suspended string `json:"suspended"` // no result is used, and why
}

// Advice is what was seen of an action, and what that means for its annotations.
type Advice struct {
	Action   string  `json:"action"`
	Class    string  `json:"class"`
	Count    uint64  `json:"count"`
	Followed uint64  `json:"followed"`
	Repeated uint64  `json:"repeated"`
	Current  uint64  `json:"current"`
	Took     float64 `json:"took"`  // seconds
	Saves    float64 `json:"saves"` // seconds
	Text     string  `json:"text"`
}

// CacheRow is a known result.
type CacheRow struct {
	Action  string          `json:"action"`
	Input   string          `json:"input"` // SHA-256
	Of      string          `json:"of"`
	Bytes   int             `json:"bytes"`
	Records int             `json:"records"`
	Why     string          `json:"why"`   // no invocation is answered with it, and why
	Given   json.RawMessage `json:"given"` // the input without bound parameters, if it is short
	Output  json.RawMessage `json:"output"`
}

// CacheExplanation is what would happen with an invocation now.
type CacheExplanation struct {
	Text string `json:"text"`
}

// ExplainCache tells what would happen with an invocation, without executing anything.
func ExplainCache(ctx context.Context, c *Client, action string, input any) (Document[CacheExplanation], error) {
	return fetch[Document[CacheExplanation]](ctx, c, http.MethodPost, CachePath+"/explain", nil, map[string]any{"action": action, "input": input})
}

// CachePurge says which results are to be dropped. An empty field selects all.
type CachePurge struct {
	Action string          `json:"action,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Record string          `json:"record,omitempty"`
}

// Purged is how many results were dropped.
type Purged struct {
	Purged int `json:"purged"`
}

// PurgeCache drops known results.
func PurgeCache(ctx context.Context, c *Client, p CachePurge) (Document[Purged], error) {
	return fetch[Document[Purged]](ctx, c, http.MethodPost, CachePath+"/purge", nil, p)
}

// Resumed is whether an action was suspended.
type Resumed struct {
	Resumed bool `json:"resumed"`
}

// ResumeCache has results of a suspended action be used again.
func ResumeCache(ctx context.Context, c *Client, action string) (Document[Resumed], error) {
	return fetch[Document[Resumed]](ctx, c, http.MethodPost, CachePath+"/resume", nil, map[string]string{"action": action})
}

// CacheSwitch is whether the cache is on, as the operator's API shows it.
type CacheSwitch struct {
	Started bool `json:"started"` // with --cache on
	Switch  bool `json:"switch"`  // the operator's, which is kept
	On      bool `json:"on"`      // neither has it off
}

// PutCache switches the cache. The client's root is the operator's API.
func PutCache(ctx context.Context, c *Client, on bool) (Document[CacheSwitch], error) {
	return fetch[Document[CacheSwitch]](ctx, c, http.MethodPut, "cache", nil, map[string]bool{"on": on})
}
