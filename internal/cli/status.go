package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show a server's listeners, certificate and traffic, for its operator", Args: between(0, 0)}
	cmd.Long = `Show where a server listens, which protocols it speaks there, until when its certificate is good, and what has come since its start:
connections, requests by protocol, handshakes of QUIC and early data. The command finds the operator's key and the server as "forerun tenant" does.`
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		got, err := whisk.Get[whisk.Status](cmd.Context(), c, whisk.StatusPath, nil)
		switch {
		case err != nil:
			return err
		case a.output != asText:
			return a.show(cmd, got.Raw)
		}
		_, err = fmt.Fprint(data(cmd), describeStatus(&got.Value))
		return err
	})
	cmd.Flags().String("operator", "", "`FILE` with the operator's key")
	return cmd
}

func describeStatus(s *whisk.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: %s\n", s.Version)
	for _, l := range s.Listeners {
		fmt.Fprintf(&b, "--%s %s: %s\n", l.Setting, l.Address, strings.Join(l.Protocols, ", "))
	}
	if c := s.Certificate; c != nil {
		fmt.Fprintf(&b, "certificate: for %s, until %s\n", strings.Join(c.Names, ", "), c.NotAfter.Local().Format(time.DateTime))
		if c.Problem != "" {
			fmt.Fprintf(&b, "the next certificate cannot be used: %s\n", c.Problem)
		}
	}
	fmt.Fprintf(&b, "open connections: TCP %d, QUIC %d\n", s.Connections.TCP, s.Connections.QUIC)
	var requests []string
	for _, protocol := range slices.Sorted(maps.Keys(s.Requests)) {
		requests = append(requests, fmt.Sprintf("%s %d", protocol, s.Requests[protocol]))
	}
	fmt.Fprintf(&b, "requests: %s\n", strings.Join(requests, ", "))
	fmt.Fprintf(&b, "QUIC handshakes: %d, resumed %d, not completed %d, with Retry %d\n", s.QUIC.Handshakes, s.QUIC.Resumed, s.QUIC.Unfinished, s.QUIC.Retries)
	early := s.EarlyData
	if !early.On {
		b.WriteString("early data: off\n")
		return b.String()
	}
	fmt.Fprintf(&b, "early data: accepted %d, held %d, refused %d; tickets that came again %d\n", early.Accepted, early.Held, early.Refused, early.Replayed)
	return b.String()
}
