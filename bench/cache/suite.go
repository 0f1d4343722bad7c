package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/bench/workloads"
)

// suite is a set of applications of HashCache's paper.
type suite struct {
	name, slug string
	users      int // of the closed loop, as in the paper's artifact
	code       []*workloads.Application
	setup      func(ctx context.Context, door redis.UniversalClient) error
	apps       []application
	first      func() []script // what is asked before anything counts: each input that can have been seen
	paper      suitePaper
}

// application is what a client asks for, so many times in each deck.
type application struct {
	name   string
	weight int
	draw   func(*rand.Rand) script
	paper  latencyPaper
}

// ask is one request.
type ask struct {
	app, action string
	input       map[string]any
	calls       func(answer []byte) []*call // what it has made happen, one after the other: the answer may tell what the input does not
}

// happens is the same whatever the answer.
func happens(all ...*call) func([]byte) []*call {
	return func([]byte) []*call { return all }
}

// sender sends a request and returns the answer.
type sender func(ask) ([]byte, error)

// script is what a user does once: the later requests may depend on the earlier answers. All that is drawn at random is drawn before, so
// that a script asks for the same wherever the state is the same.
type script func(send sender) error

// single is a script of one request.
func single(a ask) script {
	return func(send sender) error {
		_, err := send(a)
		return err
	}
}

// deck are scripts in the suite's mix, shuffled: each application's weight divided by a scale, but one at least.
func (s *suite) deck(random *rand.Rand, scale int) (all []script) {
	for _, a := range s.apps {
		for range max(1, (a.weight+scale/2)/scale) {
			all = append(all, a.draw(random))
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// text is a value as JSON, with sorted members.
func text(v any) string {
	t, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(t)
}

// called is a call of a function on an input.
func called(action string, input any, reads []string, below ...*call) *call {
	return &call{action: action, input: text(input), reads: reads, below: below}
}

// writing is called for a function that writes.
func writing(action string, input any, writes []string) *call {
	return &call{action: action, input: text(input), writes: writes}
}

// records are names of records.
func records(names ...string) []string { return names }

func numbered[T any](format string, all []T) (names []string) {
	for _, x := range all {
		names = append(names, fmt.Sprintf(format, x))
	}
	return names
}
