// Command native is four functions of FlightBook as a native action of
// OpenWhisk: a program that reads a line of JSON for each activation and writes
// its result as a line to descriptor 3. Which function it is says the action's
// name.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// maxLine bounds an activation's line, in bytes; the platform's own limit is below it.
const maxLine = 8 << 20

// resultsDescriptor is where results go: the standard output is the log.
const resultsDescriptor = 3

// activation is what comes for one of them.
type activation struct {
	Action string `json:"action_name"` // like /guest/flightbook-mixed-FindFlight
	Value  trip   `json:"value"`
}

// failed is the result of an activation that has none.
type failed struct {
	Error string `json:"error"`
}

func main() {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatalf("REDIS_URL does not say where the state is: %v", err)
	}
	state := redis.NewClient(options)
	defer state.Close()
	if err := serve(context.Background(), state, os.Stdin, os.NewFile(resultsDescriptor, "results")); err != nil {
		log.Fatal(err)
	}
}

// serve executes one activation after the other until there are no more.
func serve(ctx context.Context, state *redis.Client, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	results := json.NewEncoder(out) // ends each with a newline
	for lines.Scan() {
		var a activation
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return fmt.Errorf("the line is not an activation: %w", err)
		}
		if err := results.Encode(execute(ctx, state, a)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// execute calls the function that the action is named after.
func execute(ctx context.Context, state *redis.Client, a activation) any {
	function := functions()[a.Action[strings.LastIndex(a.Action, "-")+1:]]
	if function == nil {
		return failed{"There is no function for the action " + a.Action + "."}
	}
	result, err := function(ctx, state, a.Value)
	if err != nil {
		return failed{err.Error()}
	}
	return result
}
