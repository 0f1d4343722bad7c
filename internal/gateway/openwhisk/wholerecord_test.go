package openwhisk

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// TestWholeRecord: a record is answered with all that its document has, whatever the texts hold.
func TestWholeRecord(t *testing.T) {
	const odd = "a \"quoted\" \\ <name> &\t\u2028 of \U0001f600, \x00 and \xff"
	full := &forerun.Activation{
		ID: odd, Namespace: odd, Action: forerun.Name{Namespace: odd, Package: odd, Entity: odd}, Version: odd, Subject: odd, Cause: odd,
		Start: time.UnixMilli(1), End: time.UnixMilli(12), Duration: 11 * time.Millisecond, Status: forerun.DeveloperError,
		Result: json.RawMessage(`{"error":["<",1.0]}`), Logs: []string{odd, ""},
		Annotations: []forerun.KeyValue{{Key: odd, Value: json.RawMessage(`{"a":1}`), Init: true}, {Key: "b", Secret: true}},
	}
	for name, a := range map[string]*forerun.Activation{"empty": {}, "full": full} {
		body := wholeRecord{a}.AppendJSON(nil)
		if got, want := decoded(t, body), decoded(t, gateway.Marshal(activationOf(a))); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%v\nwant\n%v", name, got, want)
		}
	}
}

func decoded(t *testing.T, data []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}
