package forerun

import (
	"regexp"
	"strings"
)

// Name is the fully qualified name of an entity: /namespace/[package/]name.
type Name struct {
	Namespace string
	Package   string // empty for an entity outside any package
	Entity    string
}

// maxNameLength is OpenWhisk's limit on one segment of a name.
const maxNameLength = 256

var segment = regexp.MustCompile(`^(\w|\w[\w@ .-]*[\w@.-]+)$`)

// CheckSegment reports whether s can be a namespace, a package or an entity name.
func CheckSegment(s string) error {
	if len(s) > maxNameLength {
		return Errorf(TooLarge, "name", "The name is %d characters long; at most %d are allowed.", len(s), maxNameLength)
	}
	if !segment.MatchString(s) {
		return Errorf(Invalid, "name", "The name %q contains illegal characters: use letters, digits, '_', and inside also '@', '.', '-' and spaces.", s)
	}
	return nil
}

// ParseName reads "/ns/pkg/name", "/ns/name", "pkg/name" or "name"; a missing
// namespace, or "_", is replaced by defaultNamespace.
func ParseName(s, defaultNamespace string) (Name, error) {
	var parts []string
	n := Name{Namespace: defaultNamespace}
	if rest, ok := strings.CutPrefix(s, "/"); ok {
		parts = strings.Split(rest, "/")
		if len(parts) < 2 {
			return Name{}, Errorf(Invalid, "name", "%q is not a name: write /namespace/name or /namespace/package/name.", s)
		}
		if parts[0] != "_" {
			n.Namespace = parts[0]
		}
		parts = parts[1:]
	} else {
		parts = strings.Split(s, "/")
	}
	switch len(parts) {
	case 1:
		n.Entity = parts[0]
	case 2:
		n.Package, n.Entity = parts[0], parts[1]
	default:
		return Name{}, Errorf(Invalid, "name", "%q is not a name: it has too many segments.", s)
	}
	for _, part := range append(parts, n.Namespace) {
		if err := CheckSegment(part); err != nil {
			return Name{}, err
		}
	}
	return n, nil
}

// Path is the namespace with the package, if any: what OpenWhisk shows as an entity's "namespace".
func (n Name) Path() string {
	if n.Package == "" {
		return n.Namespace
	}
	return n.Namespace + "/" + n.Package
}

// String is the fully qualified form, with a leading slash.
func (n Name) String() string { return "/" + n.Path() + "/" + n.Entity }
