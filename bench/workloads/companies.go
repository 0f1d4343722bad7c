package workloads

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Companies are the third parties of the workloads. Each answers in 5 to 10 ms, which the question says alone: so runs that
// are compared wait equally. A path /wait/MS/... takes MS milliseconds in place of that. Elsewhere they would have machines of their own:
// so they do no more than they must, one question on each connection.
type Companies struct {
	listeners []net.Listener

	mu    sync.Mutex         // guards what follows
	acts  map[string]int     // how often each thing was done
	waits map[string]*Waited // by "application/function"
}

// Waited is what a function asked and had done, and how long it waited for that.
type Waited struct {
	Questions, Acts int
	Time            time.Duration
}

// StartCompanies starts both kinds of companies, in the network of Enter.
func StartCompanies() (*Companies, error) {
	c := &Companies{acts: make(map[string]int), waits: make(map[string]*Waited)}
	for _, address := range []string{actAddress, ReadAddress} {
		l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), "tcp", address+":80")
		if err != nil {
			c.Stop()
			return nil, err
		}
		c.listeners = append(c.listeners, l)
		go c.serve(l)
	}
	return c, nil
}

// Stop ends them. What is being asked is still answered.
func (c *Companies) Stop() {
	for _, l := range c.listeners {
		_ = l.Close() // nothing is kept
	}
}

// serve answers until Stop.
func (c *Companies) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go c.answer(conn)
		}
	}
}

// answer answers what is asked on a connection. Whoever asked may have been squashed meanwhile: then nobody hears it.
func (c *Companies) answer(conn net.Conn) {
	defer conn.Close()
	r, err := http.ReadRequest(bufio.NewReaderSize(conn, 512))
	if err != nil {
		return
	}
	path := strings.Trim(r.URL.Path, "/")
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(path)) // never fails
	wait := 5*time.Millisecond + time.Duration(sum.Sum32()%5001)*time.Microsecond
	if rest, ok := strings.CutPrefix(path, "wait/"); ok {
		ms, after, _ := strings.Cut(rest, "/")
		if n, err := strconv.Atoi(ms); err == nil {
			wait, path = time.Duration(n)*time.Millisecond, after
		}
	}
	time.Sleep(wait)
	c.count(path, wait, r.Method == http.MethodPost)
	body := fmt.Sprintf(`{"value":%d}`, sum.Sum32()/8%100)
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
}

func (c *Companies) count(path string, wait time.Duration, act bool) {
	parts := strings.SplitN(path, "/", 3)
	function := strings.Join(parts[:min(2, len(parts))], "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	waited, ok := c.waits[function]
	if !ok {
		waited = new(Waited)
		c.waits[function] = waited
	}
	waited.Time += wait
	if act {
		waited.Acts++
		c.acts[path]++
	} else {
		waited.Questions++
	}
}

// Take returns what was done, by path, and who waited, by "application/function", since the last time.
func (c *Companies) Take() (acts map[string]int, waits map[string]*Waited) {
	c.mu.Lock()
	defer c.mu.Unlock()
	acts, waits = maps.Clone(c.acts), maps.Clone(c.waits)
	clear(c.acts)
	clear(c.waits)
	return acts, waits
}
