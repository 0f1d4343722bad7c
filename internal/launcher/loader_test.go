package launcher

import (
	"slices"
	"testing"
)

func TestOptionsForMemory(t *testing.T) {
	for mib, want := range map[string][2]string{
		"128": {"--max-old-space-size=128", "-Xmx48m"},
		"256": {"--max-old-space-size=256", "-Xmx176m"},
		"512": {"--max-old-space-size=512", "-Xmx384m"},
		"64":  {"--max-old-space-size=64", "-Xmx24m"},
	} {
		t.Setenv(MemoryVar, mib)
		command := []string{"program", "argument"}
		for i, options := range []func(int) string{nodeMemory, javaMemory} {
			if got := newLoader(command, nil, options).command; !slices.Equal(got, []string{"program", want[i], "argument"}) {
				t.Errorf("with %s MiB the command is %q", mib, got)
			}
		}
	}
	t.Setenv(MemoryVar, "")
	if got := newLoader([]string{"program"}, nil, nodeMemory).command; !slices.Equal(got, []string{"program"}) {
		t.Errorf("without a limit the command is %q", got)
	}
}
