package gateway

import "testing"

func TestWithoutConsole(t *testing.T) {
	for cookies, want := range map[string]string{
		"":                                    "",
		"a=b; c=d":                            "a=b; c=d",
		"forerun-console=secret":              "",
		"__Host-forerun-console=secret":       "",
		"a=b; forerun-console=secret; c=d":    "a=b; c=d",
		"a=b;forerun-console=secret":          "a=b",
		" Forerun-Console = secret ;a=b":      "a=b",
		`a="; forerun-console=secret; b="`:    `a="; b="`,
		"forerun-console=1; forerun-console=": "",
		"forerun-consoles=mine":               "forerun-consoles=mine",
		"x=forerun-console":                   "x=forerun-console",
		"forerun-console":                     "",
	} {
		if got := WithoutConsole(cookies); got != want {
			t.Errorf("%q becomes %q, want %q", cookies, got, want)
		}
	}
}
