package test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/history"
	"forerun.dev/forerun/test/server"
)

// The compositions of a run of TestOracle, and how many of them run at once, each in a namespace of its own.
const (
	oracleCases     = 300
	oracleSoakCases = 1150 // where FORERUN_SOAK is set
	oracleLanes     = 3
)

// oracle is what oracle/generate.js writes.
type oracle struct {
	Driver string
	Cases  []oracleCase
}

// oracleCase is one composition: its document, which the server compiles, and what composer's conductor runs it from.
type oracleCase struct {
	AST         json.RawMessage
	Composition json.RawMessage
	Input       map[string]any
	Ordered     bool
}

// outcome is what can be seen of a run.
type outcome struct {
	Status string
	Result any
	State  map[string]any
	calls  int // of actions
	bytes  int // of their inputs
}

// TestOracle runs random compositions both ways: compiled, and by the conductor that npm openwhisk-composer generates from them, a
// Node action that runs by OpenWhisk's protocol, with its parallel branches meeting in Redis. Results, errors and the state that
// the actions leave must be equal. FORERUN_SEED repeats a run's compositions.
func TestOracle(t *testing.T) {
	needNode(t)
	if _, err := os.Stat("../node_modules/composer-redis"); err != nil {
		t.Skip("the npm packages are not installed; make test installs them")
	}
	t.Parallel()
	o := generate(t, history.Seed(t))
	s := start(t, server.Options{Redis: true})
	code := o.conductor(t)
	lanes := make([]*lane, oracleLanes)
	for i := range lanes {
		lanes[i] = newLane(t, s, fmt.Sprintf("lane%d", i), code, i == 0)
	}
	var running sync.WaitGroup
	for i, l := range lanes {
		running.Go(func() {
			for n := i; n < len(o.Cases) && !t.Failed(); n += len(lanes) {
				l.compare(t, n, &o.Cases[n])
			}
		})
	}
	running.Wait()
	report(t, o, lanes)
}

func generate(t *testing.T, seed uint64) *oracle {
	t.Helper()
	cases := oracleCases
	if os.Getenv("FORERUN_SOAK") != "" {
		cases = oracleSoakCases
	}
	cmd := exec.CommandContext(t.Context(), "node", "oracle/generate.js", strconv.Itoa(cases), strconv.FormatUint(seed, 10))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	o := new(oracle)
	decode(t, out, o)
	return o
}

