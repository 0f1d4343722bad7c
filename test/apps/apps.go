// Package apps makes random applications, and what clients and others do with them, for tests that compare servers: functions over
// state in Python, in Node, in Java and as programs, which branch by it, fail, call each other and reach the outside, and the sequences and
// compositions of them.
//
// It promises that all comes from the seed: two servers that are given the same application and the same steps, one after the other,
// must answer the same and be left with the same state. It imports the standard library alone.
package apps

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"
)

// App is a random application.
type App struct {
	Actions []Action
	Before  []Step // that come before deploying the actions
	Setup   []Step // that follow on it
	Forks   bool   // parts of it run at the same time, each with records of its own; the order of their effects is by chance
	g       *generator
}

// Action is an action with its document, as OpenWhisk's API takes it.
type Action struct {
	Name     string
	Document map[string]any
}

// Step is one thing that happens to the application, when the one before is over.
type Step struct {
	Method, Path string      // of a request to the API or, beginning with /, to the server; or none
	Body         string      // JSON
	Header       [][2]string // of the request
	Command      []string    // else a command of Redis, of another client
	Await        bool        // the answer is an activation's id, whose record is awaited
	Later        bool        // and fetched
}

// String shows a step.
func (s Step) String() string {
	if s.Command != nil {
		return fmt.Sprintf("%q", s.Command)
	}
	return fmt.Sprintf("%s %s %v %.300s", s.Method, s.Path, s.Header, s.Body)
}

// Options say which applications are wanted.
type Options struct {
	Prefix   string        // of the names of actions
	Packages fs.FS         // of Python, that native programs import: openwhisk; nil: there are no native programs
	Java     string        // Function.java, compiled: a jar in base64; empty: there are no functions in Java
	Begins   time.Duration // how long a function takes here until it has begun: one within a time limit is not cut off before
	Apart    bool          // several clients use it at the same time, each with records of its own: nothing changes what is everybody's
}

// Outside stands in actions and steps for the URL of what receives what functions send.
const Outside = "http://outside.test/"

//go:embed function.py
var python string

//go:embed function.js
var node string

//go:embed ioredis.js
var ioredis string

//go:embed redis.js
var nodeRedis string

//go:embed native.py
var native string

//go:embed redis.py
var redis string

// generator makes one application.
type generator struct {
	*rand.Rand
	options   Options
	forks     bool
	functions int      // there are so many
	names     []string // of all that can be called, the functions first
	chains    []string // with something in them that goes beyond a limit
	packaged  []string // names of functions in a package, also through its binding
	nested    bool     // programs have others in them
	pkg       string   // the package,
	binding   string   // and its binding
	left      int      // parts that the program in the making may get
	actions   []Action
	before    []Step
	setup     []Step

	client string // whose steps are made
	steps  []Step
}

// Generate makes the application of a seed.
func Generate(seed uint64, o Options) *App {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 5)), options: o, functions: 6 + int(seed%3)}
	g.forks = o.Apart || g.chance(2)
	g.helpers()
	for i := range g.functions {
		g.put(g.name(i), g.functionDocument(i))
		g.names = append(g.names, g.name(i))
	}
	g.addPackage()
	for range 5 {
		g.addProgram()
	}
	g.addConductor()
	g.addCallers()
	g.addLimited()
	return &App{Actions: g.actions, Before: g.before, Setup: g.setup, Forks: g.forks, g: g}
}

// Steps makes n steps or a few more, of a client whose records have names that begin with the client's. Something goes beyond a limit
// in the first; seeds that follow on each other take turns with the limits.
func (a *App) Steps(seed uint64, client string, n int) []Step {
	g := *a.g
	g.Rand, g.client, g.steps = rand.New(rand.NewPCG(seed, 6)), client, nil
	g.invokeLimited(g.chains[int(seed%uint64(len(g.chains)))], 2)
	for len(g.steps) < n {
		g.step()
	}
	return g.steps
}

func (g *generator) name(i int) string { return fmt.Sprintf("%sf%d", g.options.Prefix, i) }

