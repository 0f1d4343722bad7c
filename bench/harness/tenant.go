package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"forerun.dev/forerun/test/server"
)

// NewTenant has the operator make a tenant of a server, and returns its client.
func NewTenant(ctx context.Context, s *server.Server, client *server.Client, name string) (*server.Client, error) {
	properties, err := os.ReadFile(filepath.Join(s.Options.Data, "operator"))
	if err != nil {
		return nil, err
	}
	auth := regexp.MustCompile(`(?m)^AUTH=(.*):(.*)$`).FindStringSubmatch(string(properties))
	if auth == nil {
		return nil, errors.New("the operator's file has no key")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL+"/admin/v1/tenants/"+name, strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	r.SetBasicAuth(auth[1], auth[2])
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var made struct{ Auth string }
	if err := json.Unmarshal(text, &made); err != nil || made.Auth == "" {
		return nil, fmt.Errorf("a tenant could not be made: %s %s", answer.Status, text)
	}
	c := *client
	c.Auth = made.Auth
	return &c, nil
}
