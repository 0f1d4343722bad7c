package canonical

import (
	"encoding/json"
	"testing"
)

func TestPick(t *testing.T) {
	headers := Key{Members: []string{"city", "__ow_method"}, Within: "__ow_headers", Inner: []string{"accept-language"}}
	all := Key{Members: []string{"__ow_headers"}, Within: "__ow_headers"}
	for _, c := range []struct {
		key          Key
		object, want string
	}{
		{headers, `{"city":1.0,"day":2}`, `{"city":1.0}`},
		{headers, `{}`, `{}`},
		{headers, `[1,2]`, `{}`},
		{headers, `{"__ow_headers":{"accept-language":"de","cookie":"x"},"__ow_method":"get","__ow_path":"/a","city":"<Ulm>"}`, `{"__ow_headers":{"accept-language":"de"},"__ow_method":"get","city":"<Ulm>"}`},
		{headers, `{"__ow_headers":{"cookie":"x"}}`, `{"__ow_headers":{}}`},
		{headers, `{"__ow_headers":"text"}`, `{}`},
		{headers, `{"accept-language":"de"}`, `{}`},
		{all, `{"__ow_headers":{"a":"1","b":"2"},"x":1}`, `{"__ow_headers":{"a":"1","b":"2"}}`},
		{Key{}, `{"x":1}`, `{}`},
	} {
		got, err := c.key.Pick(json.RawMessage(c.object))
		if err != nil || string(got) != c.want {
			t.Errorf("%+v of %s: %s, %v, not %s", c.key, c.object, got, err, c.want)
		}
	}
	if !headers.Has("accept-language") || headers.Has("cookie") || !all.Has("cookie") {
		t.Error("the wrong headers count")
	}
}
