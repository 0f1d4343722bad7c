package workloads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forerun.dev/forerun/test/server"
)

// Profile is what an application does where nothing runs ahead. Times are milliseconds.
type Profile struct {
	*Application
	Requests  int               `json:"requests"` // that were measured
	Profiles  []FunctionProfile `json:"profiles"`
	Paths     []Path            `json:"paths"`     // the most frequent first
	Branches  int               `json:"branches"`  // functions that do not run for each request
	Time      float64           `json:"time"`      // of a request's functions one after the other, on average
	Critical  float64           `json:"critical"`  // of the longest of them, on average: less is impossible
	InTurn    float64           `json:"inTurn"`    // the least if effects are in their turn
	Bound     float64           `json:"bound"`     // the greatest speedup, by Amdahl's law: time by critical
	TurnBound float64           `json:"turnBound"` // that with effects in their turn: time by inTurn
}

// FunctionProfile is what one function does in one run, on average.
type FunctionProfile struct {
	Name      string  `json:"name"`
	Share     float64 `json:"share"`     // runs for a request
	Time      float64 `json:"time"`      // without what it waits for functions that it calls
	CPU       float64 `json:"cpu"`       // of its handler
	Wait      float64 `json:"wait"`      // for companies
	Reads     float64 `json:"reads"`     // commands that read the state
	Writes    float64 `json:"writes"`    // commands that change it
	Questions float64 `json:"questions"` // to companies that it only reads from
	Acts      float64 `json:"acts"`      // that companies do for it
}

// Path is one of the ways that requests take.
type Path struct {
	Functions []string `json:"functions"` // in the order of their start
	Share     float64  `json:"share"`     // of all requests
}

// ran is a function of one request.
type ran struct {
	name          string
	launched      int64   // microseconds since 1970
	time, cpu     float64 // milliseconds
	reads, writes int
}

// reading are the commands of the workloads that do not change the state.
const reading = " GET HGET HGETALL HEXISTS MGET SMEMBERS SISMEMBER "

// tracedRecord is a record with its trace.
type tracedRecord struct {
	server.Record
	Trace struct {
		Launched int64    `json:"launched"`
		Finished int64    `json:"finished"`
		Waited   int64    `json:"waited"`
		Calls    []string `json:"calls"`
	} `json:"trace"`
}

// Measure deploys the application so that its functions measure themselves, and asks it for n requests one after the
// other, without running ahead. They are measured once everything is warm.
func (a *Application) Measure(ctx context.Context, c *server.Client, companies *Companies, n int) (*Profile, error) {
	if err := a.deploy(ctx, c, func(function string) (string, string) {
		end, err := files.ReadFile("apps/profiled.py")
		if err != nil {
			panic(err) // it is part of the program
		}
		return a.code + "\n\n" + strings.ReplaceAll(string(end), "FUNCTION", function), "profiled"
	}, annotation("speculate", "off")); err != nil {
		return nil, err
	}
	requests, err := a.Requests(1, DefaultHitRate)
	if err != nil {
		return nil, err
	}
	var runs [][]ran
	warm := 3 + n/5
	for request := range requests {
		if warm--; warm == 0 {
			companies.Take()
		}
		record, err := c.Invoke(ctx, a.Action(), request)
		if err != nil {
			return nil, err
		}
		if !record.Response.Success {
			return nil, fmt.Errorf("%s failed for %v: %s", a.Name, request, record.Response.Result)
		}
		if warm > 0 {
			continue
		}
		run, err := a.trace(ctx, c, record.ActivationID)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(run, func(x, y ran) int { return cmp.Compare(x.launched, y.launched) })
		if runs = append(runs, run); len(runs) == n {
			break
		}
	}
	_, waited := companies.Take()
	return a.profile(runs, waited), nil
}

