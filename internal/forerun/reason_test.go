package forerun

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestReasonJSON: a reason is read as it was written, and so is the sentence of an older version.
func TestReasonJSON(t *testing.T) {
	stale := &Reason{Code: ReasonStaleRead, Slot: SlotName{0, "app"}, Record: "k"}
	again := NewReason(ReasonRunsAgain, Detail{Of: stale})
	again.Slot = SlotName{2, "b"}
	for _, c := range []struct {
		reason *Reason
		want   string
	}{
		{Because(ReasonPure), `{"code":"pure"}`},
		{stale, `{"code":"stale_read","slot":{"number":0,"action":"app"},"record":"k"}`},
		{again, `{"code":"runs_again","slot":{"number":2,"action":"b"},"of":{"code":"stale_read","slot":{"number":0,"action":"app"},"record":"k"}}`},
		{NewReason(ReasonConflict, Detail{Records: []string{"k", "l"}, Count: 1}), `{"code":"conflict","records":["k","l"],"count":1}`},
	} {
		got, err := json.Marshal(c.reason)
		if err != nil || string(got) != c.want {
			t.Errorf("%v: %s, %v", c.reason, got, err)
		}
		var back *Reason
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, c.reason) {
			t.Errorf("%s: %v, %v", got, back, err)
		}
	}
	var line Timeline
	if err := json.Unmarshal([]byte(`{"Slot":2,"Predicted":"a #1 gave this on the same input before"}`), &line); err != nil || line.InTurn != nil ||
		line.Predicted.Code != ReasonText || line.Predicted.Text != "a #1 gave this on the same input before" {
		t.Errorf("%+v, %v", line, err)
	}
}

func TestShownName(t *testing.T) {
	for name, want := range map[string]string{
		"trip:42":                "trip:42",
		"":                       "",
		"say \"hi\"\\":           `say \"hi\"\\`,
		"\x1b[31m\xff\u200b":     `\x1b[31m\xff\u200b`,
		"é�":                     "é�",
		strings.Repeat("é", 99):  strings.Repeat("é", 30) + "...",
		strings.Repeat("\n", 61): strings.Repeat(`\n`, 60) + "...",
	} {
		if got := ShownName(name); got != want {
			t.Errorf("%q: %s; want %s", name, got, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { ShownName("trip:42") }); n > 0 {
		t.Errorf("it allocates %v times", n)
	}
}

// TestReasonString is what golden traces have.
func TestReasonString(t *testing.T) {
	stale := &Reason{Code: ReasonStaleRead, Slot: SlotName{2, "b"}, Record: "k"}
	again := NewReason(ReasonRunsAgain, Detail{Of: stale})
	again.Slot = SlotName{1, "a"}
	for want, reason := range map[string]*Reason{
		"":     nil,
		"pure": Because(ReasonPure),
		`runs_again(a #1, stale_read(b #2, "k"))`: again,
		`conflict("k", "l", 3)`:                   NewReason(ReasonConflict, Detail{Records: []string{"k", "l"}, Count: 3}),
		"stopped(Why.)":                           NewReason(ReasonStopped, Detail{Text: "Why."}),
		"api_read(GET)":                           NewReason(ReasonAPIRead, Detail{Command: "GET"}),
	} {
		if got := reason.String(); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}
