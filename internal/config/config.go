// Package config gathers the server's settings into one validated struct.
//
// It promises that a setting given as a flag wins over one in the environment,
// that one over the configuration file's, and that one over the default; and
// that what it returns can be used as it is: an error names the setting, where
// it was given and what to write instead.
package config

import (
	"cmp"
	"errors"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/schedule"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/textfile"
)

// Config are the settings of `forerun serve`.
type Config struct {
	Listen      string               // host:port of the REST API
	Data        string               // folder of all that the server keeps, absolute
	WebListen   string               // host:port of web actions alone; empty: they share Listen
	WebScheme   string               // of the address that clients use for web actions: "http" or "https"
	WebHost     string               // host that web actions alone have, perhaps with a port; "TENANT" in front stands for each tenant; empty: any
	RedisListen string               // host:port of the RESP door for programs outside functions; empty: closed
	EgressAllow egress.List          // what functions may reach besides the public internet; without names
	EgressDeny  egress.List          // what they may not reach; without names
	MemoryMiB   int                  // what all sandboxes together may use; 0: half of the machine's memory
	CPUWeight   int                  // their share of the processors beside other programs, 1 to 10000; one program of the kernel's default has 100
	KeepAlive   time.Duration        // how long a sandbox stays without work
	Schedule    schedule.Policy      // which activations may run at a time
	Prewarm     int                  // sandboxes without code that are held ready for each language in use
	QueueTime   time.Duration        // how long an activation may wait for a sandbox
	Speculate   speculate.Settings   // how far invocations run ahead that do not say; none does more than its mode
	CacheRows   int                  // results of one tenant that are kept at most
	CacheMiB    int                  // that all kept results may take
	Offload     bool                 // Java applications may have methods run as functions
	Cache       bool                 // known results of annotated functions stand for executions
	Bounds      forerun.Bounds       // of actions and activations
	User        int                  // uid that the server runs as when started by root
	Sync        bool                 // activation records are on disk before an invocation is answered
	Keep        activation.Retention // of activation records
	Limits      registry.Limits      // of tenants who have none of their own
	CPUProfile  string               // folder that a profile of the server's processor time is left in; empty: none is made

	ConsoleListen string   // host:port of the console alone; empty: there is none
	MetricsListen string   // host:port of /metrics and /healthz alone; empty: the other HTTP listeners serve them
	TLS           bool     // on the loopback, too; on every other address TLS is always on
	TLSNames      []string // DNS names and addresses that the server's certificate is for; empty: the host's name and the addresses listened on
	TLSCert       string   // file of the certificate in PEM, absolute; empty: the server signs its own
	TLSKey        string   // file of its key
	EarlyData     bool     // of HTTP/3, for what may be repeated
	HTTP3         bool     // on the listeners of HTTP with TLS, over UDP on the same port
}

// DefaultUser is the uid that a server started by root runs as: one that no distribution hands out by itself.
const DefaultUser = 59233

// Setting is one thing that can be set: by the flag --NAME, by the environment variable Env, or by a line "NAME = value".
type Setting struct {
	Name, Env, Default, Usage string
	set                       func(c *Config, value string) error
}

