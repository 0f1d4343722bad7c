package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// isServers tells the annotations that a server writes by itself.
func isServers(key string) bool {
	return key == "exec" || key == "provide-api-key" || key == "binding"
}

// sameAction reports whether a PUT would change nothing. inherited are the parameters of the action's package.
func sameAction(put *whisk.ActionPut, is *whisk.Action, inherited func() []forerun.KeyValue) bool {
	return sameExec(put.Exec, &is.Exec, is.Namespace) &&
		(put.Exec.Kind == "sequence" || sameParameters(put.Parameters, is.Parameters, inherited)) &&
		sameAnnotations(put.Annotations, is.Annotations) && sameLimits(put.Limits, is.Limits)
}

// sameParameters knows that a server shows an action with the parameters that it inherits.
func sameParameters(put, is []forerun.KeyValue, inherited func() []forerun.KeyValue) bool {
	if sameValues(put, is) {
		return true
	}
	all := inherited()
	for _, kv := range put {
		all = with(all, kv)
	}
	return sameValues(all, is)
}

func sameExec(put, is *whisk.Exec, namespace string) bool {
	if !sameKind(put.Kind, is.Kind) || put.Main != is.Main && is.Main != "main" {
		return false
	}
	if put.Kind == "sequence" {
		return slices.EqualFunc(put.Components, is.Components, func(x, y string) bool { return x == ownName(y, namespace) })
	}
	return put.Code != nil && is.Code != nil && *put.Code == *is.Code
}

// sameKind knows that a server replaces "python:default" by a kind of its choice, and the kinds of Go by native.
func sameKind(put, is string) bool {
	language, isDefault := strings.CutSuffix(put, ":default")
	return put == is || isDefault && strings.HasPrefix(is, language+":") || (put == "go" || strings.HasPrefix(put, "go:")) && is == "native"
}

// ownName writes "_" for the namespace of an entity in a fully qualified name.
func ownName(name, namespace string) string {
	own, _, _ := strings.Cut(namespace, "/")
	name = "/" + strings.TrimPrefix(name, "/")
	if rest, ok := strings.CutPrefix(name, "/"+own+"/"); ok {
		return "/_/" + rest
	}
	return name
}

func sameLimits(put *whisk.LimitsPut, is forerun.Limits) bool {
	return *put.Timeout == is.Timeout && *put.Memory == is.Memory && *put.Logs == is.Logs && *put.Concurrency == is.Concurrency
}

func sameAnnotations(put, is []forerun.KeyValue) bool {
	return sameValues(put, slices.DeleteFunc(slices.Clone(is), func(kv forerun.KeyValue) bool {
		return isServers(kv.Key) && forerun.Lookup(put, kv.Key) == nil
	}))
}

// sameValues compares without regard to order or to how JSON is written.
func sameValues(x, y []forerun.KeyValue) bool { return len(x) == len(y) && within(x, y) }

// within reports whether all of x is in y.
func within(x, y []forerun.KeyValue) bool {
	for _, kv := range x {
		other := forerun.Find(y, kv.Key)
		if other == nil || other.Init != kv.Init || other.Secret != kv.Secret || !sameJSON(kv.Value, other.Value) {
			return false
		}
	}
	return true
}

func sameJSON(x, y json.RawMessage) bool {
	if bytes.Equal(x, y) {
		return true
	}
	// The canonical form is that of objects, so each value is made one.
	a, errA := canonical.Object(slices.Concat([]byte(`{"v":`), x, []byte("}")))
	b, errB := canonical.Object(slices.Concat([]byte(`{"v":`), y, []byte("}")))
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// gone lists the annotations that are there and no longer wanted.
func gone(put, is []forerun.KeyValue) (keys []string) {
	for _, kv := range is {
		if !isServers(kv.Key) && forerun.Lookup(put, kv.Key) == nil {
			keys = append(keys, kv.Key)
		}
	}
	return keys
}

// samePackage knows that a binding shows the parameters of its package too.
func samePackage(put *whisk.PackagePut, is *whisk.Package) bool {
	bound := is.Binding.Name != ""
	if bound != (put.Binding != nil) || *put.Publish != is.Publish {
		return false
	}
	if !bound {
		return sameValues(put.Parameters, is.Parameters) && sameAnnotations(put.Annotations, is.Annotations)
	}
	to := ownName("/"+is.Binding.Namespace+"/"+is.Binding.Name, is.Namespace)
	return to == "/"+put.Binding.Namespace+"/"+put.Binding.Name && within(put.Parameters, is.Parameters) && within(put.Annotations, is.Annotations)
}

func sameTrigger(put *whisk.TriggerPut, is *whisk.Trigger) bool {
	return sameValues(put.Parameters, is.Parameters) && sameAnnotations(put.Annotations, is.Annotations)
}

func sameRule(put *whisk.RulePut, is *whisk.Rule) bool {
	return put.Trigger == ownName(is.Trigger.Path+"/"+is.Trigger.Name, is.Namespace) &&
		put.Action == ownName(is.Action.Path+"/"+is.Action.Name, is.Namespace) && sameAnnotations(put.Annotations, is.Annotations)
}
