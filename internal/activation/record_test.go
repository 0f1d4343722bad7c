package activation

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
)

// TestStoredForm: the stored form has every field of a record, and reads as what encoding/json writes, whatever the texts hold.
func TestStoredForm(t *testing.T) {
	full := new(forerun.Activation)
	fill(reflect.ValueOf(full).Elem(), 3)
	full.Noted = false // it is not stored
	full.Cached.Age = 0
	for name, a := range map[string]*forerun.Activation{"empty": {}, "usual": function(1), "full": full} {
		data, err := appendRecord(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		marshaled, err := canonical.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		want, err := decode(name, marshaled)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decode(name, data); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v, %v\nwant\n%+v", name, got, err, want)
		}
	}
}

// fill gives each field of a value something that is not zero; pointers beyond a depth stay nil.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 28, 9, 0, 0, 120000000, time.FixedZone("", 3600))))
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field, depth)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"a":[1,"b"]}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth)
		fill(value, depth)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("a \"quoted\" \\ <name> &\t\u2028 of \U0001f600, \x00 and \xff")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint64:
		v.SetUint(5)
	}
}