// Settings lists what can be set. root says whether the server is started by root, home is where an ordinary user's
// programs keep their state.
func Settings(root bool, home string) []Setting {
	return []Setting{
		{"listen", "FORERUN_LISTEN", "127.0.0.1:3233", "`ADDRESS` of the REST API: off the loopback with TLS, always; port 0 picks a free one", setListen},
		{"web-listen", "FORERUN_WEB_LISTEN", "", "`ADDRESS` of web actions, which --listen then does not serve; empty: --listen serves them", setWebListen},
		{"web-host", "FORERUN_WEB_HOST", "", "`HOST` of web actions for each tenant, like TENANT.example.org or https://TENANT.example.org; empty: any host", setWebHost},
		{"data", "FORERUN_DATA", DataFolder(root, home), "`FOLDER` of everything the server keeps", setData},
		{"redis-listen", "FORERUN_REDIS_LISTEN", "", "`ADDRESS` where Redis clients reach the state of functions (AUTH uuid key); empty: closed", setRedisListen},
		{"console-listen", "FORERUN_CONSOLE_LISTEN", "", "`ADDRESS` of the console, a page on which tenants see what runs, and of nothing else; empty: there is none", setConsoleListen},
		{"metrics-listen", "FORERUN_METRICS_LISTEN", "", "`ADDRESS` of /metrics and /healthz, which no other listener then serves; empty: --listen serves them", setMetricsListen},
		{"tls", "FORERUN_TLS", "auto", "auto: TLS on every address off the loopback, or on: on the loopback, too", setTLS},
		{"tls-name", "FORERUN_TLS_NAME", "", "`NAMES` that the server's certificate is for, comma-separated; empty: the host's name and the addresses listened on", setTLSNames},
		{"tls-cert", "FORERUN_TLS_CERT", "", "`FILE` of the server's certificate in PEM, read again when it changes; empty: the server signs its own", setTLSCert},
		{"tls-key", "FORERUN_TLS_KEY", "", "`FILE` of the key of --tls-cert", setTLSKey},
		{"http3", "FORERUN_HTTP3", "on", "on: where there is TLS also HTTP/3, over UDP on the same port, or off", setHTTP3},
		{"early-data", "FORERUN_EARLY_DATA", "safe", "safe: what is safe to repeat may come as early data of HTTP/3, or off: none (docs/reference/security.md)", setEarlyData},
		{"egress-allow", "FORERUN_EGRESS_ALLOW", "", "`NETWORKS` (CIDR or address, with :PORT or without, comma-separated) that functions may reach besides the public internet; this machine's addresses only singly, and never the loopback", setEgressAllow},
		{"egress-deny", "FORERUN_EGRESS_DENY", "", "`NETWORKS` (CIDR or address, with :PORT or without, comma-separated) that functions may not reach, whatever else is allowed", setEgressDeny},
		{"memory", "FORERUN_MEMORY", "0", "`MIB` that all sandboxes together may use; 0: half of the machine's memory", setMemory},
		{"cpu-weight", "FORERUN_CPU_WEIGHT", "0", "`WEIGHT` of all sandboxes together beside other programs of the machine, 1 to 10000, where one program has 100; 0: 100 for each processor", setCPUWeight},
		{"keep-alive", "FORERUN_KEEP_ALIVE", "10m", "`TIME` that a sandbox stays without work, like 90s or 1h", setKeepAlive},
		{"prewarm", "FORERUN_PREWARM", "2", "`NUMBER` of sandboxes held ready, without code, for each language in use; 0: none", setPrewarm},
		{"schedule", "FORERUN_SCHEDULE", string(schedule.Oversubscribe), "`POLICY` of the scheduler: oversubscribe, task, microtask-static, microtask or auto (docs/reference/scheduling.md)", setSchedule},
		{"queue-time", "FORERUN_QUEUE_TIME", "10m", "`TIME` that an activation may wait for a sandbox before it is given up", setQueueTime},
		{"speculate", "FORERUN_SPECULATE", "all", "how far invocations speculate: off, branches or all, optionally with ; depth=32 ; band=0.1 ; least=1ms ; load=any ; squash=sandbox (docs/reference/speculation.md; actions and requests may ask for less)", setSpeculate},
		{"cache", "FORERUN_CACHE", "on", "on, or off: then annotated functions are executed each time (docs/reference/cache.md)", setCache},
		{"offload", "FORERUN_OFFLOAD", "on", "on, or off: then no Java application has methods run as functions (docs/reference/offload.md)", setOffload},
		number("cache-rows", "5000", "`NUMBER` of known results that are kept of one tenant at most", 1, 10_000_000, func(c *Config, n int) { c.CacheRows = n }),
		number("cache-megabytes", "512", "`MIB` of memory that the known results of all tenants may take", 1, 1<<20, func(c *Config, n int) { c.CacheMiB = n }),
		{"max-timeout", "FORERUN_MAX_TIMEOUT", "1h", "longest `TIME` that an action may ask for as its limit, like 5m", setMaxTimeout},
		bound("max-memory", "512", "`MIB` of memory that an action may ask for at most", 256, 1<<20, func(b *forerun.Bounds, n int) { b.Memory = n }),
		bound("max-logs", "10", "`MIB` of logs that an action may ask for at most", 10, 256, func(b *forerun.Bounds, n int) { b.Logs = n }),
		bound("max-payload", "6", "`MIB` that the input of an activation may have, and its result", 1, 32, func(b *forerun.Bounds, n int) { b.Payload = n << 20 }),
		bound("max-code", "48", "`MIB` that the code of an action may have", 1, 60, func(b *forerun.Bounds, n int) { b.Code = n << 20 }),
		bound("max-unpacked", "512", "`MIB` that an action's archive may extract to", 1, 512, func(b *forerun.Bounds, n int) { b.Unpacked = n }),
		bound("max-processes", "256", "`NUMBER` of processes and threads in a sandbox", 32, 32768, func(b *forerun.Bounds, n int) { b.Processes = n }),
		bound("max-tmp", "512", "`MIB` of a sandbox's /tmp", 1, 1<<20, func(b *forerun.Bounds, n int) { b.Tmp = n }),
		{"user", "FORERUN_USER", strconv.Itoa(DefaultUser), "`UID` that the server runs as when started by root", setUser},
		{"sync", "FORERUN_SYNC", "false", "write activation records to disk before an invocation is answered (else within 10 ms)", setSync},
		{"keep-activations", "FORERUN_KEEP_ACTIVATIONS", "168h", "`TIME` that activation records are kept, like 168h, or forever", setKeepAge},
		{"keep-megabytes", "FORERUN_KEEP_MEGABYTES", "1024", "`MIB` on disk from which a tenant's oldest activation records are removed, or none", setKeepBytes},
		limit("invocations-per-minute", "none", "`NUMBER` of invocations a tenant may begin in a minute, or none", func(l *registry.Limits) *int { return &l.InvocationsPerMinute }),
		limit("concurrent-invocations", "1000", "`NUMBER` of a tenant's invocations that may run at once, or none", func(l *registry.Limits) *int { return &l.ConcurrentInvocations }),
		limit("queued-invocations", "1000", "`NUMBER` of a tenant's invocations that may wait for a sandbox, or none", func(l *registry.Limits) *int { return &l.QueuedInvocations }),
		limit("fires-per-minute", "none", "`NUMBER` of times a tenant may fire triggers in a minute, or none", func(l *registry.Limits) *int { return &l.FiresPerMinute }),
		limit("stored-actions", "none", "`NUMBER` of actions a tenant may have, or none", func(l *registry.Limits) *int { return &l.StoredActions }),
		{"stored-megabytes", "FORERUN_STORED_MEGABYTES", "50%", "`MIB` that a tenant may store in all (state, entities, code, records, idempotency keys), or a share like 50% of the disk's free room and its own, or none", setStored},
		limit("timed-triggers", "1000", "`NUMBER` of triggers with a timer that a tenant may have, or none", func(l *registry.Limits) *int { return &l.TimedTriggers }),
		{"cpu-profile", "FORERUN_CPU_PROFILE", "", "`FOLDER` to leave a profile of the server's processor time in, for go tool pprof; empty: none is made", setCPUProfile},
	}
}

