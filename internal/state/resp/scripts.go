package resp

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// scripts are those of a space that EVALSHA finds, as in Redis until the server stops.
type scripts struct {
	mu    sync.Mutex // guards the rest
	texts map[string][]byte
	order []string // of their names, as they came
	size  int
}

// Bounds of the scripts of a space: beyond, the oldest are forgotten.
const (
	maxScripts = 8 << 20
	scriptCost = 256 // of one, beside its text
)

func (s *scripts) find(sha string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[sha]
}

func (s *scripts) keep(sha string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[sha] != nil {
		return
	}
	if s.texts == nil {
		s.texts = make(map[string][]byte)
	}
	s.texts[sha] = bytes.Clone(text)
	s.order = append(s.order, sha)
	s.size += len(text) + scriptCost
	for s.size > maxScripts && len(s.order) > 1 {
		s.size -= len(s.texts[s.order[0]]) + scriptCost
		delete(s.texts, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *scripts) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts, s.order, s.size = nil, nil, 0
}

// script answers SCRIPT.
func (c *conn) script(ctx context.Context, args [][]byte) state.Reply {
	switch command.Subcommand(args) {
	case "load":
		if _, refusal := command.CompileScript(args[2]); refusal != nil {
			return *refusal
		}
		if err := c.keepScript(ctx, "script load", args[2]); err != nil {
			return c.failed(ctx, err)
		}
		return bulk(command.ScriptSHA(args[2]))
	case "exists":
		if err := c.session.Hold(ctx, command.Held("script exists"), nil); err != nil {
			return c.failed(ctx, err)
		}
		reply := state.Reply{Kind: state.Array}
		for _, sha := range args[2:] {
			found := int64(0)
			if c.space.scripts.find(strings.ToLower(string(sha))) != nil {
				found = 1
			}
			reply.Items = append(reply.Items, integer(found))
		}
		return reply
	}
	return c.flushScripts(args[2:])
}

func (c *conn) flushScripts(options [][]byte) state.Reply {
	if len(options) > 1 || len(options) == 1 && !strings.EqualFold(string(options[0]), "SYNC") && !strings.EqualFold(string(options[0]), "ASYNC") {
		return failure("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	if _, ofFunction := c.session.(interface{ IsAhead() bool }); ofFunction { // one that is ahead may have used what it would not find then
		return failure("ERR SCRIPT FLUSH is not allowed in a function. Send it through --redis-listen.")
	}
	c.space.scripts.forget()
	return okReply()
}

// keepScript keeps a script that EVALSHA is to find. Those who are ahead do that in their turn: others would find it too early.
func (c *conn) keepScript(ctx context.Context, name string, text []byte) error {
	sha := command.ScriptSHA(text)
	if c.space.scripts.find(sha) != nil {
		return nil
	}
	if err := c.session.Hold(ctx, command.HeldForScript(name), nil); err != nil {
		return err
	}
	c.space.scripts.keep(sha, text)
	return nil
}

// withScript keeps the script of an EVAL, and makes EVAL of an EVALSHA whose script is known.
func (c *conn) withScript(ctx context.Context, spec *command.Spec, args [][]byte) (*command.Spec, [][]byte, error) {
	if spec == nil || !spec.IsScript() || !spec.AcceptsArity(len(args)) {
		return spec, args, nil
	}
	by, bySHA := strings.CutPrefix(spec.Name, "evalsha")
	if !bySHA {
		if _, refusal := command.CompileScript(args[1]); refusal != nil {
			return spec, args, nil // which says why
		}
		return spec, args, c.keepScript(ctx, spec.Name, args[1])
	}
	sha := strings.ToLower(string(args[1]))
	text := c.space.scripts.find(sha)
	if text == nil {
		if err := c.session.Hold(ctx, command.HeldForScript(spec.Name), nil); err != nil {
			return spec, args, err
		}
		if text = c.space.scripts.find(sha); text == nil {
			return spec, args, nil // which is refused
		}
	}
	name := []byte("eval" + by)
	return command.Known(name), append([][]byte{name, text}, args[2:]...), nil
}

// withScripts is withScript of a transaction's commands.
func (c *conn) withScripts(ctx context.Context, t *transaction) error {
	for i, q := range t.queue {
		if q.spec.Name == "script" && command.Subcommand(q.args) == "load" && len(q.args) == 3 {
			c.script(ctx, q.args) // which is answered again in its place
		}
		var err error
		if t.queue[i].spec, t.queue[i].args, err = c.withScript(ctx, q.spec, q.args); err != nil {
			return err
		}
	}
	return nil
}

// delivered sends the messages that a script has published, and is what else it answers.
func (c *conn) delivered(ctx context.Context, reply state.Reply) state.Reply {
	if reply.Kind != state.Published {
		return reply
	}
	for i := 1; i+1 < len(reply.Items); i += 2 {
		args := [][]byte{[]byte("PUBLISH"), reply.Items[i].Text, reply.Items[i+1].Text}
		if sent := c.publish(ctx, args); sent.Kind == state.Error {
			return sent
		}
	}
	return reply.Items[0]
}
