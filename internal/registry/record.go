package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Names of records. A segment of a name holds no slash, so none of these can be taken for another.
//
//	action/NAMESPACE/PACKAGE/NAME       metadata; PACKAGE may be empty
//	code/NAMESPACE/PACKAGE/NAME         code, if any
//	entity/NAMESPACE/NAME               a package, trigger or rule
//	package/NAMESPACE/TIME/NAME         empty: the namespace's packages in the order of their updates; so are trigger and rule
//	members/NAMESPACE/PACKAGE           empty: its version changes with every action that is made in the package
//	recent/NAMESPACE//TIME/PACKAGE/NAME empty: the namespace's actions in the order of their updates
//	recent/NAMESPACE/PACKAGE/TIME//NAME empty: the same of one package
//	tenant/NAMESPACE                    a tenant
//	key/UUID                            one of its keys
//	gone/NAMESPACE                      a tenant was deleted, and what it had is not all erased yet
//	timer/NAMESPACE/TRIGGER              the timer of a trigger
//	timers/NAMESPACE/                   empty: its version changes with every timer that is made
//	in-turn                             empty: the operator has switched speculation off
//
// entityRecords are the kinds of records that a namespace's entities have.
func entityRecords() []string {
	return []string{"action", "code", "recent", "entity", string(Packages), string(Triggers), string(Rules), "members", "timer", "timers"}
}

func actionRecord(n forerun.Name) string { return "action/" + path(n) }
func codeRecord(n forerun.Name) string   { return "code/" + path(n) }

func entityRecord(n forerun.Name) string { return "entity/" + n.Namespace + "/" + n.Entity }

// membersRecord is that of the package that an action is in.
func membersRecord(action forerun.Name) string {
	return "members/" + action.Namespace + "/" + action.Package
}

func tenantRecord(namespace string) string { return "tenant/" + namespace }
func goneRecord(namespace string) string   { return "gone/" + namespace }

func uuidOfRecord(record string) (string, bool)      { return strings.CutPrefix(record, "key/") }
func namespaceOfTenant(record string) (string, bool) { return strings.CutPrefix(record, "tenant/") }

func path(n forerun.Name) string { return n.Namespace + "/" + n.Package + "/" + n.Entity }

// Owner finds the tenant to whom a record belongs, and the part of what is stored that it is of; no tenant if it is the
// operator's. ok is false for records of other spaces.
func Owner(in, record []byte) (namespace []byte, part state.Part, ok bool) {
	if string(in) != space {
		return nil, 0, false
	}
	kind, rest, _ := bytes.Cut(record, []byte("/"))
	namespace, _, _ = bytes.Cut(rest, []byte("/"))
	switch string(kind) {
	case "tenant", "key", "gone", "in-turn":
		return nil, 0, true
	case "code":
		return namespace, state.Code, true
	}
	return namespace, state.Entities, true
}

// actionOfRecord is the inverse of actionRecord and codeRecord.
func actionOfRecord(record string) (forerun.Name, bool) {
	parts := strings.Split(record, "/")
	if len(parts) != 4 || (parts[0] != "action" && parts[0] != "code") {
		return forerun.Name{}, false
	}
	return forerun.Name{Namespace: parts[1], Package: parts[2], Entity: parts[3]}, true
}

// entityOfRecord is the inverse of entityRecord.
func entityOfRecord(record string) (forerun.Name, bool) {
	parts := strings.Split(record, "/")
	if len(parts) != 3 || parts[0] != "entity" {
		return forerun.Name{}, false
	}
	return forerun.Name{Namespace: parts[1], Entity: parts[2]}, true
}

// recentPrefix is what the names of the index records of a namespace, or of one of its packages, begin with.
func recentPrefix(namespace, pkg string) string { return "recent/" + namespace + "/" + pkg + "/" }

// recentRecords are the index records of an action that was updated at a time.
func recentRecords(n forerun.Name, updated time.Time) []string {
	stamp := fmt.Sprintf("%016x", updated.UnixNano())
	names := []string{recentPrefix(n.Namespace, "") + stamp + "/" + n.Package + "/" + n.Entity}
	if n.Package != "" {
		names = append(names, recentPrefix(n.Namespace, n.Package)+stamp+"//"+n.Entity)
	}
	return names
}

// listed is an action in the index.
type listed struct {
	name    forerun.Name
	updated time.Time
}

// actionOfRecent finds the action that an index record stands for.
func actionOfRecent(record string) (l listed, ok bool) {
	parts := strings.Split(record, "/")
	if len(parts) != 6 {
		return l, false
	}
	stamp, err := strconv.ParseInt(parts[3], 16, 64)
	return listed{forerun.Name{Namespace: parts[1], Package: parts[2] + parts[4], Entity: parts[5]}, time.Unix(0, stamp)}, err == nil
}

// metadata is an action without its code, as it is stored.
type metadata struct {
	Version     string             `json:"version"`
	Publish     bool               `json:"publish,omitempty"`
	Kind        string             `json:"kind"`
	Binary      bool               `json:"binary,omitempty"`
	Main        string             `json:"main,omitempty"`
	Components  []string           `json:"components,omitempty"`
	Parameters  []storedParameter  `json:"parameters,omitempty"`
	Annotations []forerun.KeyValue `json:"annotations,omitempty"`
	Limits      forerun.Limits     `json:"limits"`
	Updated     int64              `json:"updated"` // nanoseconds since 1970
}

func (r *Registry) encodeAction(a *forerun.Action) ([]byte, error) {
	parameters, err := r.keyring.sealAll(actionRecord(a.Name), a.Parameters)
	if err != nil {
		return nil, err
	}
	data, err := canonical.Marshal(metadata{
		Version: a.Version, Publish: a.Publish, Kind: a.Exec.Kind, Binary: a.Exec.Binary, Main: a.Exec.Main,
		Components: a.Exec.Components, Parameters: parameters, Annotations: a.Annotations, Limits: a.Limits,
		Updated: a.Updated.UnixNano(),
	})
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, a.Name.String(), "The action cannot be stored: %w", err)
	}
	return data, nil
}

func (r *Registry) decodeAction(name forerun.Name, data, code []byte) (*forerun.Action, error) {
	var m metadata
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, forerun.Errorf(forerun.Internal, name.String(), "The action's record is damaged: %w", err)
	}
	return &forerun.Action{
		Name: name, Version: m.Version, Publish: m.Publish,
		Exec:       forerun.Exec{Kind: m.Kind, Code: string(code), Binary: m.Binary, Main: m.Main, Components: m.Components},
		Parameters: r.keyring.unsealAll(actionRecord(name), name.Namespace, m.Parameters), Annotations: m.Annotations, Limits: m.Limits, Updated: time.Unix(0, m.Updated),
	}, nil
}