// DataFolder is the data folder of a server that is told of no other.
func DataFolder(root bool, home string) string {
	if root {
		return "/var/lib/forerun"
	}
	return filepath.Join(home, "forerun")
}

// StateHome is where programs of an ordinary user keep their state: $XDG_STATE_HOME, or its default.
func StateHome(getenv func(string) string) string {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(getenv("HOME"), ".local", "state")
}

// Load builds the settings. flags holds those given on the command line, by name; file is the path of the
// configuration file, or empty.
func Load(settings []Setting, flags map[string]string, getenv func(string) string, file string) (*Config, error) {
	lines, err := readFile(settings, file)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	for _, s := range settings {
		value, where := s.Default, "default of --"+s.Name
		if v, ok := lines[s.Name]; ok {
			value, where = v, s.Name+" in "+file
		}
		if v := getenv(s.Env); v != "" {
			value, where = v, s.Env
		}
		if v, ok := flags[s.Name]; ok {
			value, where = v, "--"+s.Name
		}
		if err := s.set(c, value); err != nil {
			return nil, forerun.Errorf(forerun.Invalid, where, "%w", err)
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return nil, forerun.Errorf(forerun.Invalid, "--tls-cert", "A certificate needs its key: give both --tls-cert and --tls-key.")
	}
	return c, nil
}

// readFile reads lines "name = value"; empty lines and lines that begin with # say nothing.
func readFile(settings []Setting, file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	data, err := textfile.Read(file)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "--config", "The configuration file cannot be read: %w", err)
	}
	return parse(settings, file, string(data))
}

