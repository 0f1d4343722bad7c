package whisk

import (
	"context"
	"net/http"
	"net/url"
)

// OffloadRoot is the root of the API about Java applications with an offload agent.
const OffloadRoot = "/offload/"

// OffloadedRoot is what came of the calls of one method.
type OffloadedRoot struct {
	Root          string           `json:"root"`
	Offloaded     int64            `json:"offloaded"`
	Local         int64            `json:"local"`
	Lost          int64            `json:"lost"`
	Repeatable    int64            `json:"repeatable"`
	SentBytes     int64            `json:"sentBytes"`
	ReceivedBytes int64            `json:"receivedBytes"`
	CPUHereNanos  int64            `json:"cpuHereNanos"`
	CPUThereNanos int64            `json:"cpuThereNanos"`
	Refused       string           `json:"refused"`
	LastLocal     string           `json:"lastLocal"`
	Exchanges     map[string]int64 `json:"exchanges"`
}

// Application is a Java application with an agent.
type Application struct {
	Name      string          `json:"name"`
	Mode      string          `json:"mode"` // on or off
	Processes int             `json:"processes"`
	Instances int             `json:"instances"`
	Roots     []OffloadedRoot `json:"roots"`
}

// Applications lists a tenant's applications.
func Applications(ctx context.Context, c *Client) ([]Document[Application], error) {
	return List[Application](ctx, c.At(OffloadRoot), "applications", nil)
}

// GetApplication reads one.
func GetApplication(ctx context.Context, c *Client, name string) (Document[Application], error) {
	return Get[Application](ctx, c.At(OffloadRoot), "applications/"+url.PathEscape(name), nil)
}

// PutApplicationMode has an application's calls run as functions, or not: "on" or "off".
func PutApplicationMode(ctx context.Context, c *Client, name, mode string) (Document[Application], error) {
	return fetch[Document[Application]](ctx, c.At(OffloadRoot), http.MethodPut, "applications/"+url.PathEscape(name)+"/mode", nil, map[string]string{"mode": mode})
}
