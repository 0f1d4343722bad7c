package harness

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// answerLimit is how long an answer may take before a benchmark gives up.
const answerLimit = time.Minute

// Request is one HTTP request, written once to be sent again and again, and what its answer must hold.
type Request struct {
	address string
	text    []byte
	want    []byte
}

// NewRequest makes the request that posts a JSON body. auth is "user:password" or empty; want is a part of each right answer;
// headers are names and values.
func NewRequest(target, auth, body, want string, headers ...string) (*Request, error) {
	r, err := http.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if user, password, ok := strings.Cut(auth, ":"); ok {
		r.SetBasicAuth(user, password)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		return nil, err
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	return &Request{address: u.Host, text: text.Bytes(), want: []byte(want)}, nil
}

// Connection is one kept-alive connection of a client that costs little: it shares the processors with what it measures. It is
// for one goroutine.
type Connection struct {
	request *Request
	conn    net.Conn
	answers *bufio.Reader
	body    bytes.Buffer
}

// Connect opens a connection on which a request can be sent.
func (r *Request) Connect(ctx context.Context) (*Connection, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.address)
	if err != nil {
		return nil, err
	}
	return &Connection{request: r, conn: conn, answers: bufio.NewReader(conn)}, nil
}

// Close closes the connection.
func (c *Connection) Close() { c.conn.Close() }

// Answer is the body of the last answer, until the next request is sent.
func (c *Connection) Answer() []byte { return c.body.Bytes() }

// Call sends the request that the connection was opened for and returns how long its answer took. The error says so if the
// answer is not what it must be.
func (c *Connection) Call(ctx context.Context) (time.Duration, error) { return c.Send(ctx, c.request) }

// Send is Call with another request to the same server.
func (c *Connection) Send(ctx context.Context, r *Request) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := c.conn.SetDeadline(begin.Add(answerLimit)); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(r.text); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	c.body.Reset()
	if _, err = c.body.ReadFrom(resp.Body); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if resp.StatusCode != http.StatusOK || !bytes.Contains(c.body.Bytes(), r.want) {
		return took, fmt.Errorf("the answer was %d: %.200s", resp.StatusCode, c.body.Bytes())
	}
	return took, nil
}
