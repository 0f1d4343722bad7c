package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// peerProgram finds the program that npm installed under a folder: each platform's is in a package of its own.
func peerProgram(folder, name, program string) (string, error) {
	found, err := filepath.Glob(filepath.Join(folder, "node_modules", name+"-linux-*", "bin", program))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("there is no %s for this machine in %s: make bench-baseline installs it", program, folder)
	}
	return filepath.Abs(found[0])
}

// Workerd is a workerd that serves the chain of bench/peers: ten workers that call no one, called through service bindings.
type Workerd struct {
	URL     string
	process *Process
}

// StartWorkerd starts the workerd that npm installed in folder, on a free port.
func StartWorkerd(folder string) (*Workerd, error) {
	program, err := peerProgram(folder, "@cloudflare/workerd", "workerd")
	if err != nil {
		return nil, err
	}
	events, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer events.Close()
	cmd := exec.Command(program, "serve", "--control-fd=3", "workerd.capnp")
	cmd.Dir, cmd.ExtraFiles = folder, []*os.File{theirs}
	process, err := StartProcess(cmd)
	theirs.Close()
	if err != nil {
		return nil, err
	}
	var listening struct {
		Port int `json:"port"`
	}
	if err := json.NewDecoder(events).Decode(&listening); err != nil {
		process.Stop()
		return nil, fmt.Errorf("workerd did not start: %w: %s", err, process.log)
	}
	return &Workerd{URL: fmt.Sprintf("http://127.0.0.1:%d/", listening.Port), process: process}, nil
}

// Stop ends workerd.
func (w *Workerd) Stop() { w.process.Stop() }

// Restate is a restate-server of one node with its defaults, and the services of bench/peers on Node.
type Restate struct {
	Calls string // the address of a handler that calls another service ten times
	Steps string // that of a handler with ten steps of its own

	server, services *Process
	stdin            io.Closer // of the services
}

// StartRestate starts the restate-server that npm installed in folder, on free ports with its data under parent, and deploys the services.
func StartRestate(ctx context.Context, folder, parent string) (*Restate, error) {
	r := new(Restate)
	uri, err := r.startServices(folder)
	if err == nil {
		err = r.startServer(ctx, folder, parent, uri)
	}
	if err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// startServices starts the services and returns their address.
func (r *Restate) startServices(folder string) (uri string, err error) {
	node, err := peerProgram(folder, "node", "node")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(node, "restate.js")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "NODE_ENV=production", "RESTATE_LOGGING=WARN")
	if r.stdin, err = cmd.StdinPipe(); err != nil {
		return "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if r.services, err = StartProcess(cmd); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the services of Restate did not start: %w: %s", err, r.services.log)
	}
	return strings.TrimSpace(line), nil
}

func (r *Restate) startServer(ctx context.Context, folder, parent, uri string) error {
	program, err := peerProgram(folder, "@restatedev/restate-server", "restate-server")
	if err != nil {
		return err
	}
	var addresses, ports [3]string
	for i := range ports {
		if addresses[i], ports[i], err = freeAddress(); err != nil {
			return err
		}
	}
	cmd := exec.Command(program, "--base-dir", filepath.Join(parent, "restate"), "--bind-ip", "127.0.0.1", "--listen-mode", "tcp", "--log-filter", "warn")
	cmd.Env = append(os.Environ(), "DO_NOT_TRACK=1", "RESTATE_DISABLE_TELEMETRY=true",
		"RESTATE_BIND_PORT="+ports[0], "RESTATE_ADMIN__BIND_PORT="+ports[1], "RESTATE_INGRESS__BIND_PORT="+ports[2])
	if r.server, err = StartProcess(cmd); err != nil {
		return err
	}
	ingress := "http://" + addresses[2]
	r.Calls, r.Steps = ingress+"/chain/calls", ingress+"/chain/steps"
	body, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return err
	}
	for _, step := range []struct{ url, body string }{{"http://" + addresses[1] + "/deployments", string(body)}, {r.Calls, "{}"}, {r.Steps, "{}"}} {
		if err := r.server.Await(ctx, func(ctx context.Context) error { return post(ctx, step.url, step.body) }); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the server and the services.
func (r *Restate) Stop() {
	for _, p := range []*Process{r.server, r.services} {
		if p != nil {
			p.Stop()
		}
	}
	if r.stdin != nil {
		r.stdin.Close()
	}
}

// post sends a request that must succeed.
func post(ctx context.Context, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = errors.New(resp.Status + ": " + string(answer))
	}
	return err
}
