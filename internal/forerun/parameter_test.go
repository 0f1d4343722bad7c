package forerun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	parameters := []KeyValue{
		{Key: "TEXT", Value: []byte(`"a\u00e9 b"`), Init: true},
		{Key: "EMPTY", Value: []byte(`""`), Init: true},
		{Key: "NUMBER", Value: []byte(`1.50`), Init: true},
		{Key: "BOOLEAN", Value: []byte(`true`), Init: true},
		{Key: "NULL", Value: []byte(`null`), Init: true},
		{Key: "OBJECT", Value: []byte(`{"a": [1, "<"]}`), Init: true},
		Hide("SECRET", []byte(`"s"`), true),
		Hide("argument", []byte(`"s"`), false),
		{Key: "plain", Value: []byte(`1`)},
	}
	want := map[string]string{
		"TEXT": "aé b", "EMPTY": "", "NUMBER": "1.50", "BOOLEAN": "true", "NULL": "null", "OBJECT": `{"a":[1,"<"]}`, "SECRET": "s",
	}
	if got, err := Environment(parameters); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
	if err := CheckEnvironment(parameters); err != nil {
		t.Error(err)
	}
	for _, refused := range []KeyValue{
		{Key: "a=b", Value: []byte(`""`), Init: true},
		{Key: "a\x00", Value: []byte(`""`), Init: true},
		{Key: "__OW_API_KEY", Value: []byte(`""`), Init: true},
		{Key: "a", Value: []byte(`"\u0000"`), Init: true},
		{Key: "a", Value: []byte(`"` + strings.Repeat("x", maxEnvironment) + `"`), Init: true},
		Hide("a", []byte(`"\u0000"`), true),
	} {
		if err := CheckEnvironment([]KeyValue{refused}); err == nil {
			t.Errorf("%.40q = %.40s is taken", refused.Key, refused.Value)
		}
		refused.Init = false
		if err := CheckEnvironment([]KeyValue{refused}); err != nil {
			t.Errorf("as an argument: %v", err)
		}
	}
}

// TestHiddenStaysHidden: no way of printing an action shows a secret.
func TestHiddenStaysHidden(t *testing.T) {
	kv := Hide("TOKEN", []byte(`"hunter2"`), true)
	a := &Action{Parameters: []KeyValue{kv}}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "action", a, "hidden", kv.Hidden, "kv", kv)
	document, err := json.Marshal(kv)
	if err != nil || string(document) != `{"key":"TOKEN","value":null,"init":true,"secret":true}` {
		t.Errorf("the document is %s (%v)", document, err)
	}
	for _, text := range []string{
		fmt.Sprint(kv), fmt.Sprintf("%+v", kv), fmt.Sprintf("%#v", kv), fmt.Sprintf("%v %+v %#v %s", kv.Hidden, kv.Hidden, kv.Hidden, kv.Hidden),
		fmt.Sprintf("%#v", *a), log.String(),
	} {
		if strings.Contains(text, "hunter2") {
			t.Error(text)
		}
	}
}
