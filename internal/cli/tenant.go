package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/textfile"
)

// adminRoot begins the paths of the operator's API.
const adminRoot = "/admin/v1/"

// noLimit is how the API writes a limit that bounds nothing.
const noLimit = math.MaxInt32

func (a *app) tenantCommand() *cobra.Command {
	cmd := group("tenant", "The tenants of a server, for its operator",
		a.tenantCreate(), a.tenantUpdate(), a.tenantList(), a.tenantGet(), a.tenantRotate(),
		a.tenantSuspend(), a.tenantResume(), a.tenantDelete())
	cmd.Long = `Make, change and delete the tenants of a server. It takes the operator's key, which the server keeps in the file
"operator" of its data folder, readable for its owner alone. Name that file with --operator or FORERUN_OPERATOR; without them
it is looked for in the folder that a server has by default.`
	cmd.PersistentFlags().String("operator", "", "`FILE` with the operator's key")
	return cmd
}

// operate makes a command's function of one that calls the operator's API.
func (a *app) operate(f func(cmd *cobra.Command, c *whisk.Client, args []string) error) func(*cobra.Command, []string) error {
	return a.runWith(a.operator, f)
}

// operator makes the client of the operator's API. A tenant's key in the environment is not for it.
func (a *app) operator(cmd *cobra.Command) (*whisk.Client, error) {
	file := first(cmd.Flag("operator").Value.String(), a.env.Getenv("FORERUN_OPERATOR"), a.env.OperatorFile)
	s := settings{host: first(a.apihost, a.env.Getenv("FORERUN_APIHOST")), auth: a.auth}
	var properties map[string]string
	if s.host == "" || s.auth == "" {
		text, err := textfile.Read(file)
		if err != nil {
			return nil, wrongf("the operator's key cannot be read: %v\nName the file `operator` of the server's data folder with --operator or FORERUN_OPERATOR.", err)
		}
		properties = parseProperties(string(text))
		if properties["AUTH"] == "" && s.auth == "" {
			return nil, wrongf("%s is not an operator's key: it has no line AUTH=...\nName the file `operator` of the server's data folder with --operator or FORERUN_OPERATOR.", file)
		}
		s.host, s.auth = first(s.host, properties["APIHOST"]), first(s.auth, properties["AUTH"])
	} else {
		file = ""
	}
	var err error
	if s.ca, err = a.authorities(s.host, file, properties); err != nil {
		return nil, err
	}
	return a.clientOf(cmd, s, adminRoot)
}

// quotaFlag is a flag that sets a quota.
type quotaFlag struct{ name, quota, usage string }

func quotaFlags() []quotaFlag {
	return []quotaFlag{
		{"invocations-per-minute", "invocationsPerMinute", "`NUMBER` of invocations it may begin in a minute, or none"},
		{"concurrent-invocations", "concurrentInvocations", "`NUMBER` of its invocations that may run at once, or none"},
		{"queued-invocations", "queuedInvocations", "`NUMBER` of its invocations that may wait for a sandbox, or none"},
		{"fires-per-minute", "firesPerMinute", "`NUMBER` of times it may fire triggers in a minute, or none"},
		{"stored-actions", "storedActions", "`NUMBER` of actions it may have, or none"},
		{"stored-megabytes", "storedMegabytes", "`MIB` that all it stores may take (state, entities, code, records), or none"},
		{"timed-triggers", "timedTriggers", "`NUMBER` of triggers with a timer that it may have, or none"},
	}
}

// quotas adds the flags of quotas and of egress to a command. The returned function reads the flags that were given.
func quotas(cmd *cobra.Command) func() (*whisk.TenantPut, error) {
	for _, q := range quotaFlags() {
		cmd.Flags().String(q.name, "", q.usage+"; not given: as it is, or the server's default")
	}
	cmd.Flags().String("egress", "", "`LIST` of what its functions may reach (names, addresses and networks, with :PORT or without, comma-separated), none or any; a change ends its running functions")
	return func() (*whisk.TenantPut, error) {
		put := &whisk.TenantPut{Quotas: make(map[string]int)}
		for _, q := range quotaFlags() {
			value := cmd.Flag(q.name).Value.String()
			if value == "" {
				continue
			}
			n, err := strconv.ParseUint(value, 10, 31)
			if value == "none" {
				n, err = noLimit, nil
			}
			if err != nil {
				return nil, wrongf("--%s: %q is not a limit: write a number, or none", q.name, value)
			}
			put.Quotas[q.quota] = int(n)
		}
		if flag := cmd.Flag("egress"); flag.Changed {
			list, err := egress.Parse(flag.Value.String())
			if err != nil {
				return nil, wrongf("--egress: %v", err)
			}
			put.Egress = &list
		}
		return put, nil
	}
}

