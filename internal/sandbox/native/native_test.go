package native

import (
	"fmt"
	"os"
	"testing"
)

// The test binary is also the helper and the first stage.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "sandbox-helper":
			os.Exit(HelperMain(HelperFD))
		case "sandbox-init":
			os.Exit(InitMain())
		}
	}
	fmt.Fprint(os.Stderr, "")
	os.Exit(m.Run())
}
