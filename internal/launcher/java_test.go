package launcher

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"forerun.dev/forerun/internal/runtimewire"
)

// javaRuntime is where the build leaves the Java runtime.
const javaRuntime = "../../bin/runtimes/java"

func javaClasspath(t testing.TB) string {
	t.Helper()
	folder, err := filepath.Abs(javaRuntime)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "forerun-runtime.jar")); err != nil {
		t.Skip("the Java runtime is not built: mvn -f runtimes/java package")
	}
	return filepath.Join(folder, "forerun-runtime.jar") + ":" + filepath.Join(folder, "gson.jar")
}

func startJava(t testing.TB) *server {
	t.Helper()
	classpath := javaClasspath(t)
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("java is not installed")
	}
	return start(t, "java", java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"--add-opens=java.base/java.io=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED",
		"-cp", classpath, "dev.forerun.runtime.Main")
}

const javaAction = `package demo;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;

public class Hello {
  private static int calls;

  public static JsonObject main(JsonObject args) throws Exception {
    String what = args.has("do") ? args.get("do").getAsString() : "";
    switch (what) {
      case "throw": throw new IllegalStateException("nooo");
      case "untold":
        new Thread(() -> { for (;;) {} }).start();
        throw new IllegalStateException() { public String getMessage() { throw this; } };
      case "exit": System.out.println("before"); System.exit(3);
      case "loop": for (;;) {}
      case "null": return null;
      case "overflow": return main(args);
      case "interrupt": Thread.currentThread().interrupt(); break;
      case "sleep": Thread.sleep(1); break;
      case "flood": for (int i = 0; i < 20000; i++) System.out.println("line " + i);
      default:
    }
    JsonObject result = new JsonObject();
    result.addProperty("greeting", "Hello " + args.get("name").getAsString());
    result.addProperty("calls", ++calls);
    result.addProperty("id", System.getenv("__OW_ACTIVATION_ID"));
    result.addProperty("fixed", System.getenv("FIXED"));
    return result;
  }

  public static JsonObject other(JsonObject args) { return args; }

  public static JsonArray list(JsonArray args) { return args; }

  public static String wrong(JsonObject args) { return ""; }
}
`

// jar compiles the action.
func jar(t testing.TB) []byte {
	t.Helper()
	classpath, folder := javaClasspath(t), t.TempDir()
	source := filepath.Join(folder, "Hello.java")
	if err := os.WriteFile(source, []byte(javaAction), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"javac", "-cp", classpath, "-d", folder + "/classes", source},
		{"jar", "cfe", folder + "/a.jar", "demo.Hello", "-C", folder + "/classes", "."},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no JDK to compile the action with: %v: %s", err, out)
		}
	}
	code, err := os.ReadFile(folder + "/a.jar")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestJava(t *testing.T) {
	code := jar(t)
	h := startJava(t).serving(runtimewire.Init{Binary: true, Main: "demo.Hello", Env: map[string]string{"FIXED": "f"}}, code)
	h.send(runtimewire.Run{Env: map[string]string{"__OW_ACTIVATION_ID": "x1"}}, `{"name":"Ada ☃"}`)
	if got, want := h.outcome(), `{"greeting":"Hello Ada ☃","calls":1,"id":"x1","fixed":"f"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h.ready()
	for _, c := range []struct{ input, want string }{
		{`{"name":"Bob"}`, `{"greeting":"Hello Bob","calls":2,"id":null,"fixed":"f"}`},
		{`{"do":"throw"}`, "error: An error has occurred while invoking the action (see logs for details): java.lang.IllegalStateException: nooo"},
		{`{"do":"null"}`, "error: An error has occurred (see logs for details): java.lang.NullPointerException: The action returned null"},
		{`{"do":"overflow"}`, "error: An error has occurred while invoking the action (see logs for details): java.lang.StackOverflowError"},
		{`{"do":"flood","name":"x"}`, `{"greeting":"Hello x","calls":3,"id":null,"fixed":"f"}`},
		{`{"do":"interrupt","name":"x"}`, `{"greeting":"Hello x","calls":4,"id":null,"fixed":"f"}`},
		{`{"do":"sleep","name":"x"}`, `{"greeting":"Hello x","calls":5,"id":null,"fixed":"f"}`},
	} {
		if got := h.call(c.input); got != c.want {
			t.Errorf("%s: got %s, want %s", c.input, got, c.want)
		}
	}
	h.logged("at demo.Hello.main(Hello.java:")
	h.logged("line 19999\n")
	h.send(runtimewire.Run{}, `{"do":"exit"}`)
	if e := h.end(); e.Status != 3 {
		t.Errorf("the exit is %+v", e)
	}
	h.logged("before")
	h = h.fork()
	h.send(runtimewire.Run{}, `{"do":"untold"}`)
	if e := h.end(); e.Status != 1 {
		t.Errorf("the exit after an error that cannot be told is %+v", e)
	}
	h = h.fork()
	h.send(runtimewire.Run{}, `{"do":"loop"}`)
	if err := syscall.Kill(h.hostPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := h.end(); e.Signal != 9 {
		t.Errorf("the exit is %+v", e)
	}
}

func TestJavaEntryPoints(t *testing.T) {
	code := jar(t)
	for main, c := range map[string]struct{ input, want string }{
		"demo.Hello#other": {`{"a":1.50}`, `{"a":1.50}`},
		"demo.Hello#list":  {`[1]`, `[1]`},
		"":                 {`{"name":"x"}`, `{"greeting":"Hello x","calls":1,"id":null,"fixed":null}`},
		"demo.Hello#wrong": {`{}`, "error: An error has occurred (see logs for details): java.lang.NoSuchMethodException: wrong"},
	} {
		t.Run(main, func(t *testing.T) {
			h := startJava(t).serving(runtimewire.Init{Binary: true, Main: main}, code)
			if got := h.call(c.input); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestJavaRefuses(t *testing.T) {
	code := jar(t)
	if done := startJava(t).load(runtimewire.Init{Main: "demo.Hello"}, []byte("class Hello {}")); done.OK || !strings.Contains(done.Error, "not a jar") {
		t.Errorf("the answer to source text is %+v", done)
	}
	for name, c := range map[string]struct {
		main string
		code []byte
		want string
	}{
		"no jar":    {"demo.Hello", []byte("no jar"), "the code is not a jar"},
		"broken":    {"demo.Hello", []byte("PK\x03\x04 and so on"), "ClassNotFoundException: demo.Hello"},
		"no class":  {"demo.Missing", code, "ClassNotFoundException: demo.Missing"},
		"no method": {"demo.Hello#missing", code, "NoSuchMethodException: missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if done := startJava(t).load(runtimewire.Init{Binary: true, Main: c.main}, c.code); done.OK || !strings.Contains(done.Error, c.want) {
				t.Errorf("the answer is %+v", done)
			}
		})
	}
}
