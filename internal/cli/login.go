package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/textfile"
)

func (a *app) loginCommand() *cobra.Command {
	return &cobra.Command{
		Use: "login", Short: "Check a key and keep it in .wskprops, where wsk looks too", Args: between(0, 0),
		Long: `Check a key and keep it, with the API's host, in ~/.wskprops (or the file that WSK_CONFIG_FILE names), where wsk looks too.

Without --apihost the host is the one set already, or this machine; without --auth the key is read from stdin.`,
		Example: "  forerun login --apihost http://127.0.0.1:3233 --auth UUID:KEY\n  forerun login < key",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			cmd.SetContext(ctx)
			return a.login(cmd)
		},
	}
}

func (a *app) login(cmd *cobra.Command) error {
	known, err := a.settings()
	if err != nil && a.env.Getenv("WSK_CONFIG_FILE") == "" {
		return err
	}
	s := settings{host: first(a.apihost, known.host, "127.0.0.1:"+whisk.DefaultPort), auth: a.auth}
	if s.auth == "" {
		if s.auth, err = askKey(cmd, s.host); err != nil {
			return err
		}
	}
	c, err := a.clientOf(cmd, s, "")
	if err != nil {
		return err
	}
	names, err := whisk.List[string](cmd.Context(), c, "namespaces", nil)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return &failure{exitHTTP, "the key is valid but owns no namespace: ask the operator for a key of a tenant"}
	}
	return a.keep(cmd, c, names[0].Value)
}

// keep writes host and key to the file, which nobody else can read.
func (a *app) keep(cmd *cobra.Command, c *whisk.Client, namespace string) error {
	file, err := a.propertiesFile()
	if err != nil {
		return err
	}
	before, err := textfile.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return wrongf("the settings cannot be read: %v", err)
	}
	after := setProperties(string(before), []string{"APIHOST", "AUTH"}, map[string]string{"APIHOST": c.Host(), "AUTH": c.Auth()})
	if err := replaceFile(file, []byte(after)); err != nil {
		return fmt.Errorf("the settings cannot be written: %w", err)
	}
	say(cmd, "ok: logged in to %s, namespace %s; kept in %s", c.Host(), namespace, file)
	return nil
}

// replaceFile writes a file in one step, so that nobody ever reads half of it. A link stays a link.
func replaceFile(file string, content []byte) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".wskprops-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // it is gone if all went well
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}

// askKey reads the key from stdin; on a terminal it asks for it, and does not show what is typed.
func askKey(cmd *cobra.Command, host string) (string, error) {
	if file, ok := cmd.InOrStdin().(*os.File); ok {
		if show, err := hideInput(int(file.Fd())); err == nil {
			defer show()
			fmt.Fprintf(words(cmd), "Key (UUID:KEY) for %s: ", host)
			defer fmt.Fprintln(words(cmd))
		}
	}
	line, err := readLine(cmd)
	if err == nil && line == "" {
		err = wrongf("no key: pass --auth UUID:KEY, or write it to stdin")
	}
	return line, err
}

// readLine reads a line of stdin, unless the person interrupts: then the terminal is still to be put right.
func readLine(cmd *cobra.Command) (string, error) {
	read := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // what cannot be read is no key
		read <- strings.TrimSpace(string(textfile.Decode([]byte(line))))
	}()
	select {
	case line := <-read:
		return line, nil
	case <-cmd.Context().Done():
		return "", context.Canceled
	}
}

// hideInput lets a terminal not show what is typed, until the function that it returns is called. The error says that it
// is no terminal.
func hideInput(terminal int) (show func(), err error) {
	before, err := unix.IoctlGetTermios(terminal, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(terminal, unix.TCSETS, &hidden); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(terminal, unix.TCSETS, before) }, nil // nothing more can be done
}
