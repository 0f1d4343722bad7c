package test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// ordersInput are numbers of orders, of which the application refuses 13, and answers 100 with two megabytes.
const ordersInput = "3\n4\n13\n3\n100\n5\n"

// orders compiles the plain Java application and returns its class path.
func orders(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if out, err := exec.Command("javac", "-d", folder, "actions/offload/Orders.java").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

// runOrders runs the application with options of the JVM, and returns what it prints and what it says beside.
func runOrders(t *testing.T, classes string, options ...string) (printed, said string) {
	t.Helper()
	var errors bytes.Buffer
	cmd := exec.Command("java", append(options, "-XX:+UseSerialGC", "-cp", classes, "orders.Orders")...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(ordersInput), &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &errors)
	}
	return string(out), errors.String()
}

// agentOf takes the agent's jar from a server, and returns the option that starts it.
func agentOf(t *testing.T, s *server.Server, rest string) string {
	t.Helper()
	folder := t.TempDir()
	answer, err := http.Get(s.URL + "/offload/agent.jar")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	jar, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, err)
	}
	for name, content := range map[string][]byte{"agent.jar": jar, "key": []byte(s.Auth)} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("-javaagent:%s/agent.jar=url=%s,key-file=%[1]s/key%[3]s", folder, s.URL, rest)
}

// TestOffload runs a plain Java application with the agent: it prints what it prints without, and each call of its root is an activation.
func TestOffload(t *testing.T) {
	needOffload(t)
	s := start(t, server.Options{})
	classes := orders(t)
	want, _ := runOrders(t, classes)
	got, said := runOrders(t, classes, agentOf(t, s, ",roots=orders.Orders#price,mode=force,silence=300"))
	if got != want {
		t.Errorf("with the agent it prints\n%s\nwithout\n%s", got, want)
	}
	c := client(t, s)
	var records []*server.Record
	eventually(t, func() bool { // the last record is written when the application may have ended; one call may have found no function in time
		records = nil
		if err := c.Get(t.Context(), "activations?docs=true", &records); err != nil {
			t.Fatal(err)
		}
		return len(records) >= 5
	})
	endings := make(map[string]int)
	for _, r := range records {
		var result struct{ Root, Ending string }
		decode(t, r.Response.Result, &result)
		endings[result.Ending]++
		if result.Root != "orders.Orders#price(I)Ljava/lang/Object;" {
			t.Errorf("the record of a call names the root %q", result.Root)
		}
	}
	if calls := endings["returned"] + endings["thrown"]; calls < 5 || len(endings) > 2 {
		t.Errorf("of 6 calls the activations tell %v; the agent said:\n%s", endings, said)
	}
	t.Run("lost", func(t *testing.T) { ordersLost(t, s, classes) })
	if got, said := runOrders(t, classes, agentOf(t, s, "")); got != want || !strings.Contains(said, "nothing is offloaded") {
		t.Errorf("with the agent alone it prints\n%s\nand says\n%s", got, said)
	}
}

// ordersLost kills the function of a call that had no visible effect yet, and stops the function of one that had.
func ordersLost(t *testing.T, s *server.Server, classes string) {
	cmd := exec.CommandContext(t.Context(), "java", agentOf(t, s, ",roots=orders.Orders#price,mode=force,name=lost"), "-XX:+UseSerialGC", "-cp", classes, "orders.Orders")
	var said bytes.Buffer
	cmd.Stderr = &said
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	say := func(text string) {
		if _, err := io.WriteString(input, text); err != nil {
			t.Error(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("it prints %q, want %q; the agent said:\n%s", lines.Text(), want, &said)
		}
	}
	say("3\n7\n")
	expect("18 1 18 here")
	expect("asked")
	signalFunctions(t, s, syscall.SIGKILL)
	expect("order 7 waits") // once, when it is known that the line is of the run that counts
	say("go\n8\n")
	expect("196 2 214 here")
	expect("billed")
	signalFunctions(t, s, syscall.SIGSTOP)
	expect("no receipt: dev.forerun.offload.agent.OffloadLostException")
	signalFunctions(t, s, syscall.SIGKILL)
	offloadCommands(t, s, func() {
		say("3\n")
		lines.Scan()
	})
	_ = input.Close()
	for lines.Scan() {
		continue
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "runs here") {
		t.Errorf("%v; the agent said:\n%s", err, &said)
	}
}

// offloadCommands has the command line show what came of those calls, and switch the application off.
func offloadCommands(t *testing.T, s *server.Server, call func()) {
	t.Helper()
	forerun := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), binary, append([]string{"offload"}, args...)...)
		cmd.Env = []string{"WSK_CONFIG_FILE=" + s.Props()}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("offload %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	const root = "orders.Orders#price"
	eventually(t, func() bool {
		return strings.Contains(forerun("explain", "lost", root), "The last call that ran in the application")
	})
	if out := forerun("list"); !strings.Contains(out, "lost ") {
		t.Errorf("offload list prints\n%s", out)
	}
	if out := forerun("get", "lost"); !strings.Contains(out, root) || !strings.Contains(out, "mode on, 1 processes") {
		t.Errorf("offload get prints\n%s", out)
	}
	if out := forerun("explain", "lost", root); !strings.Contains(out, "runs as a function") || !strings.Contains(out, "invoke: ") {
		t.Errorf("offload explain prints\n%s", out)
	}
	forerun("mode", "lost", "off")
	eventually(t, func() bool {
		call()
		return strings.Contains(forerun("explain", "lost", root), "did so because: the mode is off")
	})
}

