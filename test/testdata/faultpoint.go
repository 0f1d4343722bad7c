package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
)

// faultPoints is the socket that the test listens on. The linker sets it.
var faultPoints string

// atFaultPoint tells the test which stage the slots of these names have come to, and goes on when the test has answered.
func atFaultPoint(stage string, names ...string) {
	c, err := net.Dial("unix", faultPoints)
	if err != nil {
		return // nobody listens
	}
	defer c.Close()
	_, _ = c.Write([]byte(stage + " " + strings.Join(names, ",") + "\n"))
	_, _ = c.Read(make([]byte, 1))
}

// threadName is the name that a thread gave itself; a function of the tests takes its action's.
func threadName(id uint32) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id)) // empty if it has ended
	return strings.TrimSpace(string(name))
}

// firstWord is what a text begins with; functions of the tests begin what they send with their action's name.
func firstWord(text []byte) string {
	word, _, _ := bytes.Cut(text, []byte(" "))
	return string(word)
}
