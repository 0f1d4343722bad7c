package compare

import (
	"fmt"
	"strings"
)

// around is how much is shown before where texts differ.
const around = 150

// Difference shows two texts from where they differ, and all of the first, cut where it is long.
func Difference(plain, ahead string) string {
	n := 0
	for n < len(plain) && n < len(ahead) && plain[n] == ahead[n] {
		n++
	}
	from := max(0, n-around)
	var all strings.Builder
	for line := range strings.Lines(plain) {
		fmt.Fprintf(&all, "%.600s\n", strings.TrimRight(line, "\n"))
	}
	return fmt.Sprintf("not ahead: ...%.1000s\n\nahead: ...%.1000s\n\nall, not ahead: %.9000s", plain[from:], ahead[from:], all.String())
}
