package test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// TestGuide follows README.md and each page of docs/guide as a reader does: it writes the files, types the commands in the
// order of the page, and compares what they print. A page has these blocks:
//
//   - a fence of any language with a name behind it (```python hello.py) is that file;
//   - ```sh is typed into a shell, which keeps its folder and variables for the whole page, and has to succeed;
//   - ```text or ```json right behind it is what that prints to stdout and stderr, where ... stands for anything;
//   - a block behind <!-- not run: REASON --> is neither typed nor compared.
//
// One server serves all pages, in the order in which a reader is told to read them. Nothing may depend on how long a command takes, so
// traces are typed and not compared.
func TestGuide(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	for _, path := range pagesInOrder(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := blocksOf(string(text))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			followPage(t, s, blocks)
		})
	}
}

// pagesInOrder are README.md, and the pages of the guide as its contents list them.
func pagesInOrder(t *testing.T) []string {
	t.Helper()
	const folder = "../docs/guide/"
	contents, err := os.ReadFile(folder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	order := []string{"../README.md", folder + "README.md"}
	for _, row := range regexp.MustCompile(`(?m)^\| \[.+\]\((.+\.md)\)`).FindAllSubmatch(contents, -1) {
		order = append(order, folder+string(row[1]))
	}
	pages, err := filepath.Glob(folder + "*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no pages: %v", err)
	}
	for _, page := range pages {
		if !slices.Contains(order, page) {
			t.Errorf("the contents of the guide do not list %s", page)
		}
	}
	return order
}

// block is a fenced block of a page.
type block struct {
	line   int    // of the page, where it opens
	file   string // the name of the file that it is; empty: it is typed
	text   string
	prints string // what it has to print; empty: anything
}

var (
	fenced    = regexp.MustCompile("^```(\\w*) *(.*)$")
	notRun    = regexp.MustCompile(`^<!-- not run: .+ -->$`)
	anything  = regexp.MustCompile(`\\\.\\\.\\\.`)
	trailing  = regexp.MustCompile(`[ \t]+\n`)
	separator = "\x1eend of a block\n"
)

// blocksOf reads the blocks that a page's reader carries out.
func blocksOf(page string) (blocks []block, err error) {
	var open *block
	var language string
	var skipped, adjacent bool // of the block that comes next: it is not run; only empty lines are between it and a typed one
	for i, line := range strings.Split(page, "\n") {
		fence := fenced.FindStringSubmatch(line)
		switch {
		case open == nil && fence != nil:
			open, language = &block{line: i + 1, file: fence[2]}, fence[1]
		case open == nil && line != "":
			adjacent, skipped = false, notRun.MatchString(line)
		case open == nil:
		case line != "```":
			open.text += line + "\n"
		default:
			switch {
			case skipped:
				adjacent = false
			case language == "sh" || open.file != "":
				blocks, adjacent = append(blocks, *open), open.file == ""
			case adjacent && (language == "text" || language == "json"):
				blocks[len(blocks)-1].prints, adjacent = open.text, false
			default:
				err = fmt.Errorf("line %d: the block is not a file, typed or printed by what stands before it: say why with <!-- not run: REASON -->", open.line)
			}
			open, skipped = nil, false
		}
	}
	if open != nil {
		err = fmt.Errorf("line %d: the block does not end", open.line)
	}
	return blocks, err
}

