package whisk

import (
	"context"
	"net/http"
	"net/url"

	"forerun.dev/forerun/internal/egress"
)

// Tenant is a tenant, as the operator's API shows it.
type Tenant struct {
	Namespace string         `json:"namespace"`
	Created   int64          `json:"created"`   // milliseconds since 1970; 0: not known
	Suspended int64          `json:"suspended"` // since when; 0: it is not
	Auth      string         `json:"auth"`      // the key, if it was just made
	Limits    map[string]int `json:"limits"`
	Egress    egress.List    `json:"egress"`
	Stored    struct {
		Total int64 `json:"total"` // bytes
	} `json:"stored"`
}

// TenantPut is the body of a PUT of a tenant: what it does not name stays as it was.
type TenantPut struct {
	Quotas map[string]int `json:"quotas,omitempty"`
	Egress *egress.List   `json:"egress,omitempty"`
}

// TenantPath is the path of a tenant, for a client whose root is the operator's API.
func TenantPath(name string) string { return "tenants/" + url.PathEscape(name) }

// ChangeTenant makes a change of a tenant: "rotate" (its keys are void, and it is returned with a new one), "suspend" or "resume".
func ChangeTenant(ctx context.Context, c *Client, name, change string) (Document[Tenant], error) {
	return fetch[Document[Tenant]](ctx, c, http.MethodPost, TenantPath(name)+"/"+change, nil, nil)
}
