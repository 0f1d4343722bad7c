package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// FloorCommand is the name under which the bench binary runs Floor.
const FloorCommand = "floor"

// floorFunction answers lines with lines, as a function with the code of the baseline's Python action would.
const floorFunction = `
import json, sys
def main(args):
    return args
for line in sys.stdin:
    print(json.dumps(main(json.loads(line)), separators=(",", ":")), flush=True)
`

// Floor is Echo with a Python function behind it: one process that stays, without isolation, state or a record of what it did. No platform
// that has a function in a process of its own answers sooner.
func Floor(_ context.Context, _ []string) error {
	cmd := exec.Command("python3", "-c", floorFunction)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("python3 cannot be started: %w", err)
	}
	var mu sync.Mutex // held while the function answers
	lines := bufio.NewReader(out)
	err = answering(func(body []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := in.Write(append(body, '\n')); err != nil {
			return nil, err
		}
		return lines.ReadBytes('\n')
	})
	return errors.Join(err, in.Close(), cmd.Wait())
}
