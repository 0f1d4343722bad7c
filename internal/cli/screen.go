package cli

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// data is where a command writes what it was asked for.
func data(cmd *cobra.Command) io.Writer { return Screen(cmd.OutOrStdout()) }

// words is where a command says what it did.
func words(cmd *cobra.Command) io.Writer { return Screen(cmd.ErrOrStderr()) }

// Screen returns a writer for what others wrote: where it goes to a terminal, that cannot command it.
func Screen(w io.Writer) io.Writer {
	if isTerminal(w) {
		return screen{w}
	}
	return w
}

// screen is a terminal on which control characters are seen.
type screen struct{ io.Writer }

// Write implements io.Writer.
func (s screen) Write(b []byte) (int, error) {
	if _, err := s.Writer.Write(visible(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// visible writes control characters as JSON does, which stays the same JSON; but tabs and ends of lines.
func visible(b []byte) (text []byte) {
	for _, r := range string(b) {
		if unicode.IsControl(r) && r != '\t' && r != '\n' {
			text = fmt.Appendf(text, `\u%04x`, r)
		} else {
			text = utf8.AppendRune(text, r)
		}
	}
	return text
}
