package cli

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/cli/waterfall"
	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/trace"
)

// traceWidth is the width of the bars, in characters, where what is written goes to no terminal.
const traceWidth = 60

// leastTrace is the least on a terminal.
const leastTrace = 20

// barsWidth is that of the bars: less than half of a terminal's, as names and reasons have the rest.
func barsWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return traceWidth
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return traceWidth
	}
	return max(leastTrace, int(size.Col)*2/5)
}

// tracedActivation is a record with its trace, as the server shows it.
type tracedActivation struct {
	whisk.Activation
	Trace trace.Record `json:"trace"`
}

func (a *app) activationTrace() *cobra.Command {
	cmd := &cobra.Command{
		Use: "trace (ID | --last)", Short: "Draw when each part of an invocation ran, and what was speculative", Args: between(0, 1),
		Long: `Draw when each part of an invocation ran, and what was speculative. --last is the newest invocation, with all its parts.

Each line is an activation: _ a workflow lasts, . it waits, = it runs in order, > it runs speculatively, - it has ended and its turn has
not come, x it was squashed, * it was not executed, since its output was known. #2 in a reason is line 2. A name without a number has
no line here: it never ran, or only a part of its workflow is traced.

The last line compares the invocation with the time that its functions take in order. That is an estimate: each function counts with at
most the time that it took by itself. There is none for branches or calls that run at the same time.`,
	}
	last := lastFlag(cmd.Flags())
	svg := outFileFlag(cmd.Flags(), "svg", "write a picture to `FILE`")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		path, err := activationPath(cmd.Context(), c, *last, args)
		if err == nil && *last {
			path, err = outermost(cmd.Context(), c, path)
		}
		if err != nil {
			return err
		}
		document, err := whisk.Get[trace.Trace](cmd.Context(), c, path+"/trace", nil)
		traced := &document.Value
		if err == nil && *svg != "" {
			err = a.drawSVG(cmd, traced, string(*svg))
		}
		switch {
		case err != nil:
			return err
		case a.output != asText:
			return a.showLine(cmd, "", traced)
		case *svg != "":
			return nil
		}
		return waterfall.Text(cmd.OutOrStdout(), traced, barsWidth(cmd.OutOrStdout()), isTerminal(cmd.OutOrStdout()) && a.env.Getenv("NO_COLOR") == "")
	})
	return cmd
}

// outermost finds the path of what an activation is a part of at last: of a workflow, not of a trigger, which has no trace. What has no
// record yet is left out.
func outermost(ctx context.Context, c *whisk.Client, path string) (string, error) {
	for above := path; ; {
		record, err := whisk.Get[tracedActivation](ctx, c, above, url.Values{"trace": {"true"}})
		switch {
		case whisk.IsStatus(err, http.StatusNotFound):
			return path, nil
		case err != nil:
			return "", err
		case record.Value.Trace.Queued == 0:
			return path, nil
		}
		path = above
		if record.Value.Cause == "" {
			return path, nil
		}
		above = whisk.Collection("_", whisk.Activations, "") + "/" + url.PathEscape(record.Value.Cause)
	}
}

func (a *app) drawSVG(cmd *cobra.Command, traced *trace.Trace, name string) error {
	file, err := os.Create(name)
	if err != nil {
		return wrongf("the picture cannot be written: %v", err)
	}
	defer file.Close()
	if err := waterfall.SVG(file, traced); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	say(cmd, "ok: wrote %s", name)
	return nil
}

// isTerminal tells whether what is written goes to a terminal.
func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
