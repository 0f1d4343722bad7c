package resp

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"forerun.dev/forerun/tools/doctest"
)

var update = flag.Bool("update", false, "rewrite what docs/reference/state.md says of settings")

// TestDocumentedSettings holds the table of settings for CONFIG SET to the code.
func TestDocumentedSettings(t *testing.T) {
	var reasons []string
	names := make(map[string][]string)
	for _, s := range new(Server).settings() {
		if names[s.fixed] == nil && s.fixed != "" {
			reasons = append(reasons, s.fixed)
		}
		names[s.fixed] = append(names[s.fixed], "`"+s.name+"`")
	}
	want := "| settings | `CONFIG SET` |\n| --- | --- |\n"
	for _, reason := range reasons {
		want += fmt.Sprintf("| %s | refused: %s |\n", strings.Join(names[reason], ", "), reason)
	}
	want += fmt.Sprintf("| %s | OK, without effect |\n", strings.Join(names[""], ", "))
	doctest.Part(t, "../../../docs/reference/state.md", "settings", want, *update)
}
