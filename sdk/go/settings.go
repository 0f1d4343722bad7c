package openwhisk

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// settings say how the API is called.
type settings struct {
	host      string // a URL without a path
	auth      string // UUID:KEY
	namespace string
	ca        string // in PEM; empty: the system's authorities alone
}

// find completes what is given from the environment, and that from the file that wsk and forerun keep.
func find(o Options) (settings, error) {
	s := settings{
		host:      cmp.Or(o.Host, os.Getenv("FORERUN_APIHOST"), os.Getenv("__OW_API_HOST")),
		auth:      cmp.Or(o.Auth, os.Getenv("FORERUN_AUTH"), os.Getenv("__OW_API_KEY")),
		namespace: cmp.Or(o.Namespace, os.Getenv("__OW_NAMESPACE")),
		ca:        o.CA,
	}
	file, properties, err := readProperties()
	if err != nil && (s.host == "" || s.auth == "") {
		return s, err
	}
	if s.host == "" || s.auth == "" {
		s.host, s.auth = cmp.Or(s.host, properties["APIHOST"]), cmp.Or(s.auth, properties["AUTH"])
		s.namespace = cmp.Or(s.namespace, properties["NAMESPACE"])
	}
	s.namespace = cmp.Or(s.namespace, "_")
	switch {
	case s.host == "":
		return s, errors.New("it is not known where the API is: set FORERUN_APIHOST, or run `forerun login`")
	case s.auth == "":
		return s, errors.New("there is no key for the API: set FORERUN_AUTH, or run `forerun login`")
	}
	s.host = withScheme(s.host)
	if s.ca == "" && strings.HasPrefix(s.host, "https://") {
		s.ca, err = authorities(s.host, file, properties)
	} else {
		err = nil
	}
	return s, err
}

// authorities finds those of a host: FORERUN_CA, else the file ca.crt beside the settings and the authority that `forerun login` trusted. The
// settings' own are for the host in the settings alone.
func authorities(host, file string, properties map[string]string) (string, error) {
	if asked := os.Getenv("FORERUN_CA"); asked != "" {
		text, err := os.ReadFile(asked)
		if err != nil {
			return "", fmt.Errorf("the authority that FORERUN_CA names cannot be read: %w", err)
		}
		return string(text), nil
	}
	if withScheme(properties["APIHOST"]) != host {
		return "", nil
	}
	const begin, end = "-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n"
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "ca.crt")) // mostly there is none
	found := string(text)
	if !strings.Contains(found, begin) { // the file may be another program's
		found = ""
	}
	if trusted := properties["CA"]; trusted != "" {
		found += "\n" + begin + trusted + end
	}
	return found, nil
}

// withScheme writes a host as a URL; without a scheme it is https, as in wsk.
func withScheme(host string) string {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	return strings.TrimRight(host, "/")
}

// readProperties reads lines NAME=VALUE. A file that no variable names may be missing.
func readProperties() (file string, properties map[string]string, err error) {
	asked := os.Getenv("WSK_CONFIG_FILE")
	if file = asked; file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", nil, err
		}
		file = filepath.Join(home, ".wskprops")
	}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) && asked == "" {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("the settings cannot be read: %w", err)
	}
	defer f.Close()
	properties = make(map[string]string)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok && !strings.HasPrefix(name, "#") {
			properties[strings.ToUpper(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
	}
	return file, properties, lines.Err()
}
