package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A flag counts before the environment, FORERUN_ before __OW_, and that before the file.
func TestPrecedence(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(".wskprops", "# mine\nAPIHOST=file.example\n apihost = home.example \nAUTH=h:h\nNAMESPACE=_\nnonsense\n")
	other := write("other", "\xef\xbb\xbfAPIHOST=other.example\nAUTH=o:o\n") // with a byte order mark
	env := func(pairs ...string) map[string]string {
		m := make(map[string]string)
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for _, c := range []struct {
		app  app
		env  map[string]string
		want settings
	}{
		{app{}, env(), settings{"home.example", "h:h", ""}},
		{app{}, env("WSK_CONFIG_FILE", other), settings{"other.example", "o:o", ""}},
		{app{}, env("__OW_API_HOST", "ow", "__OW_API_KEY", "w:w"), settings{"ow", "w:w", ""}},
		{app{}, env("__OW_API_HOST", "ow", "FORERUN_APIHOST", "fr", "FORERUN_AUTH", "f:f", "WSK_CONFIG_FILE", other), settings{"fr", "f:f", ""}},
		{app{apihost: "flag", auth: "x:x"}, env("FORERUN_APIHOST", "fr", "FORERUN_AUTH", "f:f"), settings{"flag", "x:x", ""}},
		{app{auth: "x:x"}, env("FORERUN_APIHOST", "fr"), settings{"fr", "x:x", ""}},
	} {
		c.app.env = Environment{Getenv: func(name string) string { return c.env[name] }, Home: home}
		if got, err := c.app.settings(); err != nil || got != c.want {
			t.Errorf("%v: got %v, %v, want %v", c.env, got, err, c.want)
		}
	}
}

func TestNothingIsSet(t *testing.T) {
	got := runIn(t, nil, t.TempDir(), "", "action", "list")
	if got.code != 2 || !strings.Contains(got.stderr, "no API host: run `forerun login`, pass --apihost") {
		t.Errorf("%+v", got)
	}
	if got = runIn(t, nil, "", "", "action", "list", "--apihost", "x"); got.code != 2 || !strings.Contains(got.stderr, "no key") {
		t.Errorf("%+v", got)
	}
	if got = runIn(t, map[string]string{"WSK_CONFIG_FILE": "/nonexistent/file"}, "", "", "action", "list"); got.code != 2 || !strings.Contains(got.stderr, "forerun login") {
		t.Errorf("%+v", got)
	}
}

// login checks the key before it writes anything, and leaves the file's other lines as they are.
func TestLogin(t *testing.T) {
	w := newWorld(t, map[string]answer{"GET namespaces": {status: 200, body: `["guest"]`}})
	home := t.TempDir()
	file := filepath.Join(home, ".wskprops")
	if got := runIn(t, nil, home, "wrong:key\n", "login", "--apihost", w.server.URL); got.code != 4 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a key that is not valid was kept")
	}
	if err := os.WriteFile(file, []byte("# mine\nNAMESPACE=_\nAUTH=old:old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runIn(t, nil, home, testKey+"\n", "login", "--apihost", w.server.URL); got.code != 0 || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	kept, _ := os.ReadFile(file)
	if want := "# mine\nNAMESPACE=_\nAPIHOST=" + w.server.URL + "\nAUTH=" + testKey + "\n"; string(kept) != want {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("others can read it: %v", info.Mode())
	}
	if got := runIn(t, nil, home, "", "namespace", "list"); got.code != 0 || got.stdout != "NAME\nguest\n" {
		t.Errorf("%+v", got)
	}
	if got := runIn(t, nil, home, "", "login"); got.code != 2 || !strings.Contains(got.stderr, "no key") {
		t.Errorf("%+v", got)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add("APIHOST=x\nAUTH=a:b\n")
	f.Add("#\n=\n a = b = c")
	f.Fuzz(func(t *testing.T, text string) {
		written := setProperties(text, []string{"AUTH"}, map[string]string{"AUTH": "u:k"})
		if got := parseProperties(written)["AUTH"]; got != "u:k" {
			t.Errorf("%q became %q, which says %q", text, written, got)
		}
	})
}

// TestParameterMarks: parameters may begin with a byte order mark, in a file and on stdin.
func TestParameterMarks(t *testing.T) {
	w := newWorld(t, map[string]answer{"POST namespaces/_/triggers/t": {status: 204}})
	file := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(file, []byte("\xef\xbb\xbf{\"a\": 1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{file, "-"} {
		if got := w.run("\xef\xbb\xbf{\"a\": 1}", "trigger", "fire", "t", "-P", source); got.code != 0 {
			t.Errorf("%s: %+v", source, got)
		}
	}
	want := `POST namespaces/_/triggers/t {"a":1}`
	if asked := w.requests(); len(asked) != 2 || asked[0] != want || asked[1] != want {
		t.Errorf("asked %q", asked)
	}
}
