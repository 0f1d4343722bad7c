// Package whisk is a client of OpenWhisk's REST API, version 1, as the command
// line needs it: it finds the API from what a person writes for a host, sends a
// request, and tells apart what can go wrong: an answer that refuses is an
// *Error, a host that cannot be reached is a *url.Error.
//
// Documents come back both decoded and as the server wrote them. Retries,
// words for people and exit codes are its caller's.
package whisk

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"forerun.dev/forerun/internal/canonical"
)

// DefaultPort is where `forerun serve` listens.
const DefaultPort = "3233"

// maxAnswer bounds what is read of one answer, in bytes: an action with its code is the largest.
const maxAnswer = 80 << 20

// Options say where the API is and who calls.
type Options struct {
	Host      string       // "localhost", "host:port" or a URL; without a scheme, HTTP on the loopback and HTTPS elsewhere
	Auth      string       // "uuid:key"
	Root      string       // where the API's paths begin; empty: OpenWhisk's, "/api/v1/"
	Insecure  bool         // do not check the certificate of an HTTPS host
	CA        string       // certificate authorities in PEM that are trusted beside the system's
	UserAgent string       // of each request
	Trace     func(string) // gets a line per request and answer; nil: none
}

// Client calls one API with one key. It may be used concurrently.
type Client struct {
	base           string // "http://127.0.0.1:3233"
	root           string // "/api/v1/"
	user, password string
	agent          string
	trace          func(string)
	http           *http.Client
}

// New makes a client; no request is sent.
func New(o Options) (*Client, error) {
	base, err := BaseURL(o.Host)
	if err != nil {
		return nil, err
	}
	user, password, ok := strings.Cut(strings.TrimSpace(o.Auth), ":")
	if !ok {
		return nil, fmt.Errorf("the key has no colon: write it as UUID:KEY. A key stands after AUTH= in the server's DATA/wskprops, the operator's in DATA/operator")
	}
	if o.Trace == nil {
		o.Trace = func(string) {}
	}
	if o.Root == "" {
		o.Root = "/api/v1/"
	}
	secure, err := trust(o)
	if err != nil {
		return nil, err
	}
	return &Client{
		base: base, root: o.Root, user: user, password: password, agent: o.UserAgent, trace: o.Trace,
		http: &http.Client{Transport: transport(secure), CheckRedirect: mayFollow},
	}, nil
}

// At returns a client of another API of the same server, whose paths begin with root.
func (c *Client) At(root string) *Client {
	other := *c
	other.root = root
	return &other
}

// maxRedirects is how many http.Client itself follows.
const maxRedirects = 10

// mayFollow keeps what was sent over HTTPS off the network in the clear, and from other hosts than the one that was named: http.Client would
// send the key along to the same host, and to those below it, and the body, in which feeds have it, to all.
func mayFollow(next *http.Request, asked []*http.Request) error {
	switch last := asked[len(asked)-1]; {
	case last.URL.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("%s sends its callers from https to %s, where others could read the key: pass an https address with --apihost", last.URL.Host, next.URL.Scheme)
	case !strings.EqualFold(last.URL.Hostname(), next.URL.Hostname()):
		return fmt.Errorf("%s sends its callers to %s, which is not given the key: name that host yourself if you trust it", last.URL.Host, next.URL.Host)
	case len(asked) >= maxRedirects:
		return fmt.Errorf("the server redirected more than %d times: pass the address of the API itself with --apihost", maxRedirects)
	}
	return nil
}

// transport waits longer for an answer than a server waits for the end of a blocking invocation (60 s).
func transport(secure *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:       secure,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 90 * time.Second,
		MaxIdleConnsPerHost:   8,
	}
}

// BaseURL is the URL that a host stands for, without a path.
func BaseURL(host string) (string, error) {
	host = strings.TrimSpace(host)
	full := host
	if !strings.Contains(host, "://") {
		full = withScheme(host)
	}
	u, err := url.Parse(full)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not an API host: write HOST, HOST:PORT or a URL, like http://127.0.0.1:%s", host, DefaultPort)
	}
	return u.Scheme + "://" + u.Host, nil
}

// withScheme keeps keys off the network in the clear: HTTP is for the loopback alone. There, no port means Forerun's.
func withScheme(host string) string {
	u, err := url.Parse("http://" + host)
	switch {
	case err != nil || !isLoopback(u.Hostname()):
		return "https://" + host
	case u.Port() == "":
		return "http://" + u.Host + ":" + DefaultPort
	}
	return "http://" + host
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Host is the URL that requests go to.
func (c *Client) Host() string { return c.base }

// Auth is the key, as feeds want it.
func (c *Client) Auth() string { return c.user + ":" + c.password }

// Answer is what the server said, whatever its status.
type Answer struct {
	Status     int
	Activation string // the activation that the answer speaks of, if any
	Ahead      string // how many functions ran ahead, as docs/reference/speculation.md says; empty: the server does not say
	Ignored    string // what of the settings for running ahead is not in effect, and why; empty: nothing
	Body       []byte
}

// send sends a request to a path below the API's root and reads the whole answer. A nil body sends none.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any, headers ...header) (*Answer, error) {
	request, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		request.Header.Set(h.name, h.value)
	}
	begun := time.Now()
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, &url.Error{Op: method, URL: request.URL.String(), Err: err}
	}
	c.trace(fmt.Sprintf("%s %s -> %d, %d bytes, %d ms", method, request.URL, response.StatusCode, len(content), time.Since(begun).Milliseconds()))
	return &Answer{
		Status: response.StatusCode, Activation: response.Header.Get("X-Openwhisk-Activation-Id"),
		Ahead: response.Header.Get("X-Forerun-Speculation"), Ignored: response.Header.Get("X-Forerun-Speculate-Ignored"), Body: content,
	}, nil
}

type header struct{ name, value string }

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	target := c.base + c.root + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var content io.Reader
	if body != nil {
		encoded, err := canonical.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(c.user, c.password)
	request.Header.Set("User-Agent", c.agent)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// call sends a request and makes an *Error of an answer that refuses it.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body any) (*Answer, error) {
	answer, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	if answer.Status >= 300 {
		return nil, c.refusal(answer, method, path)
	}
	return answer, nil
}
