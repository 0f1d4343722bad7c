package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/textfile"
)

// settings are where the API is, who calls it, and which certificate authorities are trusted beside the system's, in PEM.
type settings struct{ host, auth, ca string }

// settings gathers them: a flag counts before the environment, and that before the file. In the environment our own
// variables come first, then wsk's, then those that a function has.
func (a *app) settings() (settings, error) {
	file, err := a.readProperties()
	if err != nil {
		return settings{}, err
	}
	s := settings{
		host: first(a.apihost, a.env.Getenv("FORERUN_APIHOST"), a.env.Getenv("WHISK_APIHOST"), a.env.Getenv("__OW_API_HOST"), file["APIHOST"]),
		auth: first(a.auth, a.env.Getenv("FORERUN_AUTH"), a.env.Getenv("WHISK_AUTH"), a.env.Getenv("__OW_API_KEY"), file["AUTH"]),
	}
	path, _ := a.propertiesFile() // without one nothing lies beside it
	if s.ca, err = a.authorities(s.host, path, file); err != nil {
		return settings{}, err
	}
	return s, nil
}

// first is the first that is not empty.
func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// propertiesFile is where wsk keeps its settings, and so do we.
func (a *app) propertiesFile() (string, error) {
	if file := a.env.Getenv("WSK_CONFIG_FILE"); file != "" {
		return file, nil
	}
	if a.env.Home == "" {
		return "", errors.New("there is no home folder for .wskprops: set HOME or WSK_CONFIG_FILE")
	}
	return filepath.Join(a.env.Home, ".wskprops"), nil
}

// readProperties reads the file; one that is not there says nothing, unless it was asked for.
func (a *app) readProperties() (map[string]string, error) {
	file, err := a.propertiesFile()
	if err != nil {
		return nil, nil //nolint:nilerr // the flags and the environment may do
	}
	data, err := textfile.Read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && a.env.Getenv("WSK_CONFIG_FILE") == "":
		return nil, nil
	case err != nil:
		return nil, wrongf("the settings cannot be read: %v\nWrite them with `forerun login`.", err)
	}
	return parseProperties(string(data)), nil
}

// parseProperties reads lines NAME=VALUE; lines that begin with # and lines of another form say nothing, as in wsk.
func parseProperties(text string) map[string]string {
	properties := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(name, "#") {
			properties[strings.ToUpper(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
	}
	return properties
}

// setProperties replaces lines of a file of settings, and leaves every other line as it is. An empty value removes the line.
func setProperties(text string, names []string, values map[string]string) string {
	var lines []string
	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(line, "=")
		if _, replaced := values[strings.ToUpper(strings.TrimSpace(name))]; !ok || !replaced {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	for _, name := range names {
		if values[name] != "" {
			lines = append(lines, name+"="+values[name])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// client makes the client that the settings describe.
func (a *app) client(cmd *cobra.Command) (*whisk.Client, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	if s.host == "" {
		return nil, wrongf("no API host: run `forerun login`, pass --apihost, or let WSK_CONFIG_FILE name the file wskprops of the server's data folder")
	}
	if s.auth == "" {
		return nil, wrongf("no key: run `forerun login` or pass --auth UUID:KEY")
	}
	return a.clientOf(cmd, s, "")
}

// clientOf makes a client of the API below root; empty: OpenWhisk's.
func (a *app) clientOf(cmd *cobra.Command, s settings, root string) (*whisk.Client, error) {
	o := whisk.Options{Host: s.host, Auth: s.auth, Root: root, Insecure: a.insecure, CA: s.ca, UserAgent: "forerun/" + a.env.Version}
	if a.verbose {
		o.Trace = func(line string) { cmd.PrintErrln(line) }
	}
	c, err := whisk.New(o)
	if err != nil {
		return nil, wrongf("%v", err)
	}
	return c, nil
}
