package speculation

import (
	"context"
	"fmt"

	"forerun.dev/forerun/test/server"
)

// functions is how many a synthetic application has.
const functions = 10

// waits and works are Python functions that add one to a number, after 10 ms of waiting or 5 ms of work.
const (
	waits = "import time\n\ndef main(args):\n    time.sleep(0.010)\n    return {'n': args['n'] + 1}\n"
	works = `import time

def main(args):
    end = time.process_time() + 0.005
    while time.process_time() < end:
        pass
    return {'n': args['n'] + 1}
`
	// calls asks the function after it when it has waited itself.
	calls = `import time
import openwhisk

def main(args):
    time.sleep(0.010)
    return {'n': openwhisk.invoke(%q, args)['n'] + 1}
`
)

// synthetic are applications that show one thing each: functions that wait in sequence, functions that call one another, functions that work.
func synthetic() []*subject {
	few := each(func(stream uint64, i int) any { return map[string]int{"n": (int(stream) + i) % 8} })
	return []*subject{
		{slug: "sequence", suite: "synthetic", bound: functions, action: "sequence", want: `"n":1`, inputs: few, deploy: deploySequence(waits)},
		{slug: "implicit", suite: "synthetic", bound: functions, action: "implicit-0", want: `"n":1`, inputs: few, deploy: deployCalls},
		{slug: "working", suite: "synthetic", cpu: true, action: "sequence", want: `"n":1`, inputs: few, deploy: deploySequence(works)},
	}
}

// each makes inputs one by one.
func each(input func(stream uint64, i int) any) func(stream uint64, n int) ([]any, error) {
	return func(stream uint64, n int) ([]any, error) {
		all := make([]any, n)
		for i := range all {
			all[i] = input(stream, i)
		}
		return all, nil
	}
}

// deploySequence puts a sequence of functions with the same code.
func deploySequence(code string) func(context.Context, *server.Client, *server.Server) error {
	return func(ctx context.Context, c *server.Client, _ *server.Server) error {
		var components []string
		for i := range functions {
			name := fmt.Sprintf("stage-%d", i)
			if err := c.PutPython(ctx, name, fmt.Sprintf("# %d\n%s", i, code)); err != nil {
				return err
			}
			components = append(components, name)
		}
		return c.PutSequence(ctx, "sequence", components...)
	}
}

// deployCalls puts functions each of which calls the next.
func deployCalls(ctx context.Context, c *server.Client, _ *server.Server) error {
	for i := range functions {
		code := fmt.Sprintf(calls, fmt.Sprintf("implicit-%d", i+1))
		if i == functions-1 {
			code = waits
		}
		if err := c.PutPython(ctx, fmt.Sprintf("implicit-%d", i), code); err != nil {
			return err
		}
	}
	return nil
}
