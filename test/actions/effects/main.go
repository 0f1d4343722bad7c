// Command effects is a native function that tells the outside its word, in a way whose name stands behind the program in its file: by
// system calls of its own, threads and children, as a program without a runtime around it can.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// input is what the function is called with.
type input struct {
	Host, Host6, Word, Name, Question string
	TCP, UDP, TLS                     int
}

func main() {
	if len(os.Args) == 3 { // a child
		child(os.Args[1], os.Args[2])
		return
	}
	program, err := os.Executable()
	must(err)
	text, err := os.ReadFile(program)
	must(err)
	effect := ways[path.Base(string(text[len(text)-longest:]))]
	lines, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.NewFile(3, "out"))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var activation struct{ Value input }
		must(json.Unmarshal(line, &activation))
		ready()
		must(out.Encode(map[string]string{"got": strings.TrimSpace(effect(&activation.Value))}))
	}
}

// longest is more than the longest name of a way has, and what is before it in the file.
const longest = 64

// ways are the effects: each returns the word if it was heard, or would have been.
var ways = map[string]func(*input) string{
	"TLS":          overTLS,
	"UDP":          func(a *input) string { return say(dial("udp", a.Host, a.UDP), a.Word) },
	"IPv6":         func(a *input) string { return say(dial("tcp", a.Host6, a.TCP), a.Word+"\n") },
	"bare connect": func(a *input) string { dial("tcp", a.Host, a.TCP); return a.Word },
	"keep-alive": func(a *input) string {
		connect(a)
		n, err := syscall.Write(descriptor(kept), []byte(a.Word+"\n"))
		must(err)
		return hear(kept)[:n-1]
	},
	"thread": func(a *input) string {
		got := make(chan string)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with it
			got <- bare(a)
		}()
		return <-got
	},
	"sendmmsg":                  sendmmsg,
	"TCP fast open or else TCP": fastOpen,
	"child":                     func(a *input) string { return run("say", address(a.Host, a.TCP)+" "+a.Word, nil) },
	"child's socket":            lent,
	"socket of a child": func(a *input) string {
		connect(a)
		file, err := kept.File()
		must(err)
		defer file.Close()
		run("echo", a.Word, file)
		return hear(kept)
	},
	"io_uring or else TCP": func(a *input) string {
		var parameters [120]byte
		if ring, _, err := syscall.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0); err == 0 {
			return fmt.Sprint("ring ", ring)
		}
		return bare(a)
	},
	"name": func(a *input) string {
		found, err := (&net.Resolver{PreferGo: true}).LookupIP(context.Background(), "ip4", a.Name)
		must(err)
		return a.ifRight(found[0].String() == a.Host)
	},
	"question over TCP": func(a *input) string {
		question, err := hex.DecodeString(a.Question)
		must(err)
		answer := say(dial("tcp", "127.0.0.1", 53), string([]byte{byte(len(question) >> 8), byte(len(question))})+string(question))
		return a.ifRight(net.IP(answer[len(answer)-4:]).String() == a.Host)
	},
}

var kept *net.TCPConn

// connect makes the connection that is kept.
func connect(a *input) {
	if kept == nil {
		kept = dial("tcp", a.Host, a.TCP).(*net.TCPConn)
	}
}

func (a *input) ifRight(right bool) string {
	if right {
		return a.Word
	}
	return "something else"
}

// ready tells the test at the API's door that the function has come here, and waits until it may go on.
func ready() { say(dial("tcp", "127.0.0.1", 3233), "GET /ready HTTP/1.0\r\n\r\n") }