// trace collects the functions of one request.
func (a *Application) trace(ctx context.Context, c *server.Client, id string) ([]ran, error) {
	record := new(tracedRecord)
	if err := c.Get(ctx, "activations/"+id+"?trace=true", record); err != nil {
		return nil, err
	}
	var all []ran
	below := record.Trace.Calls
	if name, ok := strings.CutPrefix(record.Name, a.Slug+"-"); ok {
		r := ran{name: name, launched: record.Trace.Launched, time: float64(record.Trace.Finished-record.Trace.Launched-record.Trace.Waited) / 1000}
		if err := r.read(record.Logs); err != nil {
			return nil, err
		}
		all = append(all, r)
	} else {
		below = append(below, record.Logs...)
	}
	for _, id := range below {
		more, err := a.trace(ctx, c, id)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// read takes what the function wrote of itself.
func (r *ran) read(logs []string) error {
	for _, line := range logs {
		_, text, ok := strings.Cut(line, "profile ")
		if !ok {
			continue
		}
		var measured struct {
			CPU      float64  `json:"cpu"`
			Commands []string `json:"commands"`
		}
		if err := json.Unmarshal([]byte(text), &measured); err != nil {
			return fmt.Errorf("%s wrote %q: %w", r.name, line, err)
		}
		r.cpu = measured.CPU
		for _, command := range measured.Commands {
			if strings.Contains(reading, " "+command+" ") {
				r.reads++
			} else {
				r.writes++
			}
		}
		return nil
	}
	return fmt.Errorf("%s did not measure itself", r.name)
}

// profile adds up what was measured.
func (a *Application) profile(runs [][]ran, waited map[string]*Waited) *Profile {
	p := &Profile{Application: a, Requests: len(runs)}
	n := float64(len(runs))
	paths := map[string]int{}
	sums := map[string]*FunctionProfile{}
	for _, f := range a.Functions {
		sums[f] = &FunctionProfile{Name: f}
	}
	for _, run := range runs {
		var names []string
		for _, r := range run {
			names = append(names, r.name)
			f := sums[r.name]
			f.Share++
			f.Time += r.time
			f.CPU += r.cpu
			f.Reads += float64(r.reads)
			f.Writes += float64(r.writes)
		}
		paths[strings.Join(names, " ")]++
	}
	for _, name := range a.Functions {
		f := sums[name]
		if w := waited[a.Slug+"/"+name]; w != nil {
			f.Wait, f.Questions, f.Acts = float64(w.Time.Microseconds())/1000, float64(w.Questions), float64(w.Acts)
		}
		f.divide(n)
		if f.Share != 1 {
			p.Branches++
		}
		p.Profiles = append(p.Profiles, *f)
	}
	for path, count := range paths {
		p.Paths = append(p.Paths, Path{strings.Fields(path), float64(count) / n})
	}
	slices.SortFunc(p.Paths, func(x, y Path) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), slices.Compare(x.Functions, y.Functions))
	})
	p.bounds(runs)
	return p
}

// divide turns sums into averages for a run, and runs into a share.
func (f *FunctionProfile) divide(requests float64) {
	if f.Share == 0 {
		return
	}
	for _, sum := range []*float64{&f.Time, &f.CPU, &f.Wait, &f.Reads, &f.Writes, &f.Questions, &f.Acts} {
		*sum /= f.Share
	}
	f.Share /= requests
}

// bounds works out how soon the requests could be answered at best, if all their functions began at once. What companies do
// is done in its turn: after all that goes before.
func (p *Profile) bounds(runs [][]ran) {
	acting := map[string]float64{}
	for _, f := range p.Profiles {
		if f.Acts > 0 {
			acting[f.Name] = f.Wait
		}
	}
	for _, run := range runs {
		longest, end := 0., 0.
		for _, r := range run {
			p.Time += r.time
			longest = max(longest, r.time)
			act := min(acting[r.name], r.time)
			end = max(end, r.time-act) + act
		}
		p.Critical += longest
		p.InTurn += end
	}
	n := float64(len(runs))
	p.Time, p.Critical, p.InTurn = p.Time/n, p.Critical/n, p.InTurn/n
	p.Bound, p.TurnBound = p.Time/p.Critical, p.Time/p.InTurn
}
