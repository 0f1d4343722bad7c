package command

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/lua"
)

// beyondError ends a command that needs more than it was given: a script that reaches for records which it has not declared, or, on images,
// for what cannot be done there. It must be executed again, by one that has all records of the space, in its turn.
type beyondError struct{ why *forerun.Reason }

func (e *beyondError) Error() string {
	return "state: a script needs records that it has not declared: " + e.why.String()
}

// IsBeyond says whether an error of Execute is that a script needs more than the records that it has declared. Nothing was wrong: it is to be
// executed again over an overlay that has the Whole space.
func IsBeyond(err error) bool {
	_, is := errors.AsType[*beyondError](err)
	return is
}

// Whole lets scripts reach for any record of the space.
func (o *Overlay) Whole() { o.whole = true }

// isAhead says whether commands are executed on images.
func (o *Overlay) isAhead() bool { return o.most > 0 }

// IsScript says whether the command runs a script. One that answers an error may have changed something.
func (s *Spec) IsScript() bool { return strings.HasPrefix(s.Name, "eval") }

// writesUndeclared says whether what the command writes can only be what it has not declared.
func (s *Spec) writesUndeclared(args [][]byte) bool {
	return s.IsScript() && s.Flags&Write != 0 && len(s.keys.find(args)) == 0
}

// Script is a compiled script. It is immutable.
type Script struct {
	chunk    *lua.Chunk
	sha      string
	readOnly bool // it says so
}

// chunkName is what Redis calls scripts in its errors.
const chunkName = "user_script"

// maxScript is how long a script may be.
const maxScript = 1 << 20

// compiledScripts are scripts by their texts. What a script is compiled to depends on nothing but its text.
var compiledScripts struct {
	mu    sync.Mutex // guards the rest
	known map[string]*Script
	size  int
}

// Bounds of compiledScripts: beyond, it begins again.
const (
	maxCompiled  = 8 << 20 // bytes of texts
	compiledCost = 4096    // of a script, beside its text
)

