package forerun

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseName(t *testing.T) {
	for in, want := range map[string]string{
		"/guest/hello":        "/guest/hello",
		"/_/hello":            "/me/hello",
		"hello":               "/me/hello",
		"pkg/hello":           "/me/pkg/hello",
		"/guest/pkg/hello":    "/guest/pkg/hello",
		"/guest/a name@x.y-z": "/guest/a name@x.y-z",
		"/guest/über":         "",
		"/guest":              "",
		"":                    "",
		"/guest/":             "",
		"/a/b/c/d":            "",
		"/guest/ hello":       "",
		"/guest/../x":         "",
		"/guest/a\x00b":       "",
		"/guest/hello\n":      "",
	} {
		n, err := ParseName(in, "me")
		switch {
		case want == "" && KindOf(err) != Invalid:
			t.Errorf("ParseName(%q) = %v, %v; want an Invalid error", in, n, err)
		case want != "" && (err != nil || n.String() != want):
			t.Errorf("ParseName(%q) = %v, %v; want %s", in, n, err, want)
		}
	}
	if _, err := ParseName(strings.Repeat("x", 257), "me"); KindOf(err) != TooLarge {
		t.Errorf("a name of 257 characters: %v", err)
	}
}

func TestActivationIDs(t *testing.T) {
	id := NewActivationID(time.Now())
	if parsed, err := ParseActivationID(string(id)); err != nil || parsed != id {
		t.Errorf("ParseActivationID(%s) = %s, %v", id, parsed, err)
	}
	if id == NewActivationID(time.Now()) {
		t.Error("two ids are the same")
	}
	for _, s := range []string{"", "abc", strings.Repeat("g", 32), strings.Repeat("A", 32), strings.Repeat("0", 33)} {
		if _, err := ParseActivationID(s); KindOf(err) != Invalid {
			t.Errorf("ParseActivationID(%q): %v", s, err)
		}
	}
}

func TestErrorsKeepTheirKindAndCause(t *testing.T) {
	err := fmt.Errorf("serving: %w", Errorf(NotFound, "GET /ns/x", "There is no such action: %w", fs.ErrNotExist))
	if KindOf(err) != NotFound || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v has the kind %v", err, KindOf(err))
	}
	if want := "serving: GET /ns/x: There is no such action: file does not exist"; err.Error() != want {
		t.Errorf("%q; want %q", err, want)
	}
	if KindOf(errors.New("x")) != Internal {
		t.Error("an error without a kind is not Internal")
	}
	for k := Internal; k <= DeadlineExpired; k++ {
		if k.HTTPStatus() < 400 {
			t.Errorf("kind %d has the status %d", k, k.HTTPStatus())
		}
	}
}

func TestDigestTellsWhatWouldRunApart(t *testing.T) {
	base := Action{Name: Name{"ns", "", "a"}, Exec: Exec{Kind: "python:3", Code: "x"}, Limits: DefaultLimits()}
	same := base
	same.Version, same.Annotations = "0.0.9", []KeyValue{{Key: "description"}}
	if base.Digest() != same.Digest() {
		t.Error("a description changes the digest")
	}
	for what, change := range map[string]func(*Action){
		"code":       func(a *Action) { a.Exec.Code = "y" },
		"kind":       func(a *Action) { a.Exec.Kind = "nodejs:20" },
		"main":       func(a *Action) { a.Exec.Main = "other" },
		"name":       func(a *Action) { a.Name.Entity = "b" },
		"limits":     func(a *Action) { a.Limits.Memory++ },
		"parameters": func(a *Action) { a.Parameters = []KeyValue{{Key: "k", Value: []byte("1")}} },
		"init":       func(a *Action) { a.Parameters = []KeyValue{{Key: "k", Value: []byte("null"), Init: true}} },
		"secret":     func(a *Action) { a.Parameters = []KeyValue{Hide("k", []byte("1"), true)} },
		"conductor":  func(a *Action) { a.Annotations = []KeyValue{{Key: "conductor", Value: []byte("true")}} },
		"read-hosts": func(a *Action) { a.Annotations = []KeyValue{{Key: "read-hosts", Value: []byte(`["h"]`)}} },
	} {
		changed := base
		if change(&changed); changed.Digest() == base.Digest() {
			t.Errorf("another %s has the same digest", what)
		}
	}
}

func TestDeploymentsOfTheSameAreToldApart(t *testing.T) {
	var known Digests
	first := &Action{Name: Name{"ns", "", "a"}, Updated: time.Unix(1, 1)}
	same, again := *first, *first
	again.Updated = time.Unix(1, 2)
	if known.Deployed(first) != known.Deployed(&same) || known.Deployed(first) == known.Deployed(&again) {
		t.Error("a deployment is not told by when it was made")
	}
	if known.Of(first) != known.Of(&again) {
		t.Error("what is executed is told by when it was deployed")
	}
}

func TestDigestsAreThoseOfTheActions(t *testing.T) {
	var known Digests
	for n := range maxDigests + 10 {
		a := &Action{Name: Name{"ns", "", strconv.Itoa(n % 3)}}
		for range 2 {
			if known.Of(a) != a.Digest() {
				t.Fatal("another digest")
			}
		}
	}
	if len(known.known) > maxDigests {
		t.Errorf("%d are remembered", len(known.known))
	}
}

// TestDefaults: what docs/reference/limits.md promises.
func TestDefaults(t *testing.T) {
	if got, want := DefaultLimits(), (Limits{Timeout: 60_000, Memory: 256, Logs: 10, Concurrency: 1}); got != want {
		t.Errorf("an action has %+v, want %+v", got, want)
	}
	want := Bounds{
		Timeout: 60 * 60_000, Memory: 512, Logs: 10, Payload: 6_291_456, Code: 50_331_648, Unpacked: 512, Processes: 256, Tmp: 512,
	}
	if got := DefaultBounds(); got != want {
		t.Errorf("a server lets actions have %+v, want %+v", got, want)
	}
}

// TestSegments: names are those that OpenWhisk's pattern matches.
func TestSegments(t *testing.T) {
	pattern := regexp.MustCompile(`^(\w|\w[\w@ .-]*[\w@.-]+)$`)
	const letters = "aZ09_@ .-/\n\u00e9"
	var try func(s string)
	try = func(s string) {
		if got, want := CheckSegment(s) == nil, pattern.MatchString(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
		if len(s) > 3 {
			return
		}
		for i := range len(letters) {
			try(s + letters[i:i+1])
		}
	}
	try("")
}