func parse(settings []Setting, file, text string) (map[string]string, error) {
	known := make(map[string]bool)
	var names []string
	for _, s := range settings {
		known[s.Name] = true
		names = append(names, s.Name)
	}
	lines := make(map[string]string)
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if !ok || !known[name] {
			return nil, forerun.Errorf(forerun.Invalid, file+":"+strconv.Itoa(i+1),
				"%q is not a setting: write NAME = VALUE, where NAME is one of %s.", line, strings.Join(names, ", "))
		}
		lines[name] = strings.TrimSpace(value)
	}
	return lines, nil
}

// hostOfTenants is the form of --web-host: a scheme or none, the word TENANT, a domain, and a port or none.
var hostOfTenants = regexp.MustCompile(`^(?:(https?)://)?(TENANT(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)+(?::[0-9]{1,5})?)/?$`)

func setWebHost(c *Config, value string) error {
	if value == "" {
		return nil
	}
	parts := hostOfTenants.FindStringSubmatch(value)
	if parts == nil {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a host of web actions: write TENANT.example.org, with the word TENANT in the place of each tenant's name.", value)
	}
	c.WebScheme, c.WebHost = cmp.Or(parts[1], "https"), parts[2]
	return nil
}

func setData(c *Config, value string) (err error) {
	if value == "" {
		return forerun.Errorf(forerun.Invalid, "", "The data folder cannot be empty: name one.")
	}
	c.Data, err = filepath.Abs(value)
	return err
}

func setEgressAllow(c *Config, value string) (err error) {
	if c.EgressAllow, err = networks(value); err != nil {
		return err
	}
	for _, r := range c.EgressAllow {
		if r.Network.Addr().IsLoopback() {
			return forerun.Errorf(forerun.Invalid, "", "%v is of the loopback, which no function can reach. Have the service listen on another address of this machine, and allow that one, like 192.168.1.5.", r)
		}
	}
	return nil
}

func setEgressDeny(c *Config, value string) (err error) {
	c.EgressDeny, err = networks(value)
	return err
}

// networks reads a list of networks and addresses. A name is refused: its addresses change, and a denied host would be reached by its others.
func networks(value string) (list egress.List, err error) {
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		rule, err := egress.ParseRule(part)
		if err == nil && rule.Name != "" {
			err = errors.New("it is a name, and addresses of names change")
		}
		if err != nil {
			return nil, forerun.Errorf(forerun.Invalid, "", "%q is not a network: %w. Write it like 10.0.0.0/8, 10.1.0.0/16:5432, 192.168.1.5 or fd00::/8.", part, err)
		}
		list = append(list, rule)
	}
	return list, nil
}

func setMemory(c *Config, value string) (err error) {
	if c.MemoryMiB, err = strconv.Atoi(value); err != nil || c.MemoryMiB < 0 || c.MemoryMiB > 1<<30 {
		return forerun.Errorf(forerun.Invalid, "", "%q is not an amount of memory: write a number of MiB, like 4096.", value)
	}
	return nil
}

// weightOfProcessor is the weight that the kernel gives one program: functions compete as one program for each processor.
const weightOfProcessor, maxWeight = 100, 10_000

func setCPUWeight(c *Config, value string) (err error) {
	if c.CPUWeight, err = strconv.Atoi(value); err != nil || c.CPUWeight < 0 || c.CPUWeight > maxWeight {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a weight: write a number from 1 to %d, or 0 for %d for each processor.", value, maxWeight, weightOfProcessor)
	}
	if c.CPUWeight == 0 {
		c.CPUWeight = min(runtime.NumCPU()*weightOfProcessor, maxWeight)
	}
	return nil
}

