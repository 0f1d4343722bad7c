package activation

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Names of records. A segment of a name holds no slash, so none of these can be taken for another. TIME is the start,
// in nanoseconds since 1970, in hex: names in order are records in order.
//
//	id/NAMESPACE/ID                    the whole record
//	time/NAMESPACE/TIME/ID             its summary if it is a large one, else empty
//	name/NAMESPACE/PACKAGE/NAME/TIME/ID empty; PACKAGE may be empty
func idKey(namespace string, id forerun.ActivationID) string {
	return "id/" + namespace + "/" + string(id)
}

// The names of what Put stores are appended to its buffer.
func appendIDKey(b []byte, a *forerun.Activation) []byte {
	return append(append(append(append(b, "id/"...), a.Namespace...), '/'), a.ID...)
}

func appendTimeKey(b []byte, a *forerun.Activation) []byte {
	b = append(append(append(b, "time/"...), a.Namespace...), '/')
	return append(append(appendStamp(b, a.Start), '/'), a.ID...)
}

func appendNameKey(b []byte, a *forerun.Activation) []byte {
	b = append(append(append(b, "name/"...), a.Namespace...), '/')
	b = append(append(append(append(b, packageOf(a)...), '/'), a.Action.Entity...), '/')
	return append(append(appendStamp(b, a.Start), '/'), a.ID...)
}

func appendAcceptedKey(b []byte, a *forerun.Activation) []byte {
	return append(append(append(append(b, acceptedPrefix...), a.Namespace...), '/'), a.ID...)
}

// Owner finds the tenant to whom a record belongs, and the part of what the tenant stores that it is of; nil if it counts for none, as the note
// of an activation that goes on. ok is false for records of other spaces than the log's.
func Owner(in, record []byte) (namespace []byte, part state.Part, ok bool) {
	if string(in) != space {
		return nil, 0, false
	}
	kind, rest, _ := bytes.Cut(record, []byte("/"))
	namespace, _, _ = bytes.Cut(rest, []byte("/"))
	switch string(kind) + "/" {
	case acceptedPrefix:
		return nil, 0, true
	case oncePrefix:
		return namespace, state.Keys, true
	}
	return namespace, state.Records, true
}

// NameOf is the name by which a query finds a record: "name" or "package/name".
func NameOf(a *forerun.Activation) string {
	if pkg := packageOf(a); pkg != "" {
		return pkg + "/" + a.Action.Entity
	}
	return a.Action.Entity
}

// packageOf is the package through which the action was named: the binding in the record's annotations, or its own.
func packageOf(a *forerun.Activation) string {
	var path string
	if binding := forerun.Lookup(a.Annotations, "binding"); binding != nil && json.Unmarshal(binding, &path) == nil {
		_, pkg, _ := strings.Cut(path, "/")
		return pkg
	}
	return a.Action.Package
}

func timePrefix(namespace string) string { return "time/" + namespace + "/" }

func namePrefix(namespace, pkg, entity string) string {
	return "name/" + namespace + "/" + pkg + "/" + entity + "/"
}

// stamp is a time in the form of the indexes.
func stamp(t time.Time) string { return string(appendStamp(nil, t)) }

// appendStamp writes a time in the form of the indexes; times before 1970 and after 2262 become those.
func appendStamp(dst []byte, t time.Time) []byte {
	const last = math.MaxInt64 / int64(time.Millisecond)
	if ms := t.UnixMilli(); ms < 0 {
		t = time.UnixMilli(0)
	} else if ms > last {
		t = time.UnixMilli(last)
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(t.UnixNano()))
	return hex.AppendEncode(dst, b[:])
}

// tailLength is that of TIME/ID.
const tailLength = 16 + 1 + 32

// tail returns what follows a prefix in both indexes: TIME/ID.
func tail(name, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	return rest, ok && len(rest) == tailLength
}
