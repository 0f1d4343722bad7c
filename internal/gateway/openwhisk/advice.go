package openwhisk

import (
	"fmt"
	"net/http"
	"strings"

	"forerun.dev/forerun/internal/behaviour"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/trace"
)

// advice is what was seen of an action, and what that means for its annotations.
type advice struct {
	Action    string          `json:"action"`
	Class     behaviour.Class `json:"class"`
	Annotated bool            `json:"annotated"` // its results are kept
	Count     uint64          `json:"count"`     // executions
	Followed  uint64          `json:"followed"`  // of these
	Repeated  uint64          `json:"repeated"`  // of the followed ones, on an input that was seen lately
	Current   uint64          `json:"current"`   // of the repeated ones, that read what the earlier one had read
	Took      float64         `json:"took"`      // seconds, mean
	CPU       float64         `json:"cpu"`       // seconds of the processors, mean; 0: that is not known
	Saves     float64         `json:"saves"`     // seconds that results would have saved, about
	SavesCPU  float64         `json:"savesCpu"`  // seconds of the processors that results would have saved, about
	Why       string          `json:"why,omitempty"`
	Unneeded  []string        `json:"unneeded,omitempty"` // members of the input that changed alone, and changed nothing
	Text      string          `json:"text"`
}

func adviceOf(a *controller.Advice) advice {
	x := advice{
		Action: a.Home.Action, Class: a.Class, Annotated: a.Annotated, Count: a.Count, Followed: a.Followed, Repeated: a.Repeated, Current: a.Current,
		Took: a.Took.Seconds(), CPU: a.CPU.Seconds(), Why: trace.Sentence(a.Why), Unneeded: a.Unneeded, Text: advise(a),
	}
	if a.Followed > 0 && a.Why == nil {
		answered := float64(a.Current) * max(1, float64(a.Count)/float64(a.Followed))
		x.Saves, x.SavesCPU = answered*x.Took, answered*x.CPU
	}
	return x
}

// advise says which annotation fits, as far as was seen.
func advise(a *controller.Advice) string {
	switch {
	case a.Followed == 0:
		return fmt.Sprintf("nothing was seen yet: its first %d executions are looked at, then one in %d", behaviour.WatchFirst, behaviour.WatchEvery)
	case a.Class == behaviour.Environmental:
		return "set no annotation: it gave two outputs on the same input and records"
	case a.Why != nil && a.Class == behaviour.OutsideWorld && a.Why.Code == "read_from_hosts":
		return "set state_cache and cache-ttl, if an answer of its hosts may be that old"
	case a.Why != nil:
		return "no result can stand for it: " + trace.Sentence(a.Why)
	}
	text := "set state_cache, unless its output depends on the time, chance, the environment, or what its process remembers"
	if a.Annotated {
		text = "it is annotated, and nothing was seen against that"
	}
	if len(a.Unneeded) > 0 {
		text += fmt.Sprintf("; %s never mattered: name the other members in cache-key", strings.Join(quotedAll(a.Unneeded), ", "))
	}
	return text
}

func quotedAll(names []string) []string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return quoted
}

// cacheAdvice answers GET .../cache/advice.
func (a *API) cacheAdvice(c *call) error {
	namespace, err := c.namespace("cache")
	if err != nil {
		return err
	}
	action, err := a.queriedAction(c)
	if err != nil {
		return err
	}
	list := []advice{}
	for _, known := range a.Controller.Advice(c.r.Context(), namespace, action) {
		list = append(list, adviceOf(&known))
	}
	gateway.WriteJSON(c.w, http.StatusOK, list)
	return nil
}
