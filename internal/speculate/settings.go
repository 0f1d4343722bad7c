package speculate

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Settings bound the speculation of an invocation.
type Settings struct {
	Mode  Mode
	Depth int           // speculative slots at once, 1 to 64
	Band  float64       // around one half, in which the share of a branch's likeliest outcome is too small, 0 to less than 0.5
	Least time.Duration // outputs of functions that return sooner than this are not predicted
	// AnyLoad: speculate on busy processors as on free ones, whatever that takes from others. A request gets it only if the server has it.
	AnyLoad bool
	// EndSandbox: a squash ends the sandbox, not only the process in it, to measure the cost. Only a request gets it, if the server has
	// it.
	EndSandbox bool
}

// The defaults of settings. The band is the paper's. The depth exceeds the number of functions of each of its
// applications. The least time is about the cost of a speculative slot.
const (
	DefaultDepth = 32
	DefaultBand  = 0.1
	DefaultLeast = time.Millisecond
)

// The upper bounds of settings.
const (
	mostDepth = 64
	mostLeast = time.Minute
)

// BoundUnder is how many slots of all invocations together may be speculative under a load (C5). It is lower when the
// processors are nearly all busy, and 0 while activations wait.
//
// SpecFaaS (section V-D) lowers it much sooner. But most speculative work is right and would run in any case. With a low
// bound invocations last longer, so more of them overlap, and they use more processor time in all. With a high bound on
// busy processors speculative functions make no progress, and keep their sandboxes from the heads.
func BoundUnder(l forerun.Load) int {
	switch {
	case l.Waiting:
		return 0
	case l.Busy > 0.95:
		return 2 * l.Processors
	case l.Busy > 0.9:
		return 6 * l.Processors
	}
	return unbounded
}

// unbounded exceeds every possible number of speculative slots.
const unbounded = math.MaxInt32

// NewSettings returns the defaults of a mode.
func NewSettings(m Mode) Settings {
	return Settings{Mode: m, Depth: DefaultDepth, Band: DefaultBand, Least: DefaultLeast}
}

// ParseSettings reads settings as flags and headers spell them: a mode, and perhaps "depth=4", "band=0.2", "least=1ms", "load=any" and
// "squash=sandbox" (or handler, the default) behind it. Each may occur once, with semicolons between. Spaces may be around all of these,
// and nothing else.
func ParseSettings(text string) (Settings, error) { return NewSettings(Off).With(text) }

// With is ParseSettings, but settings that the text does not name are as in s.
func (s Settings) With(text string) (Settings, error) {
	parts := strings.Split(text, ";")
	mode, ok := ParseMode(strings.TrimSpace(parts[0]))
	if !ok {
		return s, refused("%s does not say how far to speculate: %s", cut(text), Spelling())
	}
	s.Mode = mode
	given := make(map[string]bool)
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch wanted, ok := s.set(name, value); {
		case given[name]:
			return s, refused("%s is there twice: write it once.", name)
		case strings.TrimSpace(part) == "":
			return s, refused("a semicolon has no setting behind it: leave it out.")
		case wanted == "":
			return s, refused("%s is not a setting: %s", cut(name), Spelling())
		case !ok:
			return s, refused("%s has to be %s, not %s.", name, wanted, cut(value))
		}
		given[name] = true
	}
	return s, nil
}

// Spelling says how settings are written, as the end of a sentence.
func Spelling() string {
	return fmt.Sprintf("write off, branches or all, and perhaps ; depth=%d (1 to %d) ; band=%v (0 to less than 0.5, with its 0) ; least=%v (0s to 1m, with its unit) ; load=any ; squash=handler (or sandbox) behind it.",
		DefaultDepth, mostDepth, DefaultBand, DefaultLeast)
}

func refused(format string, args ...any) error {
	return forerun.Errorf(forerun.Invalid, "", format, args...)
}

// String spells settings as ParseSettings reads them.
func (s Settings) String() string {
	least := strings.NewReplacer("µ", "u", "m0s", "m").Replace(s.Least.String())
	return fmt.Sprintf("%s; depth=%d; band=%s; least=%s", s.Mode, s.Depth, strconv.FormatFloat(s.Band, 'f', -1, 64), least) + s.extras()
}

// extras spells the settings that a request gets only where the server has them.
func (s Settings) extras() (text string) {
	if s.AnyLoad {
		text += "; load=any"
	}
	if s.EndSandbox {
		text += "; squash=sandbox"
	}
	return text
}

// Within is s as far as the most that anybody gets allows it, and spells what that does not.
func (s Settings) Within(most Settings) (allowed Settings, denied string) {
	allowed = s
	allowed.Mode = min(s.Mode, most.Mode)
	allowed.AnyLoad = s.AnyLoad && most.AnyLoad
	allowed.EndSandbox = s.EndSandbox && most.EndSandbox
	over := Settings{AnyLoad: s.AnyLoad && !most.AnyLoad, EndSandbox: s.EndSandbox && !most.EndSandbox}
	if denied = over.extras(); allowed.Mode != s.Mode {
		denied = s.Mode.String() + denied
	}
	return allowed, strings.TrimPrefix(denied, "; ")
}

// cut quotes a text, or its beginning.
func cut(text string) string { return `"` + forerun.ShownName(text) + `"` }

// Numbers have one spelling: digits, and a fraction where there may be one.
var (
	wholeNumber = regexp.MustCompile(`^[1-9][0-9]*$`)
	fraction    = regexp.MustCompile(`^0(\.[0-9]+)?$`)
	timeSpan    = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[a-zµ]+$`)
)

// set stores the value of a named setting. wanted describes the valid values, and is empty if the name is unknown. ok
// reports whether the value is valid.
func (s *Settings) set(name, value string) (wanted string, ok bool) {
	var err error
	switch name {
	case "depth":
		s.Depth, err = strconv.Atoi(value)
		return fmt.Sprintf("a whole number from 1 to %d", mostDepth), err == nil && wholeNumber.MatchString(value) && s.Depth <= mostDepth
	case "band":
		s.Band, err = strconv.ParseFloat(value, 64)
		return fmt.Sprintf("a number from 0 to less than 0.5, with its 0, like %v", DefaultBand), err == nil && fraction.MatchString(value) && s.Band < 0.5
	case "least":
		s.Least, err = time.ParseDuration(value)
		return fmt.Sprintf("a time from 0s to 1m, with its unit, like %v", DefaultLeast), err == nil && timeSpan.MatchString(value) && s.Least <= mostLeast
	case "load":
		s.AnyLoad = value == "any"
		return "any, or left out", s.AnyLoad
	case "squash":
		s.EndSandbox = value == "sandbox"
		return "handler or sandbox", s.EndSandbox || value == "handler"
	}
	return "", false
}