// followPage carries out the blocks of a page against a server, in a folder and a home of its own.
func followPage(t *testing.T, s *server.Server, blocks []block) {
	here := strings.NewReplacer( // the pages name the defaults
		"127.0.0.1:3233", strings.TrimPrefix(s.URL, "http://"),
		"127.0.0.1:6380", s.Redis,
		"-p 6380", "-p "+s.Redis[strings.LastIndex(s.Redis, ":")+1:],
		"/var/lib/forerun", s.Options.Data)
	sh := newShell(t, s)
	var script strings.Builder
	script.WriteString("exec 2>&1 </dev/null\n")
	for i, b := range blocks {
		if b.file != "" {
			source := fmt.Sprintf("../block-%d", i)
			sh.save(t, map[string]string{source: here.Replace(b.text)})
			fmt.Fprintf(&script, "mkdir -p \"$(dirname '%s')\"\ncp %s '%s'\n", b.file, source, b.file)
		} else {
			script.WriteString(here.Replace(b.text))
		}
		fmt.Fprintf(&script, "printf %%s '%s'\n", separator)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script.String())
	cmd.Dir = sh.folder
	cmd.Env = append(os.Environ(), "HOME="+sh.home, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TZ=UTC", "GOFLAGS=-buildvcs=false")
	cmd.Env = slices.Concat(cmd.Env, goCaches(), packageIndex(t))
	var out bytes.Buffer
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	ended := cmd.Run()
	printed := strings.Split(out.String(), separator)
	for i, b := range blocks {
		if i == len(printed)-1 {
			t.Fatalf("line %d: it ended with %v, and printed:\n%s", b.line, ended, printed[i])
		}
		if want := here.Replace(b.prints); b.prints != "" && !prints(want, printed[i]) {
			t.Errorf("line %d: it printed:\n%s\nthe page says:\n%s", b.line, printed[i], want)
		}
	}
}

// prints reports whether a text is what a page says, in which ... stands for anything and spaces at the end of lines do not count.
func prints(page, text string) bool {
	page, text = trailing.ReplaceAllString(page, "\n"), trailing.ReplaceAllString(text, "\n")
	form := anything.ReplaceAllString(regexp.QuoteMeta(strings.TrimSpace(page)), "(?s:.*)")
	return regexp.MustCompile("^" + form + "$").MatchString(strings.TrimSpace(text))
}

// TestBlocksOfAPage: a block that is neither carried out nor excused is an error, and an excuse holds for one block.
func TestBlocksOfAPage(t *testing.T) {
	t.Parallel()
	const file, typed, output = "Save it:\n\n```python a/b.py\nx\n```\n\n", "```sh\none\ntwo\n```\n\n", "```text\n1 ... 2\n```\n"
	blocks, err := blocksOf(file + typed + output + "<!-- not run: it needs a network -->\n\n```sh\nthree\n```\n" + typed)
	if want := []block{{line: 3, file: "a/b.py", text: "x\n"}, {line: 7, text: "one\ntwo\n", prints: "1 ... 2\n"}, {line: 20, text: "one\ntwo\n"}}; err != nil ||
		fmt.Sprint(blocks) != fmt.Sprint(want) {
		t.Errorf("%v, %v, want %v", blocks, err, want)
	}
	for _, page := range []string{output, typed + "Then:\n\n" + output, "```yaml\na: 1\n```\n", "```sh\none\n", "<!-- not run: -->\n" + output, file + output} {
		if blocks, err := blocksOf(page); err == nil {
			t.Errorf("no error in %q: %v", page, blocks)
		}
	}
	for text, want := range map[string]bool{"1 and \n 2": true, "1  2  ": true, "1 2": false, "1 and 2 3": false} {
		if prints("1 ... 2\n", text) != want {
			t.Errorf("prints(%q) is not %t", text, want)
		}
	}
}

// packageIndex stands in for PyPI and npm's registry: it has the two packages that docs/guide/dependencies.md installs. It
// returns what pip and npm find it by.
func packageIndex(t *testing.T) []string {
	t.Helper()
	const wheel, tarball = "humanize-4.17.0-py3-none-any.whl", "is-odd-3.0.1.tgz"
	var wheelFile bytes.Buffer
	zipped := zip.NewWriter(&wheelFile)
	for name, text := range map[string]string{
		"humanize.py":                        "def naturalsize(n):\n    return f'{n / 1000:.1f} kB'\n",
		"humanize-4.17.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: humanize\nVersion: 4.17.0\n",
		"humanize-4.17.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"humanize-4.17.0.dist-info/RECORD":   "",
	} {
		file, err := zipped.Create(name)
		if err == nil {
			_, err = file.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	var tarFile bytes.Buffer
	squeezed := gzip.NewWriter(&tarFile)
	packed := tar.NewWriter(squeezed)
	for name, text := range map[string]string{
		"package/package.json": `{"name": "is-odd", "version": "3.0.1"}`,
		"package/index.js":     "module.exports = n => n % 2 === 1\n",
	} {
		err := packed.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		if err == nil {
			_, err = packed.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(packed.Close(), squeezed.Close()); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	index := httptest.NewServer(mux)
	t.Cleanup(index.Close)
	for path, answer := range map[string]struct{ contentType, body string }{
		"/simple/humanize/": {"text/html", fmt.Sprintf(`<a href="/%s">%s</a>`, wheel, wheel)},
		"/" + wheel:         {"application/zip", wheelFile.String()},
		"/is-odd": {"application/json", fmt.Sprintf(`{"name": "is-odd", "dist-tags": {"latest": "3.0.1"}, "versions": {"3.0.1":
			{"name": "is-odd", "version": "3.0.1", "dist": {"tarball": "%s/%s"}}}}`, index.URL, tarball)},
		"/" + tarball: {"application/octet-stream", tarFile.String()},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", answer.contentType)
			_, _ = io.WriteString(w, answer.body) // a client that is gone has failed
		})
	}
	return []string{
		"PIP_CONFIG_FILE=/dev/null", "PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore",
		"PIP_INDEX_URL=" + index.URL + "/simple", "npm_config_registry=" + index.URL, "npm_config_audit=false", "npm_config_fund=false",
	}
}