// tenantCreate shows the key: it is stored nowhere.
func (a *app) tenantCreate() *cobra.Command {
	cmd := &cobra.Command{Use: "create NAME", Short: "Make a tenant and show its key", Args: between(1, 1)}
	given := quotas(cmd)
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		put, err := given()
		if err != nil {
			return err
		}
		tenant, err := whisk.Put[whisk.Tenant](cmd.Context(), c, whisk.TenantPath(args[0]), put, false)
		return a.showKey(cmd, err, "created", args[0], tenant)
	})
	return cmd
}

func (a *app) showKey(cmd *cobra.Command, err error, done, name string, tenant whisk.Document[whisk.Tenant]) error {
	if err != nil {
		return err
	}
	say(cmd, "ok: %s tenant %s; this is its key, which is shown once", done, name)
	if a.output != asText {
		return a.show(cmd, tenant.Raw)
	}
	_, err = fmt.Fprintln(data(cmd), tenant.Value.Auth)
	return err
}

func (a *app) tenantUpdate() *cobra.Command {
	cmd := &cobra.Command{Use: "update NAME", Short: "Set quotas of a tenant, and what its functions may reach", Args: between(1, 1)}
	given := quotas(cmd)
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		put, err := given()
		if err != nil {
			return err
		}
		if len(put.Quotas) == 0 && put.Egress == nil {
			return usagef(cmd, "no quota is named: name one to change, like --stored-actions 100, or --egress")
		}
		tenant, err := whisk.Put[whisk.Tenant](cmd.Context(), c, whisk.TenantPath(args[0]), put, true)
		return a.did(cmd, err, "updated", "tenant", args[0], tenant.Raw)
	})
	return cmd
}

func (a *app) tenantList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tenants with their limits", Args: between(0, 0)}
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		tenants, err := whisk.List[whisk.Tenant](cmd.Context(), c, "tenants", nil)
		if err != nil {
			return err
		}
		return list(a, cmd, tenants, tenantColumns())
	})
	return cmd
}

func tenantColumns() columns[whisk.Tenant] {
	heads := []string{"name", "created", "suspended", "stored"}
	for _, q := range quotaFlags() {
		heads = append(heads, strings.ReplaceAll(q.name, "-", " "))
	}
	return columns[whisk.Tenant]{heads, func(t *whisk.Tenant) []string {
		cells := []string{t.Namespace, moment(t.Created), moment(t.Suspended), bytesText(t.Stored.Total)}
		for _, q := range quotaFlags() {
			text := limitText(t.Limits[q.quota])
			if share := t.Limits["storedShare"]; q.quota == "storedMegabytes" && share > 0 {
				text = strconv.Itoa(share) + "%"
			}
			cells = append(cells, text)
		}
		return cells
	}}
}

// bytesText is a number of bytes in MiB.
func bytesText(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB" }

func limitText(limit int) string {
	if limit == noLimit {
		return "none"
	}
	return strconv.Itoa(limit)
}

func (a *app) tenantGet() *cobra.Command {
	cmd := &cobra.Command{Use: "get NAME [FIELD]", Short: "Show a tenant", Args: between(1, 2)}
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		tenant, err := whisk.Get[whisk.Tenant](cmd.Context(), c, whisk.TenantPath(args[0]), nil)
		if err != nil {
			return err
		}
		return a.field(cmd, tenant.Raw, optional(args, 1))
	})
	return cmd
}

func (a *app) tenantRotate() *cobra.Command {
	cmd := &cobra.Command{Use: "rotate NAME", Short: "Make a tenant's keys void and show a new one", Args: between(1, 1)}
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		tenant, err := whisk.ChangeTenant(cmd.Context(), c, args[0], "rotate")
		return a.showKey(cmd, err, "rotated the keys of", args[0], tenant)
	})
	return cmd
}

func (a *app) tenantSuspend() *cobra.Command {
	cmd := &cobra.Command{
		Use: "suspend NAME", Short: "End all that runs for a tenant, refuse its requests, and keep what it stores", Args: between(1, 1),
	}
	cmd.Long = cmd.Short + `.

Its activations and sandboxes end, and its keys and web actions are refused, until ` + "`forerun tenant resume NAME`" + `. It stays suspended when the
server is started again.`
	return a.changesTenant(cmd, "suspend", "suspended")
}

func (a *app) tenantResume() *cobra.Command {
	cmd := &cobra.Command{Use: "resume NAME", Short: "Serve a suspended tenant again", Args: between(1, 1)}
	return a.changesTenant(cmd, "resume", "resumed")
}

// changesTenant has a command post a change of a tenant.
func (a *app) changesTenant(cmd *cobra.Command, change, done string) *cobra.Command {
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		tenant, err := whisk.ChangeTenant(cmd.Context(), c, args[0], change)
		return a.did(cmd, err, done, "tenant", args[0], tenant.Raw)
	})
	return cmd
}

func (a *app) tenantDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a tenant with all that is its: actions, records, state", Args: between(1, 1),
	}
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		err := c.Delete(cmd.Context(), whisk.TenantPath(args[0]), false)
		return a.did(cmd, err, "deleted", "tenant", args[0], nil)
	})
	return cmd
}
