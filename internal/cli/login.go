package cli

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
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

Without --apihost the host is the one set already, or this machine; without --auth the key is read from stdin. If no trusted authority has
signed the server's certificate, a person at a terminal is shown the authority and asked once; the answer is kept, too.`,
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
	s := settings{host: first(a.apihost, known.host, "127.0.0.1:"+whisk.DefaultPort), auth: a.auth, ca: known.ca}
	if s.auth == "" {
		if s.auth, err = askKey(cmd, s.host); err != nil {
			return err
		}
	}
	c, names, err := a.namespacesOf(cmd, s)
	values := map[string]string{}
	if file, _ := a.readProperties(); !isSameHost(s.host, file["APIHOST"]) {
		values[caProperty] = "" // it was trusted for another host
	}
	if isUnknownAuthority(err) && isTyped(cmd) {
		authority, refused := a.askTrust(cmd, s.host)
		if refused != nil {
			return refused
		}
		values[caProperty] = base64.StdEncoding.EncodeToString(authority.Raw)
		s.ca += "\n" + string(authorityPEM(authority.Raw))
		c, names, err = a.namespacesOf(cmd, s)
	}
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return &failure{exitHTTP, "the key is valid but owns no namespace: ask the operator for a key of a tenant"}
	}
	values["APIHOST"], values["AUTH"] = c.Host(), c.Auth()
	if err := a.keep(values); err != nil {
		return err
	}
	file, _ := a.propertiesFile() // it was written just now
	say(cmd, "ok: logged in to %s, namespace %s; kept in %s", c.Host(), names[0].Value, file)
	return nil
}

// namespacesOf asks a server which namespaces are the key's.
func (a *app) namespacesOf(cmd *cobra.Command, s settings) (*whisk.Client, []whisk.Document[string], error) {
	c, err := a.clientOf(cmd, s, "")
	if err != nil {
		return nil, nil, err
	}
	names, err := whisk.List[string](cmd.Context(), c, "namespaces", nil)
	return c, names, err
}

// keep writes properties to the file, which only its owner can read.
func (a *app) keep(values map[string]string) error {
	file, err := a.propertiesFile()
	if err != nil {
		return err
	}
	before, err := textfile.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return wrongf("the settings cannot be read: %v", err)
	}
	after := setProperties(string(before), slices.Sorted(maps.Keys(values)), values)
	if err := replaceFile(file, []byte(after)); err != nil {
		return fmt.Errorf("the settings cannot be written: %w", err)
	}
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