// signalFunctions sends a signal to all Java processes in a server's sandboxes.
func signalFunctions(t *testing.T, s *server.Server, signal syscall.Signal) {
	t.Helper()
	found := false
	for _, pid := range below(s.PID()) {
		if strings.Contains(commandLine(pid), "forerun-runtime.jar") {
			found = true
			_ = syscall.Kill(pid, signal) // it may have ended
		}
	}
	if !found {
		t.Error("no function in Java runs")
	}
}

// TestOffloadOff runs the application with the agent of a server that has offloading switched off.
func TestOffloadOff(t *testing.T) {
	needOffload(t)
	on, off := start(t, server.Options{}), start(t, server.Options{Args: []string{"--offload", "off"}})
	classes := orders(t)
	want, _ := runOrders(t, classes)
	agent := strings.Replace(agentOf(t, on, ",roots=orders.Orders#price,mode=force,silence=300"), on.URL, off.URL, 1)
	if got, said := runOrders(t, classes, agent); got != want || !strings.Contains(said, "no function") {
		t.Errorf("it prints\n%s\nwant\n%s\nand says\n%s", got, want, said)
	}
}

// offloadEcho joins its call after another activation, and the call of another name, were refused; then it sends back what comes.
const offloadEcho = `
import base64, json, os, socket, urllib.request

def upgrade(call):
    key = base64.b64encode(os.environ["__OW_API_KEY"].encode()).decode()
    s = socket.create_connection(("127.0.0.1", 3233))
    s.sendall(f"GET /offload/join?call={call} HTTP/1.1\r\nHost: x\r\nUpgrade: forerun-offload\r\nConnection: Upgrade\r\nAuthorization: Basic {key}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += s.recv(1)
    return s, head.split()[1].decode()

def thief(call):
    key = base64.b64encode(os.environ["__OW_API_KEY"].encode()).decode()
    r = urllib.request.Request("http://127.0.0.1:3233/api/v1/namespaces/_/actions/thief?blocking=true&result=true",
        json.dumps({"steal": call}).encode(), {"Authorization": "Basic " + key, "Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(r))["status"]

def main(args):
    if "steal" in args:
        return {"status": upgrade(args["steal"])[1]}
    stolen, wrong = thief(args["offload"]), upgrade("OTHER")[1]
    s, status = upgrade(args["offload"])
    s.sendall(f"{stolen} {wrong} {status}\n".encode())
    while data := s.recv(100):
        s.sendall(data)
    return {"ended": True}
`

// offloadLeaving leaves the stream of its call open when it returns.
const offloadLeaving = offloadEcho + `
def main(args):
    global kept
    kept = upgrade(args["offload"])[0]
    kept.sendall(b"joined\n")
    kept.recv(1)
`

// TestOffloadStreams joins the streams of a call by hand.
func TestOffloadStreams(t *testing.T) {
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"echo": offloadEcho, "thief": offloadEcho, "leaving": offloadLeaving})
	for _, refused := range []struct {
		path, upgrade, auth string
		status              int
	}{
		{"/offload/call?action=echo", "forerun-offload", "", http.StatusUnauthorized},
		{"/offload/call?action=echo", "", s.Auth, http.StatusBadRequest},
		{"/offload/call?action=none", "forerun-offload", s.Auth, http.StatusNotFound},
		{"/offload/call?action=/whisk.system/utils/echo", "forerun-offload", s.Auth, http.StatusForbidden},
		{"/offload/join?call=OTHER", "forerun-offload", s.Auth, http.StatusNotFound},
	} {
		if _, status := openStream(t, s, refused.path, refused.upgrade, refused.auth); status != refused.status {
			t.Errorf("%s with %q and key %q is answered %d, want %d", refused.path, refused.upgrade, refused.auth, status, refused.status)
		}
	}
	stream, status := openStream(t, s, "/offload/call?action=echo", "forerun-offload", s.Auth)
	if status != http.StatusSwitchingProtocols {
		t.Fatalf("the stream is answered %d", status)
	}
	for _, want := range []string{"404 404 101\n", "back\n"} {
		if line, err := stream.ReadString('\n'); err != nil || line != want {
			t.Errorf("the function says %q, want %q: %v", line, want, err)
		}
		if want == "back\n" {
			break // a close with something unread would reset the function's stream
		}
		if _, err := io.WriteString(stream, "back\n"); err != nil {
			t.Error(err)
		}
	}
	_ = stream.Close()
	eventually(t, func() bool { // the activation ends with its stream
		var records []*server.Record
		err := c.Get(context.WithoutCancel(t.Context()), "activations?name=echo&docs=true", &records)
		return err == nil && len(records) == 1 && strings.Contains(string(records[0].Response.Result), "ended")
	})
	stream, status = openStream(t, s, "/offload/call?action=leaving", "forerun-offload", s.Auth)
	if line, err := stream.ReadString('\n'); status != http.StatusSwitchingProtocols || line != "joined\n" {
		t.Fatalf("the stream is answered %d, and the function says %q: %v", status, line, err)
	}
	if _, err := io.WriteString(stream, "."); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(stream); len(rest) > 0 || err != nil { // the stream ends with its activation
		t.Errorf("the stream of a function that leaves it open ends with %q: %v", rest, err)
	}
}

// byHand is a connection with what was read of it.
type byHand struct {
	net.Conn
	*bufio.Reader
}

// Read implements io.Reader.
func (b byHand) Read(p []byte) (int, error) { return b.Reader.Read(p) }

// openStream sends a request that asks for a stream, and returns the status of its answer.
func openStream(t *testing.T, s *server.Server, path, upgrade, auth string) (byHand, int) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if uuid, key, ok := strings.Cut(auth, ":"); ok {
		r.SetBasicAuth(uuid, key)
	}
	if upgrade != "" {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", upgrade)
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return byHand{conn, reader}, answer.StatusCode
}
