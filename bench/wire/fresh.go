package wire

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quic-go/quic-go/http3"

	"forerun.dev/forerun/bench/harness"
	openwhisk "forerun.dev/forerun/sdk/go"
)

// NetCommand and ClientCommand are the commands of the processes at the two ends of the long way, each in a network of its own.
const (
	NetCommand    = "wire-net"
	ClientCommand = "wire-client"
)

// The ways to make a call over a new connection.
const (
	getTCP      = "GET over TCP"
	getHTTP3    = "GET over HTTP/3"
	getEarly    = "GET over HTTP/3, early"
	postTCP     = "POST over TCP, net/http"
	postEarly   = "POST over HTTP/3, sdk/go"
	postPython  = "POST over TCP, requests"
	earlyPython = "POST over HTTP/3, sdk/python"
)

// measured is what the client tells.
type measured struct {
	Took  map[string][]float64 // milliseconds, by way
	Early map[string]int       // requests that the server ran as early data, of each way
}

// place is where the server is, for its client.
type place struct {
	URL, Auth, CA, Python, Packages, Folder string
	Count                                   int
}

// long measures new connections over a long way, in networks of their own.
func (b *bench) long(ctx context.Context) error {
	if os.Getuid() != 0 {
		return errors.New("to make networks takes root: run make bench-wire as root")
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", NetCommand, "--binary", b.binary, "--native", b.native, "--python", b.python, "--folder", b.folder, "--count", strconv.Itoa(b.count(100)))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return err
	}
	var got measured
	if err := json.Unmarshal(text, &got); err != nil {
		return fmt.Errorf("the client told %.200q: %w", text, err)
	}
	samples := make(map[string]*harness.Sample)
	for way, values := range got.Took {
		s := new(harness.Sample)
		for i, v := range values {
			if i%max(1, len(values)/rounds) == 0 {
				s.Round()
			}
			s.AddMilliseconds(v)
		}
		samples[way] = s
	}
	for _, way := range []string{getTCP, getHTTP3, getEarly, postTCP, postEarly, postPython, earlyPython} {
		if samples[way] != nil {
			b.fresh = append(b.fresh, bar{way, samples[way].P50()})
		}
	}
	const where = "new connection, RTT 50 ms, "
	b.saved(where+getHTTP3, "TLS 1.3 over TCP", samples[getHTTP3], samples[getTCP], ">=0.3", nil)
	b.saved(where+getEarly, "TLS 1.3 over TCP", samples[getEarly], samples[getTCP], ">=0.6", nil)
	b.saved(where+postEarly, "net/http", samples[postEarly], samples[postTCP], ">=0.55", nil)
	b.early(where, postEarly, got)
	if samples[earlyPython] == nil {
		fmt.Fprintln(os.Stderr, "without a Python that has aioquic, sdk/python is not measured: make bench-wire installs it")
		return nil
	}
	b.saved(where+earlyPython, "requests", samples[earlyPython], samples[postPython], ">=0.55", nil)
	b.early(where, earlyPython, got)
	return nil
}

// early adds how many calls ran as early data.
func (b *bench) early(where, way string, got measured) {
	b.row(harness.Row{Case: where + way, Metric: "ran as early data", Unit: "of all", Value: harness.Number(float64(got.Early[way]) / float64(len(got.Took[way]))), Target: harness.Text(">=1")})
}

// Net runs the server's end: a network with a server, and a client in another network at the end of a long way.
func Net(ctx context.Context, args []string) (err error) {
	b := new(bench)
	var at place
	f := flag.NewFlagSet(NetCommand, flag.ContinueOnError)
	f.StringVar(&b.binary, "binary", "", "the server's `PATH`")
	f.StringVar(&b.native, "native", "", "`PATH` of the compiled function")
	f.StringVar(&at.Python, "python", "", "`PATH` of a Python with aioquic")
	f.StringVar(&b.folder, "folder", "", "`FOLDER` for data")
	f.IntVar(&at.Count, "count", 10, "calls of each way")
	if err := f.Parse(args); err != nil {
		return err
	}
	w, err := newWire("wire-a", "wire-b")
	if err != nil {
		return err
	}
	w.run(roundTrip / 2)
	if err := ip("link set lo up\naddr add " + serverIP + "/24 dev wire-a\nlink set wire-a mtu 1500 up"); err != nil {
		return err
	}
	s, err := b.start(ctx, b.binary, "long", "--listen", "0.0.0.0:0", "--tls-name", "127.0.0.1,"+serverIP)
	if err != nil {
		return err
	}
	defer stop(s)
	packages, err := filepath.Abs(filepath.Join(filepath.Dir(b.binary), "runtimes/python/packages"))
	if err != nil {
		return err
	}
	at.URL, at.Auth, at.CA, at.Packages, at.Folder = strings.Replace(s.URL, "127.0.0.1", serverIP, 1), s.Auth, s.CA(), packages, b.folder
	return runClient(ctx, at)
}

