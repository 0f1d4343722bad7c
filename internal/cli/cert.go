package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) certCommand() *cobra.Command {
	show := &cobra.Command{Use: "show", Short: "Show the certificate in force, and until when it is good", Args: between(0, 0)}
	show.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		got, err := whisk.Get[whisk.Certificate](cmd.Context(), c, whisk.CertificatePath, nil)
		return a.showCertificate(cmd, got, err)
	})
	renew := &cobra.Command{Use: "renew", Short: "Make another certificate now, or read the files of --tls-cert and --tls-key again", Args: between(0, 0)}
	renew.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		got, err := whisk.RenewCertificate(cmd.Context(), c)
		return a.showCertificate(cmd, got, err)
	})
	cmd := group("cert", "The TLS certificate of a server, for its operator", show, renew)
	cmd.Long = `Show and renew the certificate with which a server speaks TLS. The server renews it by itself at two thirds of its life, and reads the files
of --tls-cert and --tls-key when they change. The commands find the operator's key and the server as "forerun tenant" does.`
	cmd.PersistentFlags().String("operator", "", "`FILE` with the operator's key")
	return cmd
}

func (a *app) showCertificate(cmd *cobra.Command, got whisk.Document[whisk.Certificate], err error) error {
	switch {
	case err != nil:
		return err
	case a.output != asText:
		return a.show(cmd, got.Raw)
	}
	c := got.Value
	from := "from the files of --tls-cert and --tls-key"
	if c.Own {
		from = "signed by the server itself"
	}
	_, err = fmt.Fprintf(data(cmd), "names: %s\nissuer: %s (%s)\ngood from: %s\ngood until: %s\nSHA-256: %s\nSHA-256 of the authority: %s\n",
		strings.Join(c.Names, ", "), c.Issuer, from, c.NotBefore.Local().Format(time.DateTime), c.NotAfter.Local().Format(time.DateTime), c.Fingerprint, c.Authority)
	if c.Problem != "" {
		say(cmd, "the next certificate cannot be used: %s", c.Problem)
	}
	return err
}
