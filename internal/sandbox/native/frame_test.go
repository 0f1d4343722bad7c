package native

import (
	"net/netip"
	"reflect"
	"testing"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

var (
	someStart = request{kind: kindStart, number: 7, id: "a-1", start: startRequest{
		owner:     "guest",
		memoryMiB: 256, cpuWeight: 25, processes: 64, tmpMiB: 32, codeMiB: 48, launcher: true, binds: []sandbox.Bind{{Host: "/opt/x", Inside: "/opt/y"}},
	}}
	someReset  = request{kind: kindReset, number: 1 << 40, id: "a-1", pids: []int{12, 4194304}}
	someLimit  = request{kind: kindLimit, number: 2, id: "a-1", owner: "guest", memory: 512}
	someReport = report{
		kind: kindReply, number: 9, id: "b", problem: "why", place: 5, shares: true, killed: 2, held: sandbox.Held{Shared: true}, unshared: true, waited: 3, waiting: 4, sealed: true, hears: true,
		enforced: []sandbox.Enforcement{{What: "memory limit", Why: "no controller"}, {What: "x", On: true}},
	}
	someLists    = egress.Lists{Tenant: egress.List{}, Action: egress.List{{Network: netip.MustParsePrefix("10.0.0.0/8"), Port: 65535}, {Network: netip.MustParsePrefix("fd00::1/128")}}}
	someConfine  = request{kind: kindConfine, number: 3, id: "a-1", lists: someLists}
	somePin      = request{kind: kindPin, number: 4, id: "a-1", permit: []netip.AddrPort{netip.MustParseAddrPort("[2001::1]:443")}}
	someSettings = settings{dataDir: "/d", bindRoots: []string{"/opt", "/srv"}, policy: guard.Policy{Allowed: someLists.Action, Denied: egress.List{}}, memoryMiB: 4096, cpuWeight: 200, executable: "/proc/self/exe", initArgs: []string{"init"}}
	somePlan     = plan{root: true, tasks: 3, bindFDs: true, processes: 9, tmpMiB: 1, codeMiB: 2, binds: []sandbox.Bind{{Host: "a", Inside: "b"}}}
	someProgram  = program{argv: []string{"/bin/x", ""}, env: []string{"A=b"}, files: []sandbox.File{{Path: "/f", Data: []byte{0, 255}, Mode: 0o444}}}
)

// again decodes an encoded message and compares.
func again[T any](t *testing.T, v T, b []byte, decode func([]byte) (T, error)) {
	t.Helper()
	got, err := decode(b)
	if err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("%+v became %+v, %v", v, got, err)
	}
	for n := range b { // no part of a frame is a frame
		if got, err := decode(b[:n]); err == nil {
			t.Errorf("%d of %d bytes are read as %+v", n, len(b), got)
		}
	}
	if _, err := decode(append(b, 0)); err == nil {
		t.Errorf("a frame with a byte too many is read")
	}
}

func TestFrames(t *testing.T) {
	again(t, someStart, someStart.encode(), decodeRequest)
	again(t, someReset, someReset.encode(), decodeRequest)
	again(t, someLimit, someLimit.encode(), decodeRequest)
	again(t, someConfine, someConfine.encode(), decodeRequest)
	again(t, somePin, somePin.encode(), decodeRequest)
	again(t, someReport, someReport.encode(), decodeReport)
	again(t, someSettings, someSettings.encode(), decodeSettings)
	again(t, somePlan, somePlan.encode(), decodePlan)
	again(t, someProgram, someProgram.encode(), decodeProgram)
}

// FuzzFrames feeds every reader of frames: none may crash or take more memory than the frame is long.
func FuzzFrames(f *testing.F) {
	for _, b := range [][]byte{someStart.encode(), someReset.encode(), someLimit.encode(), someConfine.encode(), somePin.encode(), someReport.encode(), someSettings.encode(), somePlan.encode(), someProgram.encode(), {255, 255, 255, 255, 255, 255, 255, 255, 255, 1}} {
		f.Add(b)
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = decodeRequest(b)
		_, _ = decodeReport(b)
		_, _ = decodeSettings(b)
		_, _ = decodePlan(b)
		_, _ = decodeProgram(b)
	})
}
