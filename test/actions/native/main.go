// Command native is a function that does what a test asks it to, as a program that speaks OpenWhisk's ActionLoop.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// activation is the line that comes for each.
type activation struct {
	Value struct {
		Do   string
		N    int
		Link int
	}
	ID          string `json:"activation_id"`
	Action      string `json:"action_name"`
	Transaction string `json:"transaction_id"`
}

func main() {
	runtime.LockOSThread() // whose name is the process's
	lines, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.NewFile(3, "out"))
	f := &function{}
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var a activation
		if err := json.Unmarshal(line, &a); err != nil {
			panic(err)
		}
		if err := out.Encode(f.call(&a)); err != nil {
			panic(err)
		}
	}
}

type function struct {
	calls int
	redis net.Conn
}

func (f *function) call(a *activation) any {
	f.calls++
	if a.Value.Link > 0 {
		return f.link(a)
	}
	switch a.Value.Do {
	case "throw":
		return map[string]any{"error": "nooo"}
	case "exit":
		os.Exit(3)
	case "sleep":
		time.Sleep(time.Minute)
	case "memory":
		for hog := [][]byte{}; ; {
			block := make([]byte, 8<<20)
			for i := range block {
				block[i] = 1
			}
			hog = append(hog, block)
		}
	case "log":
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
	case "leave":
		return f.leave()
	case "interfaces":
		return interfaces()
	case "count":
		return map[string]any{"n": f.count()}
	}
	return map[string]any{"calls": f.calls, "id": a.ID, "action": a.Action, "n": a.Value.N + 1}
}

func interfaces() any {
	all, err := net.Interfaces()
	names := []string{}
	for _, i := range all {
		if _, addressErr := i.Addrs(); addressErr == nil {
			names = append(names, i.Name)
		}
	}
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"names": names}
}

func (f *function) leave() any {
	files, _ := filepath.Glob("/tmp/*")
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	children := 0
	for _, path := range commands {
		if text, _ := os.ReadFile(path); strings.HasPrefix(string(text), "/bin/sleep") {
			children++
		}
	}
	if err := os.MkdirAll("/tmp/folder/file", 0o700); err != nil {
		panic(err)
	}
	if err := exec.Command("/bin/sleep", "1000").Start(); err != nil {
		panic(err)
	}
	return map[string]any{"files": len(files), "children": children, "calls": f.calls}
}

// link is a link of a chain that runs ahead: what link of ahead_faults_test.go is in Python.
func (f *function) link(a *activation) any {
	number := a.Value.Link
	name := fmt.Append(nil, "link", number, "\x00")
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0); err != 0 {
		panic(err)
	}
	f.command("RPUSH did:%d %s", number, a.Transaction)
	time.Sleep(20 * time.Millisecond)
	f.command("INCR count:%d", number)
	if number == 2 {
		f.command("PUBLISH news x")
	}
	fmt.Println(a.ID, "of", number)
	return map[string]int{"n": a.Value.N}
}

// count increments a counter.
func (f *function) count() int { return f.command("INCR counter") }

// command executes a command of Redis that answers a number, over a connection that is kept.
func (f *function) command(format string, args ...any) int {
	if f.redis == nil {
		var err error
		if f.redis, err = net.Dial("tcp", "127.0.0.1:6379"); err != nil {
			panic(err)
		}
	}
	if _, err := fmt.Fprintf(f.redis, format+"\r\n", args...); err != nil {
		panic(err)
	}
	answer, err := bufio.NewReader(f.redis).ReadString('\n')
	if err != nil {
		panic(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(answer, ":")))
	if err != nil {
		panic(answer)
	}
	return n
}
