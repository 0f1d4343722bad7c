package speculate

import (
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
	} {
		if got, err := ParseSettings(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	given := Settings{Mode: Branches, Depth: 3, Band: 0.3, Least: time.Second, AnyLoad: true}
	want := given
	want.Mode, want.Depth = Off, 9
	if got, err := given.With("off; depth=9"); err != nil || got != want {
		t.Errorf("with a mode and a depth: %+v, %v", got, err)
	}
	for _, text := range []string{"", "fast", "all; depth=0", "all; depth=x", "all; band=0.5", "all; least=soon", "all; least=-1s", "all; load=none", "all; load", "all; squash=all", "all; squash", "all; speed=9"} {
		if got, err := ParseSettings(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
