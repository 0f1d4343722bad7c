package workloads

import (
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
// are compared wait equally. A path /wait/MS/... takes MS milliseconds in place of that.
type Companies struct {
	servers []*http.Server

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
	for _, address := range []string{actAddress, readAddress} {
		l, err := net.Listen("tcp", address+":80")
		if err != nil {
			c.Stop()
			return nil, err
		}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(c.answer)}
		c.servers = append(c.servers, server)
		go func() { _ = server.Serve(l) }() // until Stop
	}
	return c, nil
}

// Stop ends them.
func (c *Companies) Stop() {
	for _, s := range c.servers {
		_ = s.Close() // nothing is kept
	}
}

func (c *Companies) answer(w http.ResponseWriter, r *http.Request) {
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
	select {
	case <-time.After(wait):
	case <-r.Context().Done(): // whoever asked was squashed
	}
	c.count(path, wait, r.Method == http.MethodPost)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"value":%d}`, sum.Sum32()/8%100)
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
