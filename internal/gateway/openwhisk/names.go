package openwhisk

import (
	"net/http"
	"strings"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

// namespace is the namespace of the path, which must be the caller's own; "_" stands for it. resource is what the
// path names within it, for the error.
func (c *call) namespace(resource string) (string, error) {
	ns := c.vars.get("namespace")
	if ns == "_" {
		return c.caller.Namespace, nil
	}
	if err := checkSegment(ns, "Namespace", "The namespace contains illegal characters."); err != nil {
		return "", err
	}
	if ns != c.caller.Namespace {
		return "", forbidden(strings.TrimSuffix(ns+"/"+resource, "/"))
	}
	return ns, nil
}

// anyName is the name of the entity that the path names, in whosever namespace it is.
func (c *call) anyName() (forerun.Name, error) {
	n := forerun.Name{Namespace: c.vars.get("namespace"), Package: c.vars.get("package"), Entity: c.vars.get("name")}
	if n.Namespace == "_" {
		n.Namespace = c.caller.Namespace
	} else if err := checkSegment(n.Namespace, "Namespace", "The namespace contains illegal characters."); err != nil {
		return n, err
	}
	for _, segment := range []string{n.Package, n.Entity} {
		if segment == "" {
			continue // the router makes sure of the entity
		}
		if err := checkSegment(segment, "Name segement", "The name of the entity contains illegal characters."); err != nil {
			return n, err
		}
	}
	return n, nil
}

// name is the name of the entity that the path names, which must be in the caller's own namespace.
func (c *call) name() (forerun.Name, error) {
	n, err := c.anyName()
	if err == nil && n.Namespace != c.caller.Namespace {
		err = registry.Forbidden(n)
		if c.r.Method != http.MethodPut {
			err = c.registry.Denied(c.r.Context(), n)
		}
	}
	return n, err
}

// checkSegment puts forerun's check into OpenWhisk's words.
func checkSegment(s, field, illegal string) error {
	switch err := forerun.CheckSegment(s); {
	case err == nil:
		return nil
	case forerun.KindOf(err) == forerun.TooLarge:
		return forerun.Errorf(forerun.Invalid, s, "%s longer than allowed: %d > 256.", field, len(s))
	default:
		return forerun.Errorf(forerun.Invalid, s, "%s", illegal)
	}
}

func forbidden(resource string) error {
	return forerun.Errorf(forerun.Forbidden, resource, "The supplied authentication is not authorized to access '%s'.", resource)
}

// lacksRights is the error for a function whose token does not allow a request.
func lacksRights(resource string) error {
	return forerun.Errorf(forerun.Forbidden, resource, "The key of this function does not allow the request. Set the annotation '%s' of its action to \"read\", "+
		"\"invoke\", or true for all rights.", annotation.ProvideAPIKey)
}

// component reads a component of a sequence: "/namespace/name", "/namespace/package/name", or either without the first
// slash; the namespace "_" is the caller's.
func component(s, own string) (forerun.Name, error) {
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '/' })
	if len(parts) < 2 {
		return forerun.Name{}, malformed("The fully qualified name of the entity must contain at least the namespace and the name of the entity.")
	}
	name, err := forerun.ParseName("/"+strings.Join(parts, "/"), own)
	if err != nil {
		return forerun.Name{}, malformed("fully qualified name malformed")
	}
	return name, nil
}