// conductor packs the action that runs all compositions by composer's code, with the packages that this asks for.
func (o *oracle) conductor(t *testing.T) string {
	t.Helper()
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	add := func(name string, content []byte) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	compositions := make([]json.RawMessage, len(o.Cases))
	for i := range o.Cases {
		compositions[i] = o.Cases[i].Composition
	}
	cases, err := json.Marshal(map[string]any{"driver": o.Driver, "compositions": compositions})
	if err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile("oracle/conductor.cjs")
	if err != nil {
		t.Fatal(err)
	}
	add("cases.json", cases)
	add("index.js", main)
	for from, to := range map[string]string{
		"composer-redis": "redis", "redis-commands": "redis-commands", "redis-errors": "redis-errors", "redis-parser": "redis-parser",
		"denque": "denque", "uuid": "uuid",
	} {
		root := os.DirFS(filepath.Join("../node_modules", from))
		err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := fs.ReadFile(root, path)
			add("node_modules/"+to+"/"+path, content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(archive.Bytes())
}

// lane runs one composition at a time in a namespace of its own.
type lane struct {
	client                   *server.Client
	state                    *redis.Client
	parameters               []any // of the compositions and the conductor
	compared, skipped, calls int
	asynchronous             int
}

// longLimits are of functions that a busy machine may start for minutes.
var longLimits = map[string]int{"timeout": 600_000}

func newLane(t *testing.T, s *server.Server, name, conductor string, parameters bool) *lane {
	t.Helper()
	l := &lane{client: as(t, s, operate(t, s, "create", name))}
	user, key, _ := bytes.Cut([]byte(l.client.Auth), []byte(":"))
	if parameters {
		l.parameters = []any{map[string]any{"key": "n", "value": 5}, map[string]any{"key": "own", "value": "parameter"}}
	}
	l.state = redis.NewClient(&redis.Options{Addr: s.Redis, Username: string(user), Password: string(key), DialTimeout: time.Minute, ReadTimeout: time.Minute})
	t.Cleanup(func() { l.state.Close() })
	action, err := os.ReadFile("oracle/action.cjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"put", "test", "flip", "fail", "prepare", "begin", "done"} {
		put(t, l.client, name, map[string]any{"limits": longLimits, "exec": map[string]any{"kind": "nodejs:default", "code": string(action)}})
	}
	if err := l.client.PutSequence(t.Context(), "line", "put", "test"); err != nil {
		t.Fatal(err)
	}
	put(t, l.client, "conductor", map[string]any{
		"limits":      longLimits,
		"exec":        map[string]any{"kind": "nodejs:default", "code": conductor},
		"annotations": []any{map[string]any{"key": "conductor", "value": true}},
		"parameters":  l.parameters,
	})
	return l
}

// What a composition may do to be compared. More than 50 components OpenWhisk's protocol refuses; and loops that double their value come to
// the limit of a result at different moments.
const (
	maxCalls = 45
	maxBytes = 1 << 18 // of all inputs of actions
)

func (o *outcome) comparable() bool {
	return o.calls <= maxCalls && o.bytes <= maxBytes && !strings.Contains(fmt.Sprint(o.Result), "exceeded the allowed length")
}

// compare runs a composition both ways.
func (l *lane) compare(t *testing.T, n int, c *oracleCase) {
	input := maps.Clone(c.Input)
	input["$composer"] = map[string]any{"openwhisk": map[string]int{"case": n}}
	want := l.run(t, n, c, "conductor", input)
	if want == nil {
		return
	}
	if !want.comparable() {
		l.skipped++
		return
	}
	document := map[string]any{
		"exec":        map[string]any{"kind": "nodejs:default", "code": "// compiled"},
		"annotations": []any{map[string]any{"key": "conductor", "value": c.AST}},
		"parameters":  l.parameters,
	}
	if err := l.client.Put(t.Context(), "composition", document); err != nil {
		t.Errorf("composition %d: %v: %s", n, err, c.AST)
		return
	}
	got := l.run(t, n, c, "composition", c.Input)
	if got == nil {
		return
	}
	l.compared, l.calls = l.compared+1, l.calls+want.calls
	if !reflect.DeepEqual(got, want) {
		t.Errorf("composition %d on %v, ordered %v: %s", n, c.Input, c.Ordered, c.AST)
		t.Errorf("compiled:  %.5000s", fmt.Sprintf("%+v", *got))
		t.Errorf("conductor: %.5000s", fmt.Sprintf("%+v", *want))
	}
}

// run invokes an action on an empty state, waits for what it began, and looks at what it left. It returns nil if the
// test has failed.
func (l *lane) run(t *testing.T, n int, c *oracleCase, action string, input any) *outcome {
	ctx := t.Context()
	if err := l.state.FlushDB(ctx).Err(); err != nil {
		t.Error(err)
		return nil
	}
	if c.Ordered {
		l.state.Set(ctx, "ordered", 1, 0)
	}
	status, body, err := l.client.Do(ctx, http.MethodPost, "actions/"+action+"?blocking=true", input)
	r := new(server.Record)
	if err == nil && status == http.StatusAccepted { // the machine is busy
		if err = json.Unmarshal(body, r); err == nil {
			r, err = l.client.Await(ctx, r.ActivationID)
		}
		status = http.StatusOK
	} else if err == nil {
		err = json.Unmarshal(body, r)
	}
	if err != nil || (status != http.StatusOK && status != http.StatusBadGateway && status != http.StatusInternalServerError) {
		t.Errorf("composition %d: %s: %d %s %v: %s", n, action, status, body, err, c.AST)
		return nil
	}
	o := &outcome{Status: r.Response.Status}
	decode(t, r.Response.Result, &o.Result)
	o.Result = withoutIDs(o.Result)
	counts := l.settled(t)
	if counts["begin"] != counts["done"] {
		t.Errorf("composition %d: %s: what it began has not ended: %v, %s: %s", n, action, counts, body, c.AST)
		return nil
	}
	seen := l.state.HGetAll(ctx, "seen").Val()
	for call := range seen {
		o.bytes += len(call)
	}
	o.calls, _ = l.state.Get(ctx, "calls").Int()
	begun, _ := strconv.Atoi(counts["begin"])
	l.asynchronous += begun
	o.State = map[string]any{"counts": counts, "seen": seen, "trace": l.state.LRange(ctx, "trace", 0, -1).Val()}
	return o
}

// settled waits until the asynchronous parts of a composition have ended, and returns how often each action ran.
func (l *lane) settled(t *testing.T) map[string]string {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		counts := l.state.HGetAll(t.Context(), "counts").Val()
		if counts["begin"] == counts["done"] {
			return counts
		}
		select {
		case <-tick.C:
		case <-deadline:
			return counts
		}
	}
}

// withoutIDs is a value with the ids of activations left out, which are never the same.
func withoutIDs(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutIDs(v[i])
		}
	case map[string]any:
		for name := range v {
			if name == "activationId" || name == "sessionId" {
				v[name] = "*"
			}
			v[name] = withoutIDs(v[name])
		}
	}
	return v
}

// report says how many compositions were compared, and with which combinators.
func report(t *testing.T, o *oracle, lanes []*lane) {
	var sum lane
	for _, l := range lanes {
		sum.compared += l.compared
		sum.skipped += l.skipped
		sum.calls += l.calls
		sum.asynchronous += l.asynchronous
	}
	combinators := make(map[string]int)
	for _, c := range o.Cases {
		var document any
		decode(t, c.AST, &document)
		countTypes(document, combinators)
	}
	t.Logf("%d compositions were equal both ways, with %d calls of actions (%d from asynchronous parts); %d did too much; combinators: %v",
		sum.compared, sum.calls, sum.asynchronous, sum.skipped, combinators)
	if !t.Failed() && sum.compared < len(o.Cases)*4/5 {
		t.Errorf("only %d compositions were compared", sum.compared)
	}
}

func countTypes(v any, combinators map[string]int) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			countTypes(element, combinators)
		}
	case map[string]any:
		if name, ok := v["type"].(string); ok {
			combinators[name]++
		}
		for name, member := range v {
			if name != "value" && name != "declarations" {
				countTypes(member, combinators)
			}
		}
	}
}
