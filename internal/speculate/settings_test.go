package speculate

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseSettings(t *testing.T) {
	for text, want := range map[string]Settings{
		"branches":                              NewSettings(Branches),
		" all ; depth=4; band=0.2 ;least=250us": {Mode: All, Depth: 4, Band: 0.2, Least: 250 * time.Microsecond},
		"all; least=0s; load=any":               {Mode: All, Depth: DefaultDepth, Band: DefaultBand, AnyLoad: true},
		"all; squash=sandbox":                   {Mode: All, Depth: DefaultDepth, Band: DefaultBand, Least: DefaultLeast, EndSandbox: true},
		"all; squash=handler":                   NewSettings(All),
		"all;\tdepth = 64 ; band = 0.25":        {Mode: All, Depth: 64, Band: 0.25, Least: DefaultLeast},
		"all; band=0; least=1m":                 {Mode: All, Depth: DefaultDepth, Least: time.Minute},
		"all; least=1.5ms":                      {Mode: All, Depth: DefaultDepth, Band: DefaultBand, Least: 1500 * time.Microsecond},
	} {
		if got, err := ParseSettings(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
		if again, err := ParseSettings(want.String()); err != nil || again != want {
			t.Errorf("%q is spelt %q, which is %v, %v", text, want.String(), again, err)
		}
	}
	given := Settings{Mode: Branches, Depth: 3, Band: 0.3, Least: time.Second, AnyLoad: true}
	want := given
	want.Mode, want.Depth = Off, 9
	if got, err := given.With("off; depth=9"); err != nil || got != want {
		t.Errorf("with a mode and a depth: %+v, %v", got, err)
	}
	for _, text := range []string{
		"", "fast", "all; depth=0", "all; depth=65", "all; depth=x", "all; depth=+4", "all; depth=04", "all; depth=4; depth=5", "all; depth=4; depth=4", "all; depth",
		"all; band=0.5", "all; band=-0", "all; band=1e-1", "all; band=.2", "all; band=00.2", "all; band=NaN", "all; band=0x1p-2",
		"all; least=soon", "all; least=-1s", "all; least=+1s", "all; least=0", "all; least=5", "all; least=61s", "all; least=9999999h", "all; least=.5ms",
		"all;", "all;;depth=1", "; depth=1", "all; depth=1;", "all; =1", "all; load=none", "all; load", "all; squash=all", "all; squash", "all; speed=9", "all, depth=3", "ALL",
	} {
		if got, err := ParseSettings(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// TestRefusedSettings: the message names the error and the valid values. It quotes the error once, and repeats at most a part of a long
// text.
func TestRefusedSettings(t *testing.T) {
	for text, want := range map[string]string{
		"al":                                     `"al" does not say how far to speculate: write off, branches or all, and perhaps ; depth=32 (1 to 64) ; band=0.1 (0 to less than 0.5, with its 0) ; least=1ms (0s to 1m, with its unit) ; load=any ; squash=handler (or sandbox) behind it.`,
		"all; depth=65":                          `depth has to be a whole number from 1 to 64, not "65".`,
		"all; depth":                             `depth has to be a whole number from 1 to 64, not "".`,
		"all; band=x":                            `band has to be a number from 0 to less than 0.5, with its 0, like 0.1, not "x".`,
		"all; least=5":                           `least has to be a time from 0s to 1m, with its unit, like 1ms, not "5".`,
		"all; load=none":                         `load has to be any, or left out, not "none".`,
		"all; squash=all":                        `squash has to be handler or sandbox, not "all".`,
		"all; depth=4; depth=5":                  "depth is there twice: write it once.",
		"all; depth=4; depth=65":                 "depth is there twice: write it once.",
		"all;":                                   "a semicolon has no setting behind it: leave it out.",
		"all; speed=9":                           `"speed" is not a setting: write off, branches or all, and perhaps ; depth=32 `,
		strings.Repeat("é", 999):                 `"` + strings.Repeat("é", 30) + `..." does not say`,
		"all; " + strings.Repeat("a", 999):       `"` + strings.Repeat("a", 60) + `..." is not a setting`,
		"all; depth=" + strings.Repeat("9", 999): `not "` + strings.Repeat("9", 60) + `..."`,
	} {
		_, err := ParseSettings(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), `"`) > 2 {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("of %d bytes %d are repeated", len(text), len(err.Error()))
		}
	}
}

// TestWithin: a request gets at most the server's settings, and is told about the rest. It does get lower settings, and
// settings that affect all tenants.
func TestWithin(t *testing.T) {
	for _, c := range []struct{ asked, most, allowed, denied string }{
		{"all; depth=64; least=0s", "all; depth=1", "all; depth=64; least=0s", ""},
		{"branches", "all; load=any", "branches", ""},
		{"all; load=any; squash=sandbox", "all; load=any; squash=sandbox", "all; load=any; squash=sandbox", ""},
		{"all; load=any", "all", "all", "load=any"},
		{"all; squash=sandbox", "all; load=any", "all", "squash=sandbox"},
		{"all", "branches", "branches", "all"},
		{"all; load=any; squash=sandbox", "off", "off", "all; load=any; squash=sandbox"},
	} {
		asked, err := ParseSettings(c.asked)
		most, err2 := ParseSettings(c.most)
		want, err3 := ParseSettings(c.allowed)
		if got, denied := asked.Within(most); errors.Join(err, err2, err3) != nil || got != want || denied != c.denied {
			t.Errorf("%s within %s: %s without %q, want %s without %q", c.asked, c.most, got, denied, want, c.denied)
		}
	}
}
