package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/seats"
)

// pipes is a listener whose connections are pipes: what one end writes it waits for the other end to read.
type pipes chan net.Conn

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (p pipes) Close() error { return nil }

// Addr implements net.Listener.
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// visitor is a client of a server in the test's bubble.
type visitor struct {
	*testing.T
	net.Conn
	replies *bufio.Reader
}

// fewStrangers is how many connections without a key there may be in tests.
const fewStrangers = 100

// serve runs a test with a server of an API, with so many connections for tenants.
func serve(t *testing.T, conns int, api http.HandlerFunc, test func(t *testing.T, visit func() *visitor)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.NewTextHandler(io.Discard, nil))
		s := NewServer(newDoor(t, t.Output(), api, nil), seats.New(conns, fewStrangers), nil, log)
		door := make(pipes)
		go func() { _ = s.Serve(door) }()
		test(t, func() *visitor {
			inside, outside := net.Pipe()
			door <- inside
			return &visitor{t, outside, bufio.NewReader(outside)}
		})
		close(door)
		_ = s.Close()
		time.Sleep(time.Second) // http.Server ends some connections a little later
	})
}

// send sends text, as far as the server reads it.
func (v *visitor) send(text string) {
	go func() { _, _ = io.WriteString(v.Conn, text) }() // what is missing has no answer
}

// reply is the next answer, which comes within an hour: its status, and how long it is.
func (v *visitor) reply() (status int, body string) {
	v.Helper()
	_ = v.SetReadDeadline(time.Now().Add(time.Hour))
	r, err := http.ReadResponse(v.replies, nil)
	if err != nil {
		v.Errorf("no answer: %v", err)
		return 0, ""
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		v.Errorf("an answer of %d that ends with %v", r.StatusCode, err)
	}
	return r.StatusCode, string(content)
}

// isCut says whether the connection ends within an hour, without a further answer.
func (v *visitor) isCut() bool {
	_ = v.SetReadDeadline(time.Now().Add(time.Hour))
	_, err := v.replies.ReadByte()
	return errors.Is(err, io.EOF)
}

// TestBodiesThatDoNotCome announces bodies of which not all is sent: the answer comes all the same, and then the connection ends.
func TestBodiesThatDoNotCome(t *testing.T) {
	const large = smallBody
	refuse := func(w http.ResponseWriter, r *http.Request) {
		Fail(w, r, forerun.Errorf(forerun.Unauthorized, "", "no"))
	}
	read := func(w http.ResponseWriter, r *http.Request) {
		if _, err := Body(w, r, large); err != nil {
			Fail(w, r, err)
		}
	}
	for name, test := range map[string]struct {
		head, sent string
		api        http.HandlerFunc
		status     int
	}{
		"not read":                  {"Content-Length: 5", "", refuse, 401},
		"not read, a part":          {"Content-Length: 5", "1234", refuse, 401},
		"not read, in parts":        {"Transfer-Encoding: chunked", "2\r\n12\r\n", refuse, 401},
		"read":                      {"Content-Length: 5", "1234", read, 504},
		"read in parts":             {"Transfer-Encoding: chunked", "2\r\n12\r\n", read, 504},
		"read in parts, too large":  {"Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n", large+1, strings.Repeat("x", large+1)), read, 413},
		"announced to be too large": {fmt.Sprintf("Content-Length: %d", large+1), "1234", read, 413},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, 1, test.api, func(t *testing.T, visit func() *visitor) {
				v, began := visit(), time.Now()
				v.send("POST / HTTP/1.1\r\nHost: x\r\n" + test.head + "\r\n\r\n" + test.sent)
				if status, body := v.reply(); status != test.status {
					t.Errorf("%d %s", status, body)
				}
				if !v.isCut() || time.Since(began) > 2*bodyTime+time.Second {
					t.Errorf("the connection ends after %v", time.Since(began))
				}
			})
		})
	}
}

// TestWhoSendsAllFirstHearsTheRefusal: a body that nobody reads is taken from a client that listens only when it has sent all.
func TestWhoSendsAllFirstHearsTheRefusal(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	for name, sent := range map[string]string{
		"length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
				Fail(w, r, forerun.Errorf(forerun.Unauthorized, "", "no"))
			}, func(t *testing.T, visit func() *visitor) {
				v := visit()
				for range 2 { // on the same connection
					if _, err := io.WriteString(v.Conn, "POST / HTTP/1.1\r\nHost: x\r\n"+sent); err != nil {
						t.Errorf("what is sent is not taken: %v", err)
						return
					}
					if status, body := v.reply(); status != 401 {
						t.Errorf("%d %s", status, body)
					}
				}
			})
		})
	}
}

// TestHeadsThatDoNotCome sends a part of one.
func TestHeadsThatDoNotCome(t *testing.T) {
	serve(t, 1, seatAll, func(t *testing.T, visit func() *visitor) {
		v, began := visit(), time.Now()
		v.send("GET / HTTP/1.1\r\nHost:")
		if !v.isCut() || time.Since(began) > headTime+time.Second {
			t.Errorf("the connection ends after %v", time.Since(began))
		}
	})
}

