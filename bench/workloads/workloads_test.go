package workloads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// rig is a server with all applications, and the companies.
type rig struct {
	client    *server.Client
	door      *redis.Client
	companies *Companies
}

func TestMain(m *testing.M) {
	if os.Getuid() != 0 {
		os.Exit(m.Run()) // what needs the network is skipped
	}
	code, entered, err := Enter(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if entered {
		code = m.Run()
	}
	os.Exit(code)
}

// newRig starts a server with some applications.
func newRig(t *testing.T, applications []*Application, args ...string) *rig {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a network for the companies")
	}
	companies, err := StartCompanies()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(companies.Stop)
	s, err := server.Start(t.Context(), server.Options{
		Binary: build(t), Data: filepath.Join(t.TempDir(), "data"), Redis: true, Args: append(append(args, "--cpu-weight", "100"), ServerArguments()...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(s.Log())
		}
	})
	r := &rig{client: s.Client(32), companies: companies}
	t.Cleanup(r.client.Close)
	r.door = Door(s)
	t.Cleanup(func() { _ = r.door.Close() })
	if err := Setup(t.Context(), r.door); err != nil {
		t.Fatal(err)
	}
	for _, a := range applications {
		if err := a.Deploy(t.Context(), r.client); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// build makes the server under test, from what `make build` has compiled.
func build(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(folder, "forerun"), "./cmd/forerun")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	packages, err := filepath.Abs("../../bin/runtimes")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(packages, filepath.Join(folder, "runtimes")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, "forerun")
}

func all(t *testing.T) []*Application {
	t.Helper()
	applications, err := Applications()
	if err != nil {
		t.Fatal(err)
	}
	return applications
}

// members is a part of a result.
type members map[string]any

// expected are requests, what each results in among other things, and how often companies did something for it.
var expected = []struct {
	slug    string
	request Request
	result  members
	acts    int
}{
	{"login", Request{"user": "user14", "password": userPassword(14)}, members{"profile": "profile of user14, customer since 2004", "picture": 40., "page": 78.}, 0},
	{"login", Request{"user": "user14", "password": "x"}, members{"profile": nil, "page": 78.}, 0},
	{"banking", Request{"user": "user17", "pin": userPin(17), "amount": 80}, members{"amount": 80., "message": 23., "slip": 0.}, 1},
	{"banking", Request{"user": "user17", "pin": "0000", "amount": 80}, members{"declined": true}, 0},
	{"flightbook", Request{"user": "user17", "from": "EWR", "to": "IAH", "hour": 8, "seats": 3, "card": userCard(17)}, members{"class": "economy", "carrier": "UA", "price": 34415., "temp": 80.06, "seat": 58., "booked": 6.}, 1},
	{"flightbook", Request{"user": "user00", "from": "LGA", "to": "ORD", "hour": 6, "seats": 1, "card": "x"}, members{"declined": 43., "price": nil}, 0},
	{"hotelbook", Request{"user": "user31", "to": "DFW", "rooms": 2}, members{"hotel": "DFW-3", "booking": 35.}, 1},
	{"hotelbook", Request{"user": "user31", "to": "DFW", "rooms": 20}, members{"hotel": nil}, 0},
	{"smarthome", Request{"user": "user31", "password": userPassword(31), "from": "EWR", "hour": 13}, members{"air": true, "celsius": 30.}, 1},
	{"smarthome", Request{"user": "user05", "password": userPassword(5), "from": "JFK", "hour": 5}, members{"air": false, "celsius": 22.2}, 0},
	{"onlpurch", Request{"user": "user00", "password": userPassword(0), "from": "MCO", "item": "item00", "pieces": 1, "card": userCard(0)}, members{"shop": "MIA", "from_shop": "MIA", "price": 1020., "parcel": 9.}, 1},
	{"onlpurch", Request{"user": "user01", "password": userPassword(1), "from": "DTW", "item": "item07", "pieces": 50, "card": userCard(1)}, members{"backorder": 56.}, 0},
	{"tcktapp", Request{"user": "user14", "from": "JFK", "to": "LAX"}, members{"tickets": []any{map[string]any{"carrier": "AA", "fare": 17437., "food": 61., "left": 85., "miles": 2475., "points": 14., "train": 57.}}}, 0},
	{"tcktapp", Request{"user": "user14", "from": "JFK", "to": "SJU"}, members{"tickets": []any{}}, 0},
	{"tripinfapp", Request{"user": "user51", "from": "JFK", "to": "PHX"}, members{"trip": map[string]any{"belt": 53., "carrier": "US", "contact": "profile of user51, customer since 2011", "fare": 15224., "food": 34., "gate": 69., "hotel": 14., "insurance": 6., "left": 43., "miles": 2153., "points": 1., "temp": 84.02, "train": 4., "visa": 44.}}, 0},
	{"querytrvl", Request{"from": "JFK", "to": "BOS"}, members{"left": 115., "plan": 95., "price": 2404., "train": 27.}, 0},
	{"getleftapp", Request{"from": "JFK", "to": "PHX"}, members{"left": 59., "share": 39.}, 0},
	{"cancelapp", Request{"user": "user51"}, members{"cancelled": true, "refund": 819., "fee": 19., "message": 23.}, 1},
	{"cancelapp", Request{"user": "user17"}, members{"cancelled": false}, 0},
	{"alibaba1", Request{"user": "user14", "from": "JFK", "to": "LAX"}, members{"total": 1817.}, 0},
}

// TestApplications asks each application without speculation, and then with it until much is known: the results, the state
// and what companies did are the same.
func TestApplications(t *testing.T) {
	var applications []*Application
	bySlug := map[string]*Application{}
	for _, a := range all(t) {
		if bySlug[a.Slug] = a; a.Suite != "Alibaba" || a.Slug == "alibaba1" { // its other four are as it is
			applications = append(applications, a)
		}
	}
	r := newRig(t, applications, "--speculate", "all; load=any")
	ahead := map[string]bool{} // of the applications
	for _, mode := range []string{"off", "all; load=any", "all; load=any", "all; load=any"} {
		if err := Setup(t.Context(), r.door); err != nil {
			t.Fatal(err)
		}
		for _, e := range expected {
			result, tally := r.ask(t, bySlug[e.slug], e.request, mode)
			t.Logf("%s, %s: %s", e.slug, mode, tally)
			ahead[e.slug] = ahead[e.slug] || tally != "" && !strings.HasPrefix(tally, "early=0,")
			for name, want := range e.result {
				if !reflect.DeepEqual(result[name], want) {
					t.Errorf("%s %v, %s: %s is %v, not %v", e.slug, e.request, mode, name, result[name], want)
				}
			}
			if acts, _ := r.companies.Take(); sum(acts) != e.acts {
				t.Errorf("%s %v, %s: the companies did %v, not %d things", e.slug, e.request, mode, acts, e.acts)
			}
		}
		r.checkState(t, mode)
	}
	for _, a := range applications {
		if !ahead[a.Slug] {
			t.Errorf("nothing of %s ever ran ahead", a.Slug)
		}
	}
}

// ask invokes an application in a mode of speculation. It returns the result and what the answer says of running ahead.
func (r *rig) ask(t *testing.T, a *Application, request Request, mode string) (result members, ahead string) {
	t.Helper()
	target := r.client.URL + "/api/v1/namespaces/_/actions/" + a.Action() + "?blocking=true&result=true"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(request.String()))
	if err != nil {
		t.Fatal(err)
	}
	user, password, _ := strings.Cut(r.client.Auth, ":")
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Forerun-Speculate", mode)
	resp, err := r.client.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusAccepted { // on a busy machine
		err = r.client.Awaited(t.Context(), text, &result)
	} else {
		err = errors.New(resp.Status)
	}
	if err != nil {
		t.Fatalf("%s %v, %s: %v %s", a.Slug, request, mode, err, text)
	}
	return result, resp.Header.Get("X-Forerun-Speculation")
}

