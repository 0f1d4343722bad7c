package cli

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Show who used which key for what on a server, for its operator", Args: between(0, 0)}
	cmd.Long = `Show the audit log of a server, the newest entry last: failures to authenticate, requests of the operator, and changes of actions,
packages, triggers and rules. The command finds the operator's key and the server as "forerun tenant" does.`
	cmd.Flags().String("operator", "", "`FILE` with the operator's key")
	since := cmd.Flags().Duration("since", 0, "only entries of this last `TIME`, like 24h")
	limit := cmd.Flags().Int("limit", 100, "at most `N` entries, the last ones")
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		query := url.Values{"limit": {strconv.Itoa(*limit)}}
		if *since > 0 {
			query.Set("since", time.Now().Add(-*since).UTC().Format(time.RFC3339))
		}
		entries, err := whisk.List[whisk.AuditEntry](cmd.Context(), c, whisk.AuditPath, query)
		if err != nil {
			return err
		}
		return list(a, cmd, entries, columns[whisk.AuditEntry]{
			[]string{"time", "who", "namespace", "action", "object", "status", "from"},
			func(e *whisk.AuditEntry) []string {
				status := strconv.Itoa(e.Status)
				if e.LeftOut > 0 {
					status += " (" + strconv.Itoa(e.LeftOut) + " before it not shown)"
				}
				from := e.Peer
				if e.Forwarded != "" { // the peer may be anyone
					from = e.Forwarded + " via " + from
				}
				return []string{e.Time.Local().Format(time.DateTime), e.Who, e.Namespace, e.Action, strings.TrimSpace(e.Object + " " + e.Detail), status, from}
			},
		})
	})
	return cmd
}