// TestAnswersThatNobodyReads leaves a small answer unread, and reads a large one slowly.
func TestAnswersThatNobodyReads(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 10*answerPart)
	serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		body := large
		if r.URL.Path == "/small" {
			body = large[:100]
		}
		_, _ = w.Write(body)
	}, func(t *testing.T, visit func() *visitor) {
		v := visit()
		v.send("GET /small HTTP/1.1\r\nHost: x\r\n\r\n")
		time.Sleep(partTime + time.Second)
		if !v.isCut() {
			t.Error("the connection is there after a minute")
		}
		v = visit()
		v.send("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		_ = v.SetReadDeadline(time.Now().Add(time.Hour))
		got := 0
		for {
			time.Sleep(partTime - time.Second)
			n, err := io.CopyN(io.Discard, v.replies, answerPart)
			if got += int(n); err != nil {
				break
			}
		}
		if got < len(large) {
			t.Errorf("who reads slowly got %d bytes of %d", got, len(large))
		}
	})
}

// TestLongRequests: who waits for an answer waits as long as it takes, with and without a body, and may ask again on the connection.
func TestLongRequests(t *testing.T) {
	serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		body, err := Body(w, r, smallBody)
		if err != nil {
			t.Error(err)
		}
		select {
		case <-time.After(30 * time.Minute):
			_, _ = w.Write(body)
		case <-r.Context().Done():
			t.Error("it was given up")
		}
	}, func(t *testing.T, visit func() *visitor) {
		v := visit()
		for range 2 {
			v.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
			if status, body := v.reply(); status != 200 || body != "body" {
				t.Errorf("%d %q", status, body)
			}
			v.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			if status, body := v.reply(); status != 200 || body != "" {
				t.Errorf("%d %q", status, body)
			}
			time.Sleep(idleTime - time.Second)
		}
		if !v.isCut() {
			t.Error("an idle connection stays")
		}
	})
}

// isOpen says whether the connection is there, and no answer.
func (v *visitor) isOpen() bool {
	_ = v.SetReadDeadline(time.Now().Add(time.Nanosecond))
	_, err := v.replies.ReadByte()
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// ask makes a request as somebody.
func (v *visitor) ask(path, as string) (status int) {
	v.Helper()
	v.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nAs: " + as + "\r\n\r\n")
	status, _ = v.reply()
	return status
}

// seatAll gives each request the seat that it asks for.
func seatAll(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/operator" {
		if err := SeatOperator(w, r); err != nil {
			Fail(w, r, err)
		}
	} else if err := Seat(w, r, r.Header.Get("As")); err != nil {
		Fail(w, r, err)
	}
}

// TestConnectionsAreShared: when all connections are taken a tenant still has its part of them, and the operator and who asks whether the
// server is well are served.
func TestConnectionsAreShared(t *testing.T) {
	serve(t, 4, seatAll, func(t *testing.T, visit func() *visitor) {
		first := visit()
		for i, step := range []struct {
			tenant string
			want   int
		}{
			{"large", 200},
			{"large", 200},
			{"large", 200},
			{"large", 200},
			{"large", 429},
			{"small", 200},
			{"small", 200},
			{"small", 429},
			{"third", 200},
			{"third", 429},
		} {
			v := first
			if i > 0 {
				v = visit()
			}
			if got := v.ask("/", step.tenant); got != step.want {
				t.Errorf("connection %d, of %s: %d, not %d", i, step.tenant, got, step.want)
			}
			if step.want == 429 && !v.isCut() {
				t.Errorf("connection %d stays", i)
			}
		}
		for range 5 {
			if health, operator := visit().ask("/healthz", ""), visit().ask("/operator", ""); health != 200 || operator != 200 {
				t.Errorf("health is answered %d, the operator %d", health, operator)
			}
		}
		if got := first.ask("/", "fourth"); got != 200 {
			t.Errorf("a connection that is another's now: %d", got)
		}
		_ = first.Close()
		synctest.Wait()
		if got := visit().ask("/", "fourth"); got != 200 {
			t.Errorf("when one has gone: %d", got)
		}
	})
}

// TestStrangersAreCut: very many connections without a key take nobody else's.
func TestStrangersAreCut(t *testing.T) {
	serve(t, 4, seatAll, func(t *testing.T, visit func() *visitor) {
		tenant, operator := visit(), visit()
		tenant.ask("/", "ada")
		operator.ask("/operator", "")
		strangers := make([]*visitor, fewStrangers+20)
		for i := range strangers {
			strangers[i] = visit()
		}
		synctest.Wait()
		open := 0
		for _, v := range strangers {
			if v.isOpen() {
				open++
			}
		}
		if open != fewStrangers {
			t.Errorf("%d strangers stay", open)
		}
		if got := tenant.ask("/", "ada"); got != 200 {
			t.Errorf("the tenant is answered %d", got)
		}
		if got := operator.ask("/operator", ""); got != 200 {
			t.Errorf("the operator is answered %d", got)
		}
	})
}
