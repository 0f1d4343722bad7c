package annotation

import (
	"encoding/json"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// TestAPIKey: each value gives rights, and only values that say clearly which are taken.
func TestAPIKey(t *testing.T) {
	for _, c := range []struct {
		value  string
		rights forerun.Rights
		taken  bool
	}{
		{"", forerun.MayInvoke, true},
		{`"invoke"`, forerun.MayInvoke, true},
		{`"read"`, forerun.MayRead, true},
		{`"all"`, forerun.AllRights, true},
		{`true`, forerun.AllRights, true},
		{`1`, forerun.AllRights, true},
		{`false`, 0, true},
		{`0`, 0, true},
		{`null`, 0, true},
		{`""`, 0, true},
		{`"false"`, forerun.AllRights, false},
		{`"reed"`, forerun.AllRights, false},
		{`["read"]`, forerun.AllRights, false},
		{`{}`, forerun.AllRights, false},
	} {
		var kvs []forerun.KeyValue
		if c.value != "" {
			kvs = append(kvs, forerun.KeyValue{Key: ProvideAPIKey, Value: json.RawMessage(c.value)})
		}
		if rights, outside := APIKey(kvs); rights != c.rights || outside {
			t.Errorf("%s gives the rights %b, outside %v", c.value, rights, outside)
		}
		if err := Check(kvs); (err == nil) != c.taken {
			t.Errorf("%s: %v", c.value, err)
		}
	}
	outside := forerun.KeyValue{Key: apiKeyOutside, Value: json.RawMessage("true")}
	if _, ok := APIKey([]forerun.KeyValue{outside}); !ok {
		t.Error("api-key-outside is not heeded")
	}
}
