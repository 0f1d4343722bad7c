package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/certificate"
	"forerun.dev/forerun/internal/cli/whisk"
)

// overTLS is a server whose authority no client knows, with its certificate in PEM.
func overTLS(t *testing.T) (s *httptest.Server, ca string) {
	t.Helper()
	s = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, key, _ := r.BasicAuth(); user+":"+key != testKey {
			t.Errorf("asked as %s:%s", user, key)
		}
		_, _ = w.Write([]byte(`["guest"]`))
	}))
	t.Cleanup(s.Close)
	return s, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// TestTrust: which authorities a command trusts, and what it says if it does not.
func TestTrust(t *testing.T) {
	s, ca := overTLS(t)
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	props := "APIHOST=" + s.URL + "\nAUTH=" + testKey + "\n"
	file, beside, alone := write("ca.pem", ca), write("beside/wskprops", props), write("alone/wskprops", props)
	write("beside/ca.crt", ca)
	garbage := write("garbage/wskprops", props)
	write("garbage/ca.crt", "-----BEGIN OTHER-----\n-----END OTHER-----\n")
	line := "CA=" + base64.StdEncoding.EncodeToString(s.Certificate().Raw) + "\n"
	own, foreign := write("own/wskprops", props+line), write("foreign/wskprops", "APIHOST=https://other.example\nAUTH="+testKey+"\n"+line)
	write("foreign/ca.crt", ca)
	for name, test := range map[string]struct {
		props, env, args string
		code             int
		says             string
	}{
		"no authority":         {props: alone, code: exitNetwork, says: "--ca"},
		"beside the settings":  {props: beside},
		"a flag":               {props: alone, args: "--ca " + file},
		"the environment":      {props: alone, env: file},
		"insecure":             {props: alone, args: "-i"},
		"no file":              {props: beside, args: "--ca " + folder + "/none", code: exitUsage, says: "cannot be read"},
		"no certificate in it": {props: beside, args: "--ca " + alone, code: exitUsage, says: "PEM"},
		"garbage beside":       {props: garbage, code: exitNetwork, says: "--ca"},
		"a line":               {props: own},
		"of another host":      {props: foreign, args: "--apihost " + s.URL, code: exitNetwork, says: "--ca"},
	} {
		env := map[string]string{"WSK_CONFIG_FILE": test.props, "FORERUN_CA": test.env}
		got := runIn(t, env, "", "", strings.Fields("namespace list "+test.args)...)
		if got.code != test.code || !strings.Contains(got.stderr, test.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	operator := write("operator", "APIHOST="+s.URL+"\nAUTH="+testKey+"\n")
	if got := runIn(t, map[string]string{"FORERUN_OPERATOR": operator}, "", "", "cert", "show"); got.code != exitNetwork {
		t.Errorf("the operator without an authority: %+v", got)
	}
	write("ca.crt", ca)
	elsewhere := write("elsewhere", "APIHOST=https://other.example\nAUTH="+testKey+"\n")
	if got := runIn(t, map[string]string{"FORERUN_OPERATOR": elsewhere}, "", "", "cert", "show", "--apihost", s.URL); got.code != exitNetwork {
		t.Errorf("the operator with the authority of another host: %+v", got)
	}
	if got := runIn(t, map[string]string{"FORERUN_OPERATOR": operator}, "", "", "tenant", "list", "-o", "json"); strings.Contains(got.stderr, "authority") {
		t.Errorf("the operator with one beside the key: %+v", got)
	}
}

// TestLoginAsksOnce shows a person an authority, and trusts it from then on if the person does.
func TestLoginAsksOnce(t *testing.T) {
	s, _ := overTLS(t)
	home := t.TempDir()
	another, err := certificate.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	trusted := filepath.Join(t.TempDir(), "ca.pem") // it ends without a newline
	if err := os.WriteFile(trusted, bytes.TrimSpace(another.Certificate()), 0o600); err != nil {
		t.Fatal(err)
	}
	login := func(typed string) outcome {
		t.Helper()
		tty, screen := terminal(t)
		var stderr buffer
		root := &cobra.Command{Use: "forerun", SilenceErrors: true, SilenceUsage: true}
		root.SetIn(tty)
		root.SetOut(&stderr)
		root.SetErr(&stderr)
		err := Setup(root, Environment{Getenv: func(string) string { return "" }, Home: home, Version: "test"}, []string{"login", "--apihost", s.URL, "--auth", testKey, "--ca", trusted})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(screen, typed); err != nil {
			t.Fatal(err)
		}
		err = root.ExecuteContext(t.Context())
		return outcome{ExitCode(err), "", stderr.String() + fmt.Sprint(err)}
	}
	fingerprint := whisk.Fingerprint(s.Certificate())
	if got := login("no"); got.code == 0 || !strings.Contains(got.stderr, fingerprint) {
		t.Errorf("refused: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(home, ".wskprops")); err == nil {
		t.Error("a refusal is kept")
	}
	if got := login("yes"); got.code != 0 || !strings.Contains(got.stderr, fingerprint) {
		t.Errorf("trusted: %+v", got)
	}
	if got := runIn(t, nil, home, "", "namespace", "list"); got.code != 0 {
		t.Errorf("then: %+v", got)
	}
	if got := runIn(t, nil, home, testKey+"\n", "login", "--apihost", s.URL); got.code != 0 || strings.Contains(got.stderr, fingerprint) {
		t.Errorf("the next login: %+v", got)
	}
	w := newWorld(t, map[string]answer{"GET namespaces": {status: 200, body: `["guest"]`}})
	if got := runIn(t, nil, home, testKey+"\n", "login", "--apihost", w.server.URL); got.code != 0 {
		t.Errorf("a login to another host: %+v", got)
	}
	if kept, err := os.ReadFile(filepath.Join(home, ".wskprops")); err != nil || strings.Contains(string(kept), caProperty+"=") {
		t.Errorf("it keeps the authority of the first: %s, %v", kept, err)
	}
}
