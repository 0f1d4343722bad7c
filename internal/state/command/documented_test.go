package command

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/trace"
	"forerun.dev/forerun/tools/doctest"
)

const document = "../../../docs/reference/state.md"

var update = flag.Bool("update", false, "rewrite what docs/reference/state.md says of commands")

// TestDocumentedHeld holds the table of commands that wait for the turn of a speculative function to the code.
func TestDocumentedHeld(t *testing.T) {
	want := "| command | why it waits |\n| --- | --- |\n"
	for _, h := range held {
		_, why, _ := strings.Cut(trace.Sentence(heldAs(h.why, "")), ": ")
		want += fmt.Sprintf("| %s | %s |\n", inCode(h.names, " "), why)
	}
	doctest.Part(t, document, "held", want, *update)
}

// TestDocumentedSubcommands holds the table of subcommands to the code.
func TestDocumentedSubcommands(t *testing.T) {
	want := "| command | subcommands | not there |\n| --- | --- | --- |\n"
	for _, name := range slices.Sorted(maps.Keys(subcommands)) {
		spec := table[name]
		if there := spec.Subcommands(); len(there) > 1 { // HELP alone is there of any
			want += fmt.Sprintf("| `%s` | %s | %s |\n", strings.ToUpper(name), inCode(there, ", "), inCode(spec.Absent(), ", "))
		}
	}
	doctest.Part(t, document, "subcommands", want, *update)
}

// inCode are names in capitals and code font.
func inCode(names []string, between string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + strings.ToUpper(name) + "`"
	}
	return strings.Join(quoted, between)
}
