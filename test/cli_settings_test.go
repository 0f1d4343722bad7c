package test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestExitCodes has one command for each way to end.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	sh := newShell(t, start(t, server.Options{}))
	sh.save(t, map[string]string{
		"hello.py": helloCode, "fails.py": "def main(args):\n    return {'error': 'no'}\n",
		"slow.py": "import time\n\ndef main(args):\n    time.sleep(0.5)\n    return {}\n",
	})
	sh.follow(t, []step{
		{"activation get --last", 1, "", "no activation ran yet: invoke an action with `forerun invoke NAME`"},
		{"action create hello hello.py", 0, "", "ok: created action hello"},
		{"action create fails fails.py", 0, "", ""},
		{"action create slow slow.py", 0, "", ""},
		{"invoke hello -r", 0, "Hello you", ""},
		{"invoke", 2, "", "Run `forerun invoke --help`"},
		{"invok hello", 2, "", `did you mean "invoke"`},
		{"invoke hello --nope", 2, "", "unknown flag"},
		{"api list", 2, "", "forerun action create --web"},
		{"list -o yaml", 2, "", "text, json or jsonl"},
		{"list --apihost 127.0.0.1:1", 3, "", "start the server with `forerun serve`"},
		{"list --apihost 127.0.0.1:1 -o json", 3, "", "connection refused"},
		{"list --auth who:ever", 4, "", "forerun login"},
		{"invoke missing", 4, "", "forerun action list"},
		{"invoke fails -b -o jsonl", 5, `"success":false`, "fails failed and wrote no log, activation "},
		{"invoke slow -r -t 1", 6, "01", "forerun activation get"},
		{"version", 0, "forerun ", ""},
		{"--version", 0, "forerun ", ""},
		{"version -o jsonl", 0, `{"version":"`, ""},
		{"completion bash", 0, "complete -o", ""},
		{"completion zsh", 0, "#compdef forerun", ""},
		{"completion fish", 0, "complete -c forerun", ""},
		{"completion tcsh", 2, "", "bash, zsh or fish"},
		{"__complete action get ''", 0, "hello\n", ""},
		{"__complete list -o ''", 0, "jsonl\n", ""},
	})
}

// TestInterrupt ends a command that waits as Ctrl-C does. Only to a follower that is no failure.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then it is seen that a client goes
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer silent.Close()
	for line, want := range map[string]int{"invoke slow -r": 130, "logs": 130, "logs -f": 0} {
		run := newShell(t, nil).begin(t, line+" --auth a:b --apihost "+silent.URL)
		<-asked
		if code := run.interrupt(t); code != want {
			t.Errorf("%s: it ended with %d", line, code)
		}
	}
}

