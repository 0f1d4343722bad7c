// Package cli is the client half of the command line: commands, named as in
// wsk, that call OpenWhisk's REST API wherever it runs.
//
// They promise what a script needs: data goes to stdout and words go to stderr;
// -o chooses text, json or jsonl; the exit code says what sort of failure it
// was (see ExitCode); a flag counts before the environment, and that before the
// file .wskprops. An error names its cause and what to run next.
//
// The REST client is in whisk, the project file in project.
package cli

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
)

// Environment is what the commands see of the process around them.
type Environment struct {
	Getenv  func(string) string
	Home    string // the user's home folder; empty: none
	Version string // of Forerun

	OperatorFile string // where a server keeps the operator's key by default
}

// app is what all commands share: the environment and the flags that every one has.
type app struct {
	env                   Environment
	apihost, auth, output string
	ca                    string // a file
	insecure, verbose     bool
}

// readerOfNumbers is what an error names before its cause, where a flag is no number: a function of Go, and the value once more.
var readerOfNumbers = regexp.MustCompile(`strconv\.\w+: parsing ".*": `)

// Setup adds the client commands to root, and prepares root to read args, the command line without the program's name.
func Setup(root *cobra.Command, env Environment, args []string) error {
	a := &app{env: env}
	flags := root.PersistentFlags()
	flags.StringVar(&a.apihost, "apihost", "", "`HOST` of the API: a name, name:port or URL")
	flags.StringVarP(&a.auth, "auth", "u", "", "`KEY` to authenticate with, UUID:KEY")
	flags.StringVarP(&a.output, "output", "o", "text", "`FORMAT` of the output: text, json or jsonl")
	flags.StringVar(&a.ca, "ca", "", "`FILE` of certificate authorities in PEM to trust, beside the system's")
	flags.BoolVarP(&a.insecure, "insecure", "i", false, "do not check the certificate of the API's host")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say on stderr what is asked and answered")
	root.Args = func(cmd *cobra.Command, args []string) error { return noCommand(cmd, args) }
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef(cmd, "%s", readerOfNumbers.ReplaceAllString(err.Error(), ""))
	})
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(usageTemplate)
	commands := a.commands()
	markClients(commands)
	root.AddCommand(commands...)
	root.AddCommand(a.versionCommand(), completionCommand(), composeCommand(), initCommand())
	root.Version = env.Version // adds --version
	root.SetVersionTemplate("forerun {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(joinPairs(args))
	return a.completeNames(root)
}

// commands is the table of the client's commands.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.actionCommand(), a.activationCommand(), a.packageCommand(), a.triggerCommand(), a.ruleCommand(), a.namespaceCommand(),
		a.tenantCommand(), a.speculationCommand(), a.cacheCommand(), a.offloadCommand(), a.auditCommand(), a.backupCommand(), a.certCommand(), a.statusCommand(), a.listCommand(),
		a.invokeCommand(), a.logsCommand(), a.feedCommand(), a.loginCommand(), a.deployCommand(), a.undeployCommand(), a.devCommand(),
	}
}

// callsAPI marks the commands whose help shows the flags that say where the API is.
const callsAPI = "callsAPI"

func markClients(commands []*cobra.Command) {
	for _, cmd := range commands {
		cmd.Annotations = map[string]string{callsAPI: "yes"}
		markClients(cmd.Commands())
	}
}

// group makes a command that only has commands below it.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// noCommand refuses the name of a command that is not there.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if instead := absent(args[0]); instead != "" && cmd.Parent() == nil {
		return &failure{exitUsage, fmt.Sprintf("there is no command %q: %s", args[0], instead)}
	}
	for distance := 1; distance <= 2; distance++ { // the nearest first
		cmd.SuggestionsMinimumDistance = distance
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return usagef(cmd, "there is no command %q; did you mean %q?", args[0], near[0])
		}
	}
	return usagef(cmd, "there is no command %q", args[0])
}

// between checks the number of arguments.
func between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < low:
			return usagef(cmd, "an argument is missing: write %s", cmd.UseLine())
		case len(args) > high:
			return usagef(cmd, "%q is one argument too many: write %s", args[high], cmd.UseLine())
		}
		return nil
	}
}

// joinPairs rewrites "-p KEY VALUE" and its like, which take two arguments as in wsk, into one argument each that the type
// pairs reads.
func joinPairs(args []string) []string {
	flags := []string{"-p", "--param", "-a", "--annotation", "-F", "--feed-param", "-T", "--trigger-param", "--env", "--secret"}
	var joined []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return append(joined, args[i:]...)
		case i+2 < len(args) && slices.Contains(flags, args[i]):
			joined = append(joined, args[i], quotePair(args[i+1], args[i+2]))
			i += 2
		default:
			joined = append(joined, args[i])
		}
	}
	return joined
}
