package whisk

import (
	"context"
	"net/http"
	"net/url"
)

// Tenant is a tenant, as the operator's API shows it.
type Tenant struct {
	Namespace string         `json:"namespace"`
	Created   int64          `json:"created"` // milliseconds since 1970; 0: not known
	Auth      string         `json:"auth"`    // the key, if it was just made
	Limits    map[string]int `json:"limits"`
	Stored    struct {
		Total int64 `json:"total"` // bytes
	} `json:"stored"`
}

// TenantPut is the body of a PUT of a tenant: a quota that it does not name stays as it was.
type TenantPut struct {
	Quotas map[string]int `json:"quotas,omitempty"`
}

// TenantPath is the path of a tenant, for a client whose root is the operator's API.
func TenantPath(name string) string { return "tenants/" + url.PathEscape(name) }

// RotateTenant makes the keys of a tenant void and returns it with a new one.
func RotateTenant(ctx context.Context, c *Client, name string) (Document[Tenant], error) {
	return fetch[Document[Tenant]](ctx, c, http.MethodPost, TenantPath(name)+"/rotate", nil, nil)
}
