package harness

import "testing"

func TestCallsIn(t *testing.T) {
	for told, want := range map[string]int64{
		"45556,,raw_syscalls:sys_enter,754449259,100.00,,\n":  45556,
		"# a comment\n\n0,,raw_syscalls:sys_enter,1,100.00,,": 0,
		"<not supported>,,raw_syscalls:sys_enter,0,0.00,,\n":  -1,
		"Error: no permission\n":                              -1,
	} {
		if got, err := callsIn(told); err == nil && got != want || (err != nil) != (want < 0) {
			t.Errorf("%q: %d, %v", told, got, err)
		}
	}
}