func overTLS(a *input) string {
	connection, err := tls.Dial("tcp", address(a.Host, a.TLS), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test has made its certificate itself
	must(err)
	_, err = fmt.Fprintf(connection, "GET /%s HTTP/1.0\r\n\r\n", a.Word)
	must(err)
	answer, err := io.ReadAll(connection)
	must(err)
	_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	return body
}

// over makes a socket, has something sent on it, and returns the answer.
func over(kind int, send func(s int)) string {
	s, err := syscall.Socket(syscall.AF_INET, kind, 0)
	must(err)
	defer syscall.Close(s)
	send(s)
	answer := make([]byte, 100)
	n, err := syscall.Read(s, answer)
	must(err)
	return string(answer[:n])
}

// bare says the word by system calls alone.
func bare(a *input) string { return over(syscall.SOCK_STREAM, a.write) }

func (a *input) write(s int) {
	must(syscall.Connect(s, ipv4(a.Host, a.TCP)))
	_, err := syscall.Write(s, []byte(a.Word+"\n"))
	must(err)
}

// fastOpen connects and sends with one call, where that can be done.
func fastOpen(a *input) string {
	return over(syscall.SOCK_STREAM, func(s int) {
		err := syscall.Sendto(s, []byte(a.Word+"\n"), unix.MSG_FASTOPEN, ipv4(a.Host, a.TCP))
		if errors.Is(err, syscall.EOPNOTSUPP) {
			a.write(s)
			return
		}
		must(err)
	})
}

func sendmmsg(a *input) string {
	to, word := ipv4(a.Host, a.UDP), []byte(a.Word)
	name := syscall.RawSockaddrInet4{Family: syscall.AF_INET, Port: uint16(to.Port>>8 | to.Port<<8&0xff00), Addr: to.Addr}
	part := syscall.Iovec{Base: &word[0], Len: uint64(len(word))}
	message := struct {
		syscall.Msghdr
		sent uint32
	}{Msghdr: syscall.Msghdr{Name: (*byte)(unsafe.Pointer(&name)), Namelen: syscall.SizeofSockaddrInet4, Iov: &part, Iovlen: 1}}
	return over(syscall.SOCK_DGRAM, func(s int) {
		if n, _, err := syscall.Syscall6(unix.SYS_SENDMMSG, uintptr(s), uintptr(unsafe.Pointer(&message)), 1, 0, 0, 0); n != 1 {
			panic(err)
		}
	})
}

// lent says the word over a connection that a child has made.
func lent(a *input) string {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(err)
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	run("lend", address(a.Host, a.TCP), theirs)
	rights := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := syscall.Recvmsg(pair[0], make([]byte, 1), rights, 0)
	must(err)
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	must(err)
	sockets, err := syscall.ParseUnixRights(&messages[0])
	must(err)
	file := os.NewFile(uintptr(sockets[0]), "lent")
	defer file.Close()
	connection, err := net.FileConn(file)
	must(err)
	return say(connection, a.Word+"\n")
}

// run has a child do something, whose standard output this is, and returns what it printed if there is none.
func run(what, with string, output *os.File) string {
	command := exec.Command("/proc/self/exe", what, with)
	command.Stderr = os.Stderr
	if output != nil {
		command.Stdout = output
		must(command.Run())
		return ""
	}
	printed, err := command.Output()
	must(err)
	return string(printed)
}

// child is what a child does.
func child(what, with string) {
	switch what {
	case "echo":
		fmt.Println(with)
	case "say":
		to, word, _ := strings.Cut(with, " ")
		connection, err := net.Dial("tcp", to)
		must(err)
		fmt.Println(say(connection, word+"\n"))
	case "lend":
		connection, err := net.Dial("tcp", with)
		must(err)
		must(syscall.Sendmsg(1, []byte("x"), syscall.UnixRights(descriptor(connection.(*net.TCPConn))), nil, 0))
	}
}

func dial(network, host string, port int) net.Conn {
	connection, err := net.Dial(network, address(host, port))
	must(err)
	return connection
}

func address(host string, port int) string { return net.JoinHostPort(host, fmt.Sprint(port)) }

func ipv4(host string, port int) *syscall.SockaddrInet4 {
	return &syscall.SockaddrInet4{Port: port, Addr: [4]byte(net.ParseIP(host).To4())}
}

func descriptor(connection *net.TCPConn) (fd int) {
	raw, err := connection.SyscallConn()
	must(err)
	must(raw.Control(func(s uintptr) { fd = int(s) }))
	return fd
}

// say sends a text, and returns the answer.
func say(connection net.Conn, text string) string {
	defer connection.Close()
	_, err := io.WriteString(connection, text)
	must(err)
	return hear(connection)
}

func hear(r io.Reader) string {
	answer := make([]byte, 1000)
	n, err := r.Read(answer)
	must(err)
	return string(answer[:n])
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