// TestSettings: a flag counts before the environment, and that before the file; each place alone does.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	const nowhere, nobody = "127.0.0.1:1", "no:body"
	file := func(host, auth string) string {
		return "# written by hand\nAPIHOST=" + host + "\nAUTH=" + auth + "\nNAMESPACE=_\n"
	}
	for name, c := range map[string]struct {
		home, named string // content of ~/.wskprops, and of the file that WSK_CONFIG_FILE names
		env         []string
		flags       string
		code        int
	}{
		"home":                           {home: file(s.URL, s.Auth)},
		"nothing":                        {code: 2},
		"no key":                         {flags: "--apihost " + s.URL, code: 2},
		"named file":                     {home: file(nowhere, nobody), named: file(s.URL, s.Auth)},
		"environment before file":        {home: file(nowhere, nobody), env: []string{"FORERUN_APIHOST=" + s.URL, "FORERUN_AUTH=" + s.Auth}},
		"wsk's environment":              {home: file(nowhere, nobody), env: []string{"WHISK_APIHOST=" + s.URL, "WHISK_AUTH=" + s.Auth}},
		"a function's environment":       {home: file(nowhere, nobody), env: []string{"__OW_API_HOST=" + s.URL, "__OW_API_KEY=" + s.Auth}},
		"host of one, key of another":    {home: file(nowhere, s.Auth), env: []string{"FORERUN_APIHOST=" + s.URL}},
		"flag before environment":        {env: []string{"FORERUN_APIHOST=" + nowhere, "FORERUN_AUTH=" + nobody}, flags: "--apihost " + s.URL + " --auth " + s.Auth},
		"wrong host in the environment":  {home: file(s.URL, s.Auth), env: []string{"FORERUN_APIHOST=" + nowhere}, code: 3},
		"wrong key by flag":              {home: file(s.URL, s.Auth), flags: "-u " + nobody, code: 4},
		"named file that is not there":   {home: file(s.URL, s.Auth), env: []string{"WSK_CONFIG_FILE=nowhere"}, code: 2},
		"host without a scheme":          {flags: "--apihost " + strings.TrimPrefix(s.URL, "http://") + " --auth " + s.Auth},
		"host with the API's path":       {flags: "--apihost " + s.URL + "/api/v1 --auth " + s.Auth},
		"a key that is none":             {home: file(s.URL, "word"), code: 2},
		"a host that is none":            {home: file("ftp://x", s.Auth), code: 2},
		"a file with spaces and a quote": {home: "  APIHOST = " + s.URL + " \nAUTH= " + s.Auth + "\nnonsense\n"},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, nil)
			sh.env = c.env
			if c.home != "" {
				sh.write(t, sh.home, map[string]string{".wskprops": c.home})
			}
			if c.named != "" {
				sh.save(t, map[string]string{"named": c.named})
				sh.env = append(sh.env, "WSK_CONFIG_FILE=named")
			}
			want := ""
			if c.code == 0 {
				want = "=NAME\nguest\n"
			}
			sh.follow(t, []step{{"namespace list " + c.flags, c.code, want, ""}})
		})
	}
}

// TestLogin: what login keeps is what commands use, and nobody else can read it.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	sh := newShell(t, nil)
	sh.write(t, sh.home, map[string]string{".wskprops": "# mine\nAPIVERSION=v1\nAUTH=old:key\n"})
	sh.follow(t, []step{
		{"login --apihost " + s.URL + " --auth wrong:key", 4, "", "forerun login"},
		{"login --apihost " + s.URL, 2, "", "--auth UUID:KEY"},
		{"login --apihost " + s.URL + " --auth " + s.Auth, 0, "", "namespace guest"},
		{"namespace list", 0, "=NAME\nguest\n", ""},
	})
	file := filepath.Join(sh.home, ".wskprops")
	text, err := os.ReadFile(file)
	if want := "# mine\nAPIVERSION=v1\nAPIHOST=" + s.URL + "\nAUTH=" + s.Auth + "\n"; string(text) != want {
		t.Errorf("kept %q, %v, want %q", text, err, want)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

// TestFollowing: logs -f, and poll, show what runs from now on, and end well when they are interrupted.
func TestFollowing(t *testing.T) {
	t.Parallel()
	sh := newShell(t, start(t, server.Options{}))
	sh.save(t, map[string]string{"hello.py": "def main(args):\n    print('asked by', args['name'])\n    return {}\n"})
	sh.follow(t, []step{{"action create hello hello.py", 0, "", ""}})
	for line, first := range map[string]string{"logs -f --limit 1": "asked by Ada", "activation poll --strip": "Following activations", "logs hello -f -o jsonl": `"text":"asked by Ada"`} {
		t.Run(line, func(t *testing.T) {
			// The latest is Ada's each time, whichever line came before.
			sh.follow(t, []step{{"invoke hello -r -p name Ada", 0, "={}\n", ""}})
			run := sh.begin(t, line)
			run.await(t, first)
			sh.follow(t, []step{{"invoke hello -r -p name Eve", 0, "={}\n", ""}})
			run.await(t, "asked by Eve")
			if code := run.interrupt(t); code != 0 {
				t.Errorf("it ended with %d", code)
			}
		})
	}
	sh.follow(t, []step{
		{"logs -l 1 --strip", 0, "=hello asked by Eve\n", ""},
		{"logs missing", 0, "", ""},
		{"activation poll --exit 1 --since-hours 1", 0, "asked by Ada", "interrupt to stop"},
	})
}
