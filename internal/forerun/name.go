package forerun

import "strings"

// Name is the fully qualified name of an entity: /namespace/[package/]name.
type Name struct {
	Namespace string
	Package   string // empty for an entity outside any package
	Entity    string
}

// maxNameLength is OpenWhisk's limit on one segment of a name.
const maxNameLength = 256

// isSegment reports whether s matches OpenWhisk's pattern \w|\w[\w@ .-]*[\w@.-]+.
func isSegment(s string) bool {
	if s == "" || !isWord(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !isWord(c) && c != '@' && c != '.' && c != '-' && (c != ' ' || i == len(s)-1) {
			return false
		}
	}
	return true
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// CheckSegment reports whether s can be a namespace, a package or an entity name.
func CheckSegment(s string) error {
	if len(s) > maxNameLength {
		return Errorf(TooLarge, "name", "The name is %d characters long; at most %d are allowed.", len(s), maxNameLength)
	}
	if !isSegment(s) {
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
