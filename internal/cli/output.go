package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/cli/whisk"
)

// The output formats.
const (
	asText  = "text"
	asJSON  = "json"
	asLines = "jsonl"
)

// checkOutput refuses a format that is not there. Commands call it before they do anything.
func (a *app) checkOutput() error {
	switch a.output {
	case asText, asJSON, asLines:
		return nil
	}
	return wrongf("--output %q is not a format: write text, json or jsonl", a.output)
}

// say writes words for the person.
func say(cmd *cobra.Command, format string, args ...any) {
	fmt.Fprintf(words(cmd), format+"\n", args...)
}

// sayAll writes sentences for the person, each on a line.
func sayAll(cmd *cobra.Command, sentences []string) {
	for _, s := range sentences {
		say(cmd, "%s", s)
	}
}

// show writes one document: on a line of its own as jsonl, else with indentation.
func (a *app) show(cmd *cobra.Command, document json.RawMessage) error {
	var b bytes.Buffer
	var err error
	if a.output == asLines {
		err = json.Compact(&b, document)
	} else {
		err = json.Indent(&b, document, "", "  ")
	}
	if err != nil {
		return fmt.Errorf("the server's answer is not JSON: %w", err)
	}
	b.WriteByte('\n')
	_, err = data(cmd).Write(b.Bytes())
	return err
}

// showLine writes a line as text, and otherwise a document.
func (a *app) showLine(cmd *cobra.Command, text string, document any) error {
	if a.output == asText {
		_, err := fmt.Fprintln(data(cmd), text)
		return err
	}
	encoded, err := canonical.Marshal(document)
	if err != nil {
		return err
	}
	return a.show(cmd, encoded)
}

// columns are the heads of a table and what stands below them for one document.
type columns[T any] struct {
	heads []string
	cells func(*T) []string
}

// list writes documents: as a table, as one JSON array, or one on each line.
func list[T any](a *app, cmd *cobra.Command, documents []whisk.Document[T], c columns[T]) error {
	switch a.output {
	case asText:
		return c.write(data(cmd), documents)
	case asLines:
		for _, d := range documents {
			if err := a.show(cmd, d.Raw); err != nil {
				return err
			}
		}
		return nil
	}
	all := make([]json.RawMessage, len(documents))
	for i, d := range documents {
		all[i] = d.Raw
	}
	array, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return a.show(cmd, array)
}

func (c columns[T]) write(w io.Writer, documents []whisk.Document[T]) error {
	if len(documents) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.ToUpper(strings.Join(c.heads, "\t")))
	for i := range documents {
		fmt.Fprintln(table, strings.Join(c.cells(&documents[i].Value), "\t"))
	}
	return table.Flush()
}

// field shows one member of a document, or all of it when no name is given.
func (a *app) field(cmd *cobra.Command, document json.RawMessage, name string) error {
	if name == "" {
		return a.show(cmd, document)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil {
		return fmt.Errorf("the server's answer is not a JSON object: %w", err)
	}
	value, ok := members[name]
	if !ok {
		return wrongf("there is no field %q: leave it out to see all of them", name)
	}
	return a.show(cmd, value)
}

// moment shows milliseconds since 1970.
func moment(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format("2006-01-02 15:04:05")
}