func setKeepAlive(c *Config, value string) (err error) {
	c.KeepAlive, err = parseTime(value)
	return err
}

func setSchedule(c *Config, value string) (err error) {
	if c.Schedule, err = schedule.ParsePolicy(value); err != nil {
		return forerun.Errorf(forerun.Invalid, "", "%w.", err)
	}
	return nil
}

func setQueueTime(c *Config, value string) (err error) {
	c.QueueTime, err = parseTime(value)
	return err
}

func parseTime(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Millisecond || d > 1000*time.Hour {
		return 0, forerun.Errorf(forerun.Invalid, "", "%q is not a time: write a number with its unit, like 500ms, 90s or 1h, at most 1000h.", value)
	}
	return d, nil
}

// maxPrewarm bounds the sandboxes that are made before anybody asks for them.
const maxPrewarm = 64

func setPrewarm(c *Config, value string) (err error) {
	if c.Prewarm, err = strconv.Atoi(value); err != nil || c.Prewarm < 0 || c.Prewarm > maxPrewarm {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a number of sandboxes to hold ready: write one from 0 to %d.", value, maxPrewarm)
	}
	return nil
}

func setSpeculate(c *Config, value string) (err error) {
	c.Speculate, err = speculate.ParseSettings(value)
	return err
}

func setCache(c *Config, value string) error {
	if value != "on" && value != "off" {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a setting of the cache: write on or off.", value)
	}
	c.Cache = value == "on"
	return nil
}

func setOffload(c *Config, value string) error {
	if value != "on" && value != "off" {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a setting of offloading: write on or off.", value)
	}
	c.Offload = value == "on"
	return nil
}

func setUser(c *Config, value string) (err error) {
	if c.User, err = strconv.Atoi(value); err != nil || c.User < 1 || c.User > 1<<31 {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a user that the server can run as: write a numeric uid other than 0.", value)
	}
	return nil
}

func setCPUProfile(c *Config, value string) error {
	c.CPUProfile = value
	return nil
}

func setSync(c *Config, value string) (err error) {
	if c.Sync, err = strconv.ParseBool(value); err != nil {
		return forerun.Errorf(forerun.Invalid, "", "%q is neither true nor false: write one of them.", value)
	}
	return nil
}

func setKeepAge(c *Config, value string) (err error) {
	c.Keep.Age = 0
	if value == "forever" {
		return nil
	}
	if c.Keep.Age, err = time.ParseDuration(value); err != nil || c.Keep.Age < time.Minute {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a time to keep records: write one like 168h or 90m, at least 1m, or forever.", value)
	}
	return nil
}

func setKeepBytes(c *Config, value string) error {
	c.Keep.Bytes = 0
	if value == "none" {
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 1 {
		return forerun.Errorf(forerun.Invalid, "", "%q is not an amount of records: write a number of MiB, like 1024, or none.", value)
	}
	c.Keep.Bytes = n << 20
	return nil
}

// limit is the setting of a limit that holds for tenants who have no quota of their own.
func limit(name, otherwise, usage string, of func(*registry.Limits) *int) Setting {
	env := "FORERUN_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return Setting{name, env, otherwise, usage, func(c *Config, value string) (err error) {
		*of(&c.Limits), err = parseLimit(value)
		return err
	}}
}

// setStored reads a number of MiB, none, or a share of the disk.
func setStored(c *Config, value string) (err error) {
	c.Limits.StoredMegabytes, c.Limits.StoredShare = registry.NoLimit, 0
	if share, ok := strings.CutSuffix(value, "%"); ok {
		n, err := strconv.Atoi(share)
		if err != nil || n < 1 || n > maxShare {
			return forerun.Errorf(forerun.Invalid, "", "%q is not a share of the disk: write one from 1%% to %d%%.", value, maxShare)
		}
		c.Limits.StoredShare = n
		return nil
	}
	c.Limits.StoredMegabytes, err = parseLimit(value)
	return err
}

// maxShare leaves other tenants some room.
const maxShare = 90

func parseLimit(value string) (int, error) {
	if value == "none" {
		return registry.NoLimit, nil
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0, forerun.Errorf(forerun.Invalid, "", "%q is not a limit: write a number, or none.", value)
	}
	return int(n), nil
}