// CompileScript compiles a script, or says as Redis why it is none.
func CompileScript(text []byte) (*Script, *state.Reply) {
	c := &compiledScripts
	c.mu.Lock()
	script := c.known[string(text)]
	c.mu.Unlock()
	if script != nil {
		return script, nil
	}
	if len(text) > maxScript {
		return nil, refuse("ERR the script is longer than %d KiB", maxScript>>10)
	}
	script = &Script{sha: ScriptSHA(text)}
	source, refusal := script.withoutShebang(string(text))
	if refusal != nil {
		return nil, refusal
	}
	var err error
	if script.chunk, err = lua.Compile(chunkName, source); err != nil {
		return nil, &state.Reply{Kind: state.Error, Text: oneLine([]byte("ERR Error compiling script (new function): " + err.Error()))}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size += len(text) + compiledCost; c.known == nil || c.size > maxCompiled {
		c.known, c.size = make(map[string]*Script), len(text)+compiledCost
	}
	c.known[string(text)] = script
	return script, nil
}

// ScriptSHA is the name that EVALSHA has for a script.
func ScriptSHA(text []byte) string {
	sum := sha1.Sum(text)
	return hex.EncodeToString(sum[:])
}

// withoutShebang reads the first line, if it says how the script is to be run. The line stays, empty, so that the others keep their numbers.
func (s *Script) withoutShebang(text string) (source string, refusal *state.Reply) {
	if !strings.HasPrefix(text, "#!") {
		return text, nil
	}
	end := strings.IndexByte(text, '\n')
	if end < 0 {
		return "", refuse("ERR Invalid script shebang")
	}
	words := strings.Fields(text[:end])
	if len(words) == 0 || words[0] != "#!lua" {
		return "", &state.Reply{Kind: state.Error, Text: oneLine([]byte("ERR Unexpected engine in script shebang: " + strings.Join(words[:min(1, len(words))], "")))}
	}
	for _, word := range words[1:] {
		flags, is := strings.CutPrefix(word, "flags=")
		if !is {
			return "", refuse("ERR Unknown lua shebang option: %s", word)
		}
		for _, flag := range strings.Split(flags, ",") {
			switch flag {
			case "no-writes":
				s.readOnly = true
			case "", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys":
			default:
				return "", refuse("ERR Unexpected flag in script shebang: %s", flag)
			}
		}
	}
	return text[end:], nil
}

func eval(t *txn, args [][]byte) state.Reply { return runScript(t, args, false) }

func evalRO(t *txn, args [][]byte) state.Reply { return runScript(t, args, true) }

// evalsha is what is left of EVALSHA when the door does not know the script: it passes EVAL with the text of one that it knows.
func evalsha(*txn, [][]byte) state.Reply {
	return failure("NOSCRIPT No matching script. Please use EVAL.")
}

func runScript(t *txn, args [][]byte, readOnly bool) state.Reply {
	n, valid := parseInt(args[2])
	switch {
	case !valid:
		return notInteger()
	case n > int64(len(args)-3):
		return failure("ERR Number of keys can't be greater than number of args")
	case n < 0:
		return failure("ERR Number of keys can't be negative")
	}
	script, refusal := CompileScript(args[1])
	if refusal != nil {
		return *refusal
	}
	r := &running{txn: t, Script: script, keys: args[3 : 3+n], protocol: 2}
	r.readOnly = readOnly || script.readOnly
	return r.run(args[3+n:])
}

// running is a script at work, and what it sees of the store.
type running struct {
	*txn
	*Script
	keys     [][]byte // that it has declared
	declared map[string]bool
	readOnly bool
	begun    int // work of the overlay before the script
	protocol int // whose replies redis.call gives
	messages []state.Reply
}

// run runs the script. If it ends with an error, nothing that it wrote is left.
func (r *running) run(argv [][]byte) state.Reply {
	takeBack := r.overlay.remember()
	if r.work(writeCost * len(r.overlay.writes)); r.err != nil {
		return state.Reply{}
	}
	r.begun = r.overlay.all
	l := lua.New(r, map[string]lua.Value{"redis": redisLibrary(), "KEYS": texts(r.keys), "ARGV": texts(argv)})
	values, err := l.Run(r.chunk)
	if r.err != nil {
		return state.Reply{}
	}
	var reply state.Reply
	if err == nil {
		reply, err = r.answer(l, values)
	}
	if err != nil {
		takeBack()
		return r.thrown(err)
	}
	if len(r.messages) > 0 {
		return state.Reply{Kind: state.Published, Items: append([]state.Reply{reply}, r.messages...)}
	}
	return reply
}

func texts(list [][]byte) *lua.Table {
	t := new(lua.Table)
	for _, text := range list {
		t.Append(string(text))
	}
	return t
}

// thrown is how Redis answers what a script has thrown.
func (r *running) thrown(err error) state.Reply {
	e, is := errors.AsType[*lua.Error](err)
	if !is {
		return failure("ERR %s", err.Error())
	}
	message := "ERR unknown error"
	switch v := e.Value.(type) {
	case *lua.Table:
		if text, is := v.Get("err").(string); is {
			message = text
		}
	case string:
		message = "ERR " + v
	case float64:
		message = "ERR " + lua.FormatNumber(v)
	}
	message = shortened(message) + " script: " + r.sha + ", on @" + chunkName + ":" + lua.FormatNumber(float64(e.Line)) + "."
	return state.Reply{Kind: state.Error, Text: oneLine([]byte(message))}
}

// maxMessage is how many bytes of a message are answered.
const maxMessage = 64 << 10

func shortened(message string) string { return message[:min(len(message), maxMessage)] }

// Work counts what the script does.
func (r *running) Work(bytes int) error {
	r.work(bytes)
	return r.err
}

// Seed is chance: a script that asks for it waits for its turn.
func (r *running) Seed() (uint64, error) {
	r.needsTurn(forerun.ReasonChance, r.spec.Name)
	return rand.Uint64(), r.err
}

// needsTurn ends the script if it is executed on images.
func (r *running) needsTurn(why forerun.ReasonCode, name string) {
	if r.err == nil && r.overlay.isAhead() {
		r.err = &beyondError{heldAs(why, name)}
	}
}

// reach ends the script if a command needs what it has not declared, or what cannot be done on images.
func (r *running) reach(spec *Spec, args [][]byte) {
	if !r.overlay.whole {
		if spec.Access(args)&Whole != 0 || !r.hasDeclared(spec, args) {
			r.err = &beyondError{heldAs(forerun.ReasonReadsUnnamed, r.spec.Name)}
			return
		}
	}
	if r.overlay.isAhead() && spec.needs(args)&Unbufferable != 0 {
		r.err = &beyondError{Held(spec.Name)}
	}
}

func (r *running) hasDeclared(spec *Spec, args [][]byte) bool {
	for i := range spec.KeyPositions(args) {
		if !r.isDeclared(args[i]) {
			return false
		}
	}
	return true
}

func (r *running) isDeclared(name []byte) bool {
	if len(r.keys) <= few {
		return slices.ContainsFunc(r.keys, func(key []byte) bool { return bytes.Equal(key, name) })
	}
	if r.declared == nil {
		r.declared = make(map[string]bool, len(r.keys))
		for _, key := range r.keys {
			r.declared[string(key)] = true
		}
	}
	return r.declared[string(name)]
}
