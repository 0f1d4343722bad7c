package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

func load(t *testing.T, flags, env map[string]string, file string) (*Config, error) {
	t.Helper()
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "forerun.conf")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(Settings(false, "/home/ada/.local/state"), flags, func(name string) string { return env[name] }, path)
}

func TestPrecedence(t *testing.T) {
	for _, test := range []struct {
		name       string
		flags, env map[string]string
		file       string
		listen     string
		memory     int
	}{
		{name: "defaults", listen: "127.0.0.1:3233"},
		{name: "file", file: "# the port\nlisten = 127.0.0.1:1\n\nmemory=10\n", listen: "127.0.0.1:1", memory: 10},
		{name: "environment over file", env: map[string]string{"FORERUN_LISTEN": "127.0.0.1:2"}, file: "listen = 127.0.0.1:1\nmemory = 10", listen: "127.0.0.1:2", memory: 10},
		{
			name: "flag over environment", flags: map[string]string{"listen": "localhost:3"},
			env: map[string]string{"FORERUN_LISTEN": "127.0.0.1:2", "FORERUN_MEMORY": "20"}, file: "listen = 127.0.0.1:1\nmemory = 10", listen: "127.0.0.1:3", memory: 20,
		},
		{name: "a flag can empty a setting", flags: map[string]string{"memory": "0"}, env: map[string]string{"FORERUN_MEMORY": "20"}, listen: "127.0.0.1:3233"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := load(t, test.flags, test.env, test.file)
			if err != nil {
				t.Fatal(err)
			}
			if c.Listen != test.listen || c.MemoryMiB != test.memory {
				t.Errorf("listen %s, memory %d; want %s, %d", c.Listen, c.MemoryMiB, test.listen, test.memory)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for setting, values := range map[string][]string{
		"listen":           {"", "3233", "example.org:3233", "127.0.0.1:http", "127.0.0.1:70000"},
		"redis-listen":     {"example.org:6379", "6379"},
		"console-listen":   {"3235", "example.org:3235"},
		"metrics-listen":   {"9090"},
		"tls":              {"", "off", "true"},
		"tls-name":         {"a b", "https://example.org", "example.org:443", "fe80::1%eth0", "-x", "a..b"},
		"tls-cert":         {"server.crt"}, // without its key
		"data":             {""},
		"egress-deny":      {"10.0.0.0/33", "example.org", "none", "10.0.0.0/8:0", "https://10.0.0.1/"},
		"egress-allow":     {"10.0.0.0/33", "all", "example.org:80", "10.0.0.0/8:x", "127.0.0.0/8", "127.0.0.1:80", "10.0.0.0/8, 127.1.2.3/32", "::1/128", "::ffff:127.0.0.1/128"},
		"memory":           {"", "-1", "4G"},
		"keep-activations": {"", "7d", "-1h", "0", "1s"},
		"keep-megabytes":   {"", "0", "-1", "1G"},
		"user":             {"0", "-1", "www-data"},
		"sync":             {"", "perhaps"},
		"keep-alive":       {"", "10", "0s", "1001h"},
		"queue-time":       {"", "soon", "-1s"},
		"prewarm":          {"", "-1", "65", "two"},
		"cache":            {"", "true", "ON"},
		"cpu-weight":       {"", "-1", "10001", "heavy"},

		"max-timeout":   {"", "59s", "25h", "60000"},
		"max-memory":    {"", "255", "1g"},
		"max-logs":      {"9", "257"},
		"max-payload":   {"0", "33"},
		"max-code":      {"0", "61"},
		"max-unpacked":  {"0", "513"},
		"max-processes": {"31", "32769"},
		"max-tmp":       {"0", "-1"},

		"invocations-per-minute": {"", "-1", "many", "2147483648"},
	} {
		for _, value := range values {
			_, err := load(t, map[string]string{setting: value}, nil, "")
			if err == nil || !strings.Contains(err.Error(), "--"+setting) {
				t.Errorf("--%s=%q: %v", setting, value, err)
			}
		}
	}
}

func TestAccepted(t *testing.T) {
	c, err := load(t, map[string]string{
		"listen": "[::1]:0", "redis-listen": "127.8.0.1:6379", "egress-allow": "10.1.2.3/8, fd00::/8, 192.168.1.5:80,", "egress-deny": "8.8.8.8/24", "data": "here", "sync": "true",
		"web-listen": ":443", "metrics-listen": "10.0.0.1:9090", "tls": "on", "tls-name": "F.example.org, *.f.example.org,10.0.0.1", "tls-cert": "a.crt", "tls-key": "/b.key",
	}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "[::1]:0" || c.RedisListen != "127.8.0.1:6379" || c.EgressAllow.String() != "10.0.0.0/8, fd00::/8, 192.168.1.5:80" || c.EgressDeny.String() != "8.8.8.0/24" || !filepath.IsAbs(c.Data) || !c.Sync {
		t.Errorf("%+v", c)
	}
	if c.WebListen != ":443" || c.MetricsListen != "10.0.0.1:9090" || !c.TLS || strings.Join(c.TLSNames, " ") != "f.example.org *.f.example.org 10.0.0.1" || !filepath.IsAbs(c.TLSCert) || c.TLSKey != "/b.key" {
		t.Errorf("%+v", c)
	}
}

func TestCPUWeight(t *testing.T) {
	for value, want := range map[string]int{"1": 1, "10000": 10_000, "0": min(100*runtime.NumCPU(), 10_000)} {
		if c, err := load(t, map[string]string{"cpu-weight": value}, nil, ""); err != nil || c.CPUWeight != want {
			t.Errorf("%s: %+v, %v; want %d", value, c, err, want)
		}
	}
}

// TestDocumentedFile: the sample file in the documents can be used, and it has all that a new user may want to set.
func TestDocumentedFile(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(string(text), "    # forerun.conf\n")
	sample, _, _ = strings.Cut(sample, "\n\n")
	c, err := load(t, nil, nil, sample)
	if err != nil || c.Speculate != speculate.NewSettings(speculate.All) {
		t.Errorf("%+v, %v", c, err)
	}
	for _, s := range Settings(true, "") {
		if !strings.Contains(sample, "    "+s.Name+" = ") && s.Name != "cpu-profile" {
			t.Errorf("%s is not in the sample", s.Name)
		}
		if s.Name == "speculate" && (!strings.Contains(s.Usage, "load=any") || !strings.Contains(s.Usage, "squash=sandbox")) {
			t.Errorf("the usage does not tell all settings: %s", s.Usage)
		}
	}
}

func TestBounds(t *testing.T) {
	c, err := load(t, nil, nil, "")
	if err != nil || c.Bounds != forerun.DefaultBounds() {
		t.Errorf("by default %+v, %v", c, err)
	}
	c, err = load(t, map[string]string{"max-timeout": "5m", "max-memory": "1024", "max-logs": "20"}, map[string]string{"FORERUN_MAX_PAYLOAD": "1"},
		"max-code = 2\nmax-unpacked = 3\nmax-processes = 64\nmax-tmp = 5")
	want := forerun.Bounds{Timeout: 300_000, Memory: 1024, Logs: 20, Payload: 1 << 20, Code: 2 << 20, Unpacked: 3, Processes: 64, Tmp: 5}
	if err != nil || c.Bounds != want {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRefusedLine(t *testing.T) {
	for _, line := range []string{"listen 127.0.0.1:1", "lisen = 127.0.0.1:1"} {
		_, err := load(t, nil, nil, "memory = 1\n"+line)
		if err == nil || !strings.Contains(err.Error(), "forerun.conf:2") || !strings.Contains(err.Error(), "redis-listen") {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := load(t, nil, nil, "memory = much"); err == nil || !strings.Contains(err.Error(), "memory in ") {
		t.Errorf("a wrong value: %v", err)
	}
}

func TestDataFolder(t *testing.T) {
	env := map[string]string{"HOME": "/home/ada"}
	home := StateHome(func(name string) string { return env[name] })
	for want, settings := range map[string][]Setting{"/var/lib/forerun": Settings(true, home), "/home/ada/.local/state/forerun": Settings(false, home)} {
		c, err := Load(settings, nil, func(string) string { return "" }, "")
		if err != nil || c.Data != want {
			t.Errorf("%+v, %v; want %s", c, err, want)
		}
	}
	env["XDG_STATE_HOME"] = "/state"
	if got := StateHome(func(name string) string { return env[name] }); got != "/state" {
		t.Errorf("with XDG_STATE_HOME it is %s", got)
	}
}

func FuzzFile(f *testing.F) {
	f.Add("listen = 127.0.0.1:1\n# no\nmemory=4\r\n")
	f.Add("=\n")
	settings := Settings(true, "/")
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := parse(settings, "file", text)
		if err == nil && len(lines) > len(settings) {
			t.Errorf("%q gave %v", text, lines)
		}
	})
}