// checkState looks at what the expected requests write.
func (r *rig) checkState(t *testing.T, mode string) {
	t.Helper()
	state, err := State(t.Context(), r.door)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"login:refused:user14": "1", "banking:taken:user17": "80", "banking:declined:user17": "1",
		"flightbook:seats:EWR-IAH": "3", "flightbook:paid:user17": "34415", "flightbook:hotel:IAH": "1",
		"hotelbook:booked:DFW-3": "2", "smarthome:air:user31": "1", "onlpurch:charged:user00": "1020",
		"onlpurch:wanted:item07": "50", "cancelapp:refunded:user51": "1024", "flightbook:paid:user00": "",
	} {
		if state[key] != want {
			t.Errorf("%s: the state %s is %q, not %q", mode, key, state[key], want)
		}
	}
}

func sum(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// TestSizes compares the applications with tables I and II of the paper.
func TestSizes(t *testing.T) {
	sizes := map[string]int{
		"Login": 3, "Banking": 6, "FlightBook": 11, "HotelBook": 7, "SmartH": 7, "OnlPurch": 13,
		"TcktApp": 15, "TripInfApp": 24, "QueryTrvl": 8, "GetLeftApp": 5, "CancelApp": 4,
	}
	applications, functions, callers, calls := 0, 0, 0, 0
	for _, a := range all(t) {
		if a.Suite != "Alibaba" {
			if len(a.Functions) != sizes[a.Name] {
				t.Errorf("%s has %d functions, not %d", a.Name, len(a.Functions), sizes[a.Name])
			}
			delete(sizes, a.Name)
			continue
		}
		applications++
		functions += len(a.Functions)
		for _, called := range a.Calls {
			callers++
			calls += len(called)
		}
		if depth := a.depth(a.Entry); depth != alibabaDepth {
			t.Errorf("%s is %d deep", a.Name, depth)
		}
	}
	if len(sizes) > 0 || applications != 5 {
		t.Errorf("missing: %v; %d of Alibaba's", sizes, applications)
	}
	if average := float64(functions) / float64(applications); math.Abs(average-alibabaFunctions) > 0.05 {
		t.Errorf("%.1f functions on average", average)
	}
	if average := float64(calls) / float64(callers); math.Abs(average-alibabaCallees) > 0.35 {
		t.Errorf("%.2f callees on average of the functions that call", average)
	}
}

// TestEffects: of no application's functions more than a third do something to the outside; one does in six applications.
func TestEffects(t *testing.T) {
	with := 0
	for _, a := range all(t) {
		act := 0
		for _, function := range a.Functions {
			_, code, found := strings.Cut(a.code, "\ndef "+function+"(")
			if !found {
				t.Fatalf("%s has no code of %s", a.Name, function)
			}
			if code, _, _ = strings.Cut(code, "\ndef "); strings.Contains(code, "tell(") {
				act++
			}
		}
		with += act
		if act > 1 || 3*act > len(a.Functions) {
			t.Errorf("%s: %d of %d functions do something to the outside", a.Name, act, len(a.Functions))
		}
	}
	if with != 6 {
		t.Errorf("%d applications do something to the outside", with)
	}
}

func TestRequests(t *testing.T) {
	for _, a := range all(t) {
		for _, rate := range []float64{1, DefaultHitRate} {
			seen, repeats := map[string]bool{}, 0
			requests, err := a.Requests(1, rate)
			if err != nil {
				t.Fatal(err)
			}
			const n = 2000
			for request := range requests {
				if seen[request.String()] {
					repeats++
				}
				if seen[request.String()] = true; repeats+len(seen) == n {
					break
				}
			}
			if share := float64(repeats) / n; share < 0.8 || share > 0.99 {
				t.Errorf("%s: %.2f of the requests repeat others", a.Name, share)
			} else {
				t.Logf("%s at %.1f: %.2f of %d requests were seen before", a.Name, rate, share, n)
			}
		}
	}
}

// TestMistakesAreFresh: where they are to be, none comes twice, in whatever stream; they are as many as else.
func TestMistakesAreFresh(t *testing.T) {
	const n = 2000
	var made atomic.Int64
	seen := map[any]bool{}
	for range 2 {
		requests, err := all(t)[0].FreshRequests(1, DefaultHitRate, &made)
		if err != nil {
			t.Fatal(err)
		}
		left := n
		for r := range requests {
			if password := r["password"].(string); strings.HasPrefix(password, "typo-") {
				if seen[password] {
					t.Fatalf("%s comes twice", password)
				}
				seen[password] = true
			}
			if left--; left == 0 {
				break
			}
		}
	}
	if share := float64(len(seen)) / (2 * n); share < 0.08 || share > 0.12 {
		t.Errorf("%.2f of the requests have mistakes", share)
	}
}
