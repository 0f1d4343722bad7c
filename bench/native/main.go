// Command native is the compiled function that the benchmarks run: it returns its
// input, after as many milliseconds as the input's "wait" says.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"syscall"
	"time"
)

// answers is the descriptor on which a native function writes a line for each line it reads.
const answers = 3

func main() {
	in, out := bufio.NewReader(os.Stdin), os.NewFile(answers, "answers")
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return // no more activations
		}
		if _, err := out.Write(answer(line)); err != nil {
			return
		}
	}
}

func answer(line []byte) []byte {
	var activation struct {
		Value json.RawMessage `json:"value"`
	}
	var value struct {
		Wait int `json:"wait"` // milliseconds
	}
	err := json.Unmarshal(line, &activation)
	if err == nil {
		err = json.Unmarshal(activation.Value, &value)
	}
	if err != nil {
		return []byte(`{"error":"the input is not readable"}` + "\n")
	}
	wait(time.Duration(value.Wait) * time.Millisecond)
	return append(activation.Value, '\n')
}

// wait waits as the functions in other languages do. Go's own timers would be late: the runtime waits whole milliseconds.
func wait(d time.Duration) {
	for left := syscall.NsecToTimespec(d.Nanoseconds()); syscall.Nanosleep(&left, &left) != nil; {
		continue // a signal came
	}
}