func (g *generator) put(name string, document map[string]any) {
	g.actions = append(g.actions, Action{Name: name, Document: document})
}

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// step adds something that happens: mostly an invocation.
func (g *generator) step() {
	switch n := g.IntN(40); {
	case n < 3:
		g.add(Step{Command: g.write(g.client + fmt.Sprint(g.IntN(2)))})
	case n == 3 && !g.options.Apart:
		i := g.IntN(g.functions)
		g.request("PUT", "actions/"+g.name(i)+"?overwrite=true", g.functionDocument(i))
	case n == 4 && !g.options.Apart:
		i := g.IntN(g.functions)
		g.request("DELETE", "actions/"+g.name(i), nil)
		g.invoke()
		g.invoke()
		g.request("PUT", "actions/"+g.name(i)+"?overwrite=true", g.functionDocument(i))
	case n < 8:
		g.invokeLimited(pick(g, g.chains...), g.IntN(3))
	case n == 9 && !g.options.Apart:
		g.changePackage()
	case n == 8 && !g.options.Apart:
		g.fire()
	default:
		g.invoke()
	}
}

func (g *generator) add(s Step) { g.steps = append(g.steps, s) }

func (g *generator) request(method, path string, document any) {
	s := Step{Method: method, Path: path}
	if document != nil {
		s.Body = text(document)
	}
	g.add(s)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only what JSON can say is put together here
	}
	return string(b)
}

// invoke invokes something in one of the ways that there are. Few inputs are usual, so that what they give is often known.
func (g *generator) invoke() {
	name := pick(g, g.names...)
	if g.chance(2) {
		name = pick(g, g.names[g.functions:]...)
	}
	s := Step{Method: "POST", Path: "actions/" + name + "?blocking=true", Body: g.input()}
	switch g.IntN(12) {
	case 0, 1, 2:
		s.Path += "&result=true"
	case 3:
		s.Path, s.Await = "actions/"+name, true
	case 4:
		s.Method, s.Body = "GET", ""
		s.Path = fmt.Sprintf("/api/v1/web/guest/default/%s.json?k=%d&at=%s%d&w=%s", name, g.IntN(3), g.client, g.IntN(2), url.QueryEscape("wéb"))
	case 5:
		s.Header = [][2]string{{"Idempotency-Key", fmt.Sprint(g.options.Prefix, g.client, len(g.steps))}}
		g.add(s)
	case 6:
		s.Header = [][2]string{{"X-Forerun-Speculate", pick(g, "branches; load=any", "all; depth=2; least=0s; load=any", "all; depth=64; band=0.4; least=0s; load=any", "off", "all; least=0s; load=any")}}
	}
	g.add(s)
	if g.chance(3) {
		g.add(s) // once more, when it is known
	}
}

// input is what a client gives.
func (g *generator) input() string {
	if !g.chance(4) {
		return fmt.Sprintf(`{"at":"%s%d","k":%d}`, g.client, g.IntN(2), g.IntN(3))
	}
	return strings.NewReplacer("BIG", strings.Repeat("große ", 20000), "CLIENT", g.client).Replace(pick(g,
		`{"at":"CLIENT0","k":1.0}`, `{"at":"CLIENT0","k":1}`, `{"at":"CLIENT0","k":1e0}`, `{"at":"CLIENT1","k":0,"k":2}`, `{"at":"CLIENT1","k":null,"x":{"y":[null,{}]}}`, `{"at":"CLIENTä☃😀\u0007","k":2}`,
		`{"k":12345678901234567890}`, `{"at":"CLIENT0","k":-0.0}`, `{"at":"CLIENT1","k":0.1}`, `{}`, `{"at":"CLIENT0","k":"1"}`, `{"at":"CLIENT1","k":[1,2]}`, `{"at":"CLIENT0","k":1,"w":"BIG"}`,
		`{"at":"CLIENT0","k":0,"error":"given"}`, `{"at":"CLIENT1","k":1,"w":{"error":"inner"}}`, `{"at":"CLIENT0","k":true,"z":[],"w":"\ud83d\ude00\u2028</script>"}`,
		`{"a":1,"at":"CLIENT1","b":[{"error":null}],"k":2}`, `[1,2]`, `{"at":"CLIENT0","k":1,"__ow_x":3}`, `{"at":"CLIENT","k":1E+2}`))
}
