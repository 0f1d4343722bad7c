package whisk

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// Backup begins to read a backup of the server, for a client whose root is the operator's API.
func Backup(ctx context.Context, c *Client) (io.ReadCloser, error) {
	const path = "backup"
	request, err := c.request(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 {
		return response.Body, nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, &url.Error{Op: http.MethodGet, URL: request.URL.String(), Err: err}
	}
	return nil, c.refusal(&Answer{Status: response.StatusCode, Body: content}, http.MethodGet, path)
}
