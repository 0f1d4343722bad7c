package whisk

import (
	"context"
	"net/http"
)

// Speculation is whether workflows run ahead, as the operator's API shows it.
type Speculation struct {
	Mode     string `json:"mode"`     // the most that anybody gets, as the server was started
	Settings string `json:"settings"` // all that it was started with
	Switch   bool   `json:"switch"`   // the operator's, which is kept
	On       bool   `json:"on"`       // neither has it off
}

// SpeculationPath is its path, for a client whose root is the operator's API.
const SpeculationPath = "speculation"

// PutSpeculation lets workflows run ahead, or not.
func PutSpeculation(ctx context.Context, c *Client, on bool) (Document[Speculation], error) {
	return fetch[Document[Speculation]](ctx, c, http.MethodPut, SpeculationPath, nil, map[string]bool{"on": on})
}
