package test

import (
	"bufio"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"forerun.dev/forerun/test/server"
)

const thumbsJar = "../bin/examples/thumbs.jar"

// thumbsRoots are what the application has functions do.
const thumbsRoots = "thumbs.Thumbnailer#thumbnail;thumbs.Reports#colours;thumbs.AlbumController#list"

// boot is a running Spring Boot application.
type boot struct {
	url  string
	stop func() (log string)
}

var bootPort = regexp.MustCompile(`Tomcat started on port (\d+)`)

// startBoot starts an application's jar at a free port.
func startBoot(t *testing.T, jar string, options ...string) *boot {
	t.Helper()
	options = append(options, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", jar, "--server.port=0")
	cmd := exec.CommandContext(t.Context(), "java", options...)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errors bytes.Buffer
	cmd.Stderr = &errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ports := make(chan string, 1)
	var log strings.Builder
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(ports)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			log.WriteString(lines.Text() + "\n")
			if found := bootPort.FindStringSubmatch(lines.Text()); found != nil {
				ports <- found[1]
			}
		}
	})
	b := &boot{stop: sync.OnceValue(func() string {
		_ = cmd.Process.Kill()
		reading.Wait()
		_ = cmd.Wait() // it was killed
		return log.String() + errors.String()
	})}
	t.Cleanup(func() { b.stop() })
	port, ok := <-ports
	if !ok {
		t.Fatalf("the application ended:\n%s", b.stop())
	}
	b.url = "http://127.0.0.1:" + port
	return b
}

// ask sends a request and returns its answer as text.
func (b *boot) ask(t *testing.T, method, path string, body []byte) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s: %d %q", method, path, answer.StatusCode, content)
}

// painted is a picture whose pixels all differ.
func painted(t *testing.T, width, height int) []byte {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			picture.Set(x, y, color.RGBA{uint8(x * 255 / width), uint8(y * 255 / height), uint8(x * y), 255})
		}
	}
	var content bytes.Buffer
	if err := png.Encode(&content, picture); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}

// useThumbs makes requests of the application: what it answers, and the lines of its log that its own code wrote.
func useThumbs(t *testing.T, b *boot) (answers, lines []string) {
	t.Helper()
	b.ask(t, http.MethodPut, "/pictures/one", painted(t, 80, 60))
	b.ask(t, http.MethodPut, "/pictures/two", painted(t, 40, 90))
	for _, width := range []int{20, 33, 0} {
		for _, name := range []string{"one", "two", "none"} {
			answers = append(answers, b.ask(t, http.MethodGet, fmt.Sprintf("/pictures/%s/thumbnail?width=%d", name, width), nil))
		}
		answers = append(answers, b.ask(t, http.MethodGet, "/report", nil), b.ask(t, http.MethodGet, "/pictures", nil))
	}
	answers = append(answers, b.ask(t, http.MethodGet, "/journal", nil))
	for line := range strings.Lines(b.stop()) {
		if _, own, ok := strings.Cut(line, "thumbs.Thumbnailer"); ok {
			lines = append(lines, strings.TrimSpace(own))
		}
	}
	return answers, lines
}

// TestOffloadBoot runs a Spring Boot application with and without the agent: it answers and logs the same, and functions answer the calls.
func TestOffloadBoot(t *testing.T) {
	needOffload(t)
	if _, err := os.Stat(thumbsJar); err != nil {
		t.Skip("the Spring Boot application is not built; make bin/examples/thumbs.jar builds it")
	}
	s := start(t, server.Options{})
	want, wantLines := useThumbs(t, startBoot(t, thumbsJar))
	agent := agentOf(t, s, ",roots="+thumbsRoots+",mode=force,silence=300")
	got, lines := useThumbs(t, startBoot(t, thumbsJar, agent))
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("with the agent: %s\nwithout: %s", got[i], want[i])
		}
	}
	if a, b := strings.Join(lines, "\n"), strings.Join(wantLines, "\n"); a != b || len(lines) != 4 {
		t.Errorf("with the agent its log has\n%s\nwithout\n%s", a, b)
	}
	var records []*server.Record
	if err := client(t, s).Get(t.Context(), "activations?docs=true", &records); err != nil {
		t.Fatal(err)
	}
	endings := make(map[string]int)
	for _, r := range records {
		var result struct{ Root, Ending, Reason string }
		decode(t, r.Response.Result, &result)
		endings[result.Ending]++
		if result.Ending == "refused" {
			t.Errorf("%s was refused: %s", result.Root, result.Reason)
		}
	}
	if calls := endings["returned"] + endings["thrown"]; calls < 13 { // of 15: the last record may not be there yet, and one call may find no function in time
		t.Errorf("activations tell %v", endings)
	}
}