// runClient runs the client in a network of its own.
func runClient(ctx context.Context, at place) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", ClientCommand)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = ip("link set wire-b netns " + strconv.Itoa(cmd.Process.Pid))
	if err == nil {
		err = json.NewEncoder(in).Encode(at) // it waits for this
	}
	return errors.Join(err, in.Close(), cmd.Wait())
}

// Client runs the client's end, with a place on its standard input.
func Client(ctx context.Context, _ []string) error {
	var at place
	if err := json.NewDecoder(os.Stdin).Decode(&at); err != nil {
		return err
	}
	if err := ip("link set lo up\naddr add " + clientIP + "/24 dev wire-b\nlink set wire-b mtu 1500 up"); err != nil {
		return err
	}
	if err := os.Setenv("XDG_CACHE_HOME", filepath.Join(at.Folder, "cache")); err != nil { // for tickets
		return err
	}
	c, err := newCaller(ctx, at)
	if err != nil {
		return err
	}
	defer c.end()
	if err := c.measure(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(c.got)
}

// caller makes calls over new connections.
type caller struct {
	place
	ca     string
	config *tls.Config
	python *exec.Cmd // nil: there is none
	ask    io.Writer
	tell   *bufio.Scanner

	metrics *http.Client // over TCP
	got     measured
}

//go:embed client.py
var clientCode string

func newCaller(ctx context.Context, at place) (*caller, error) {
	ca, err := os.ReadFile(at.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	c := &caller{
		place: at, ca: string(ca), config: config, got: measured{make(map[string][]float64), make(map[string]int)},
		metrics: &http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone()}},
	}
	if _, err := os.Stat(at.Python); err != nil {
		return c, nil
	}
	c.python = exec.CommandContext(ctx, at.Python, "-B", "-c", clientCode, at.URL, at.Auth, at.CA, path)
	c.python.Env = append(os.Environ(), "PYTHONPATH="+at.Packages)
	c.python.Stderr = os.Stderr
	if c.ask, err = c.python.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.python.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.tell = bufio.NewScanner(out)
	return c, c.python.Start()
}

// end ends the client in Python.
func (c *caller) end() {
	if c.python != nil {
		_ = c.python.Process.Kill() // it waits for a line
		_ = c.python.Wait()         // as above
	}
}

// measure makes the calls in turn. The first of each way is not counted: it has no ticket.
func (c *caller) measure(ctx context.Context) error {
	ways := []string{getTCP, getHTTP3, getEarly, postTCP, postEarly}
	if c.python != nil {
		ways = append(ways, postPython, earlyPython)
	}
	for turn := range c.Count + 1 {
		for i := range ways {
			way := ways[(turn+i)%len(ways)]
			before, err := c.accepted(ctx)
			if err != nil {
				return err
			}
			took, err := c.call(ctx, way)
			if err != nil {
				return fmt.Errorf("%s: %w", way, err)
			}
			after, err := c.accepted(ctx)
			if err != nil {
				return err
			}
			if turn > 0 {
				c.got.Took[way] = append(c.got.Took[way], took)
				c.got.Early[way] += after - before
			}
		}
	}
	return nil
}

// call makes one call over a new connection, and returns its milliseconds. The time after the answer does not count.
func (c *caller) call(ctx context.Context, way string) (float64, error) {
	switch way {
	case postPython:
		return c.askPython("requests")
	case earlyPython:
		return c.askPython("openwhisk")
	}
	transport, end, err := c.transport(way)
	if err != nil {
		return 0, err
	}
	defer end()
	client := &http.Client{Transport: transport}
	begin := time.Now()
	if strings.HasPrefix(way, "POST") {
		err = post(ctx, client, c.URL, c.Auth, "key "+rand.Text())
	} else {
		err = get(ctx, client, c.URL, c.Auth)
	}
	return time.Since(begin).Seconds() * 1000, err
}

func (c *caller) transport(way string) (t http.RoundTripper, end func(), err error) {
	switch way {
	case getTCP, postTCP:
		t := &http.Transport{TLSClientConfig: c.config.Clone()}
		return t, t.CloseIdleConnections, nil
	case getHTTP3:
		t := &http3.Transport{TLSClientConfig: c.config.Clone()}
		return t, func() { _ = t.Close() }, nil // the call was answered
	}
	own, err := openwhisk.NewTransport(c.ca)
	if err != nil {
		return nil, nil, err
	}
	return own, own.Close, nil
}

// askPython has the client in Python make a call.
func (c *caller) askPython(how string) (float64, error) {
	if _, err := fmt.Fprintln(c.ask, how); err != nil {
		return 0, err
	}
	if !c.tell.Scan() {
		return 0, errors.Join(errors.New("the client in Python has ended"), c.tell.Err())
	}
	return strconv.ParseFloat(c.tell.Text(), 64)
}

// accepted reads from the metrics how many requests ran as early data, over TCP.
func (c *caller) accepted(ctx context.Context) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := c.metrics.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "\nforerun_early_accepted_total ")
	number, _, _ := strings.Cut(after, "\n")
	return strconv.Atoi(number)
}
