package worker

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/launcher"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
	"forerun.dev/forerun/internal/sandbox/native"
	"forerun.dev/forerun/internal/sandbox/sandboxtest"
	"forerun.dev/forerun/internal/state/resp"
)

// The test binary is also the sandboxes' helper, their first stage and the launcher in them.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case launcher.Command:
			os.Exit(launcher.Main(os.Args[2:]))
		case "sandbox-helper":
			os.Exit(native.HelperMain(native.HelperFD))
		case "sandbox-init":
			os.Exit(native.InitMain())
		}
	}
	if code, done := sandboxtest.InNetwork(); done {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// allowed is what counts as outside in a test.
func allowed() (list egress.List) {
	for _, a := range []netip.Addr{sandboxtest.Outside(), sandboxtest.Outside6()} {
		if a.IsValid() {
			list = append(list, egress.Rule{Network: netip.PrefixFrom(a, a.BitLen())})
		}
	}
	return list
}

// newNativeRig makes a worker over real sandboxes.
func newNativeRig(t testing.TB, change func(*Config)) *rig {
	languages := discover()
	if languages.Check("python:3") != nil {
		t.Skip("this machine has no Python")
	}
	sandboxes := native.Config{DataDir: t.TempDir(), BindRoots: languages.Folders(), Policy: guard.Policy{Allowed: allowed()}}
	if names := sandboxtest.Outside(); names.IsValid() {
		sandboxes.ResolvConf = sandboxtest.ResolvConf(t, names)
	}
	maker, err := native.StartHelper(sandboxes)
	if err != nil {
		t.Skipf("no sandboxes can be made here: %v", err)
	}
	config := Config{
		Maker: maker, Languages: languages, MemoryMiB: 16 << 10,
		Hub: new(resp.Hub), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&config)
	}
	w := New(config)
	w.load.read = idle
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if u := w.turns.use(); u.Used != 0 || u.Known != 0 || u.Waiting != 0 {
			t.Errorf("nothing runs, and %+v are in use", u)
		}
		if err := maker.Close(); err != nil {
			t.Errorf("closing the maker: %v", err)
		}
	})
	return &rig{w, nil, t}
}

func TestWaysToEndInRealSandboxes(t *testing.T) {
	g := newNativeRig(t, nil)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			checkWay(&rig{g.Worker, nil, t}, way.body, way.status, way.result, way.log, way.limits)
		})
	}
}

func TestLimitsOfRealSandboxes(t *testing.T) {
	g := newNativeRig(t, single)
	for name, c := range map[string]struct{ code, result string }{
		"memory": {
			"def main(args):\n  x = []\n  while args: x.append(bytearray(8 << 20))\n  return {}",
			`{"error":"The action exhausted its memory and was aborted."}`,
		},
		"memory of the loading": {
			"x = []\nwhile True: x.append(bytearray(8 << 20))",
			`{"error":"The action exhausted its memory and was aborted."}`,
		},
		"processes": {
			"import os, time\ndef main(args):\n  try:\n    while args:\n      if os.fork() == 0: time.sleep(60)\n  except OSError as e:\n    return {'e': e.strerror}\n  return {}",
			`{"e":"Resource temporarily unavailable"}`,
		},
		"the code's folder": {
			"def main(args):\n  if args: open('/action/x', 'w')\n  return {}",
			`{"error":"An error has occurred: OSError: [Errno 30] Read-only file system: '/action/x'. See the logs for details."}`,
		},
		"the initializer's memory": {
			"def main(args):\n  if args: open('/proc/1/maps')\n  return {}",
			`{"error":"An error has occurred: PermissionError: [Errno 13] Permission denied: '/proc/1/maps'. See the logs for details."}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "memory") && !enforced(g.config.Maker, "memory limit") {
				t.Skip("memory limits cannot be enforced here")
			}
			g := &rig{g.Worker, nil, t}
			a := action(c.code)
			a.Limits.Memory = 128
			if end := g.call(a, `{"go":true}`); string(end.Result) != c.result {
				t.Errorf("%s %q; want %s", end.Result, end.Logs, c.result)
			}
			if end := g.call(a, `{}`); end.Status != forerun.Success && name != "memory of the loading" {
				t.Errorf("the next activation: %s", end.Result)
			}
		})
	}
}

func enforced(m sandbox.Maker, what string) bool {
	return slices.ContainsFunc(m.Enforced(), func(e sandbox.Enforcement) bool { return e.What == what && e.On })
}

func TestRealDoors(t *testing.T) {
	store := withStore(t)
	g := newNativeRig(t, store)
	g.ServeAPI(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(Caller(r.Context()))) }))
	code := strings.NewReplacer(`int(os.environ[f"TEST_{door}_PORT"])`, `{"STATE": 6379, "API": 3233}[door]`).Replace(client)
	r, h := g.begin(action(code+"def main(args): return {'set': redis('SET k v'), 'get': redis('GET k'), 'api': api('/')}"), `{}`)
	end := g.wait(h)
	if want := fmt.Sprintf(`{"api":%q,"get":"$1\r\nv","set":"+OK"}`, r.Activation); string(end.Result) != want {
		t.Errorf("%s %q; want %s", end.Result, end.Logs, want)
	}
}

// TestDescriptorsThatWaitAsTheyAreClosed: sockets whose close would wait for their peer are sent to the server, with half of a frame, and it closes
// them last.
func TestDescriptorsThatWaitAsTheyAreClosed(t *testing.T) {
	g := newNativeRig(t, single)
	a := action(`
import array, os, socket, struct
def main(a):
    if not a: return {}
    l = socket.create_server(("127.0.0.1", 0))
    c = socket.create_connection(l.getsockname())
    p = l.accept()[0] # reads nothing
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 1000000))
    c.setblocking(False)
    try:
        while True: c.send(bytes(1 << 20))
    except BlockingIOError: pass
    for fd in map(int, os.listdir("/proc/self/fd")):
        try: s = socket.socket(fileno=fd)
        except OSError: continue
        if s.family == socket.AF_UNIX and s.type == socket.SOCK_STREAM:
            s.sendmsg([bytes(4)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [c.fileno(), p.fileno()]))])
        s.detach()
    os._exit(0)
`)
	if end := g.call(a, `{"send":true}`); end.Status != forerun.DeveloperError {
		t.Errorf("%v %s %q", end.Status, end.Result, end.Logs)
	}
	g.expect(a, `{}`, `{}`)
}

// TestChildProcessesFindTheCode: pools of processes that are started, not forked, import the action's file in a sandbox.
func TestChildProcessesFindTheCode(t *testing.T) {
	g := newNativeRig(t, single)
	a := action("import multiprocessing as mp\ndef square(x): return x * x\n" +
		"def main(a):\n  with mp.get_context(a['how']).Pool(2) as pool: return {'r': pool.map(square, [1, 2, 3]), 'own': open(__file__).read(6)}")
	for _, how := range []string{"fork", "spawn", "forkserver"} {
		g.expect(a, fmt.Sprintf(`{"how":%q}`, how), `{"own":"import","r":[1,4,9]}`)
	}
}
