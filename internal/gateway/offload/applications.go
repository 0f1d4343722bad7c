package offload

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

const (
	maxReport       = 1 << 20     // bytes
	maxApplications = 100         // of a tenant
	maxProcesses    = 100         // of an application
	maxRoots        = 1000        // of a process
	maxName         = 100         // bytes
	kept            = time.Minute // without news of a process: agents report each ten seconds
)

// Root is what came of the calls of one method.
type Root struct {
	Root          string           `json:"root"`
	Offloaded     int64            `json:"offloaded"`  // calls that functions answered
	Local         int64            `json:"local"`      // calls that ran in the application
	Lost          int64            `json:"lost"`       // calls that ended with OffloadLostException
	Repeatable    int64            `json:"repeatable"` // offloaded and lost calls without a visible effect
	SentBytes     int64            `json:"sentBytes"`  // to functions
	ReceivedBytes int64            `json:"receivedBytes"`
	CPUHereNanos  int64            `json:"cpuHereNanos"`  // of the application's threads in offloaded calls
	CPUThereNanos int64            `json:"cpuThereNanos"` // of functions
	Refused       string           `json:"refused"`       // why it runs in the application from now on; empty: it does not
	LastLocal     string           `json:"lastLocal"`     // why the last call that ran in the application did
	Exchanges     map[string]int64 `json:"exchanges"`     // what functions sent, by the frame's type
}

// add adds what another process counted, which was heard of later.
func (r *Root) add(o Root) {
	for _, n := range []struct{ to, from *int64 }{
		{&r.Offloaded, &o.Offloaded},
		{&r.Local, &o.Local},
		{&r.Lost, &o.Lost},
		{&r.Repeatable, &o.Repeatable},
		{&r.SentBytes, &o.SentBytes},
		{&r.ReceivedBytes, &o.ReceivedBytes},
		{&r.CPUHereNanos, &o.CPUHereNanos},
		{&r.CPUThereNanos, &o.CPUThereNanos},
	} {
		*n.to += *n.from
	}
	r.Refused, r.LastLocal = cmp.Or(o.Refused, r.Refused), cmp.Or(o.LastLocal, r.LastLocal)
	for kind, n := range o.Exchanges {
		r.Exchanges[kind] += n
	}
}

// Application is what the processes of one application tell.
type Application struct {
	Name      string `json:"name"`
	Mode      string `json:"mode"`      // on: as the agents were started; off: all calls run in the application
	Processes int    `json:"processes"` // with an agent that was heard of within a minute
	Instances int    `json:"instances"` // of functions that they know
	Java      []int  `json:"java"`
	Roots     []Root `json:"roots"`
}

// report is what an agent tells of its process.
type report struct {
	Java      int    `json:"java"`
	Instances int    `json:"instances"`
	Roots     []Root `json:"roots"`

	heard time.Time
}

// known is an application. Nothing of it survives the server's process.
type known struct {
	mode      string
	processes map[string]*report
}

func (k *known) forgetSilent(now time.Time) {
	maps.DeleteFunc(k.processes, func(_ string, r *report) bool { return now.Sub(r.heard) > kept })
}

func (k *known) show(name string) Application {
	k.forgetSilent(time.Now())
	a := Application{Name: name, Mode: k.mode, Processes: len(k.processes), Java: []int{}, Roots: []Root{}}
	sums := make(map[string]*Root)
	for _, p := range slices.SortedFunc(maps.Values(k.processes), func(a, b *report) int { return a.heard.Compare(b.heard) }) {
		a.Instances += p.Instances
		if !slices.Contains(a.Java, p.Java) {
			a.Java = append(a.Java, p.Java)
		}
		for _, r := range p.Roots {
			if sums[r.Root] == nil {
				sums[r.Root] = &Root{Root: r.Root, Exchanges: make(map[string]int64)}
			}
			sums[r.Root].add(r)
		}
	}
	slices.Sort(a.Java)
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		a.Roots = append(a.Roots, *sums[name])
	}
	return a
}

// tenant authenticates a request about a tenant's applications. A function's token is not enough.
func (a *API) tenant(w http.ResponseWriter, r *http.Request) (gateway.Caller, error) {
	caller, err := a.identify(w, r)
	if err == nil && caller.Cause != "" {
		return caller, forerun.Errorf(forerun.Forbidden, "", "A function's token does not reach applications: show the tenant's key.")
	}
	return caller, err
}

// report takes what an agent tells, and answers with the mode.
func (a *API) report(w http.ResponseWriter, r *http.Request) error {
	caller, err := a.tenant(w, r)
	if err != nil {
		return err
	}
	body, err := gateway.Body(w, r, maxReport)
	if err != nil {
		return err
	}
	told := report{heard: time.Now()}
	if err := json.Unmarshal(body, &told); err != nil || len(told.Roots) > maxRoots {
		return forerun.Errorf(forerun.Invalid, "", "The report is not one of this version's agent.")
	}
	name, process := r.PathValue("name"), r.PathValue("process")
	if len(name) > maxName || len(process) > maxName {
		return forerun.Errorf(forerun.Invalid, "", "The name of an application, or of its process, has more than %d bytes.", maxName)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k, err := a.application(caller.Namespace, name)
	if err != nil {
		return err
	}
	k.forgetSilent(told.heard)
	if k.processes[process] == nil && len(k.processes) >= maxProcesses {
		return forerun.Errorf(forerun.TooMany, "", "The application has %d processes with an agent, and may have no more.", maxProcesses)
	}
	k.processes[process] = &told
	gateway.WriteJSON(w, http.StatusOK, map[string]string{"mode": k.mode})
	return nil
}

// application finds an application of a tenant, or adds it. The caller holds the lock.
func (a *API) application(namespace, name string) (*known, error) {
	of := a.applications[namespace]
	if of == nil {
		of = make(map[string]*known)
		a.applications[namespace] = of
	}
	if of[name] == nil && len(of) >= maxApplications {
		maps.DeleteFunc(of, func(_ string, k *known) bool {
			k.forgetSilent(time.Now())
			return len(k.processes) == 0
		})
		if len(of) >= maxApplications {
			return nil, forerun.Errorf(forerun.TooMany, "", "The tenant has %d applications with an agent, and may have no more.", maxApplications)
		}
	}
	if of[name] == nil {
		of[name] = &known{mode: "on", processes: make(map[string]*report)}
	}
	return of[name], nil
}

// list shows a tenant's applications.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	caller, err := a.tenant(w, r)
	if err != nil {
		return err
	}
	all := []Application{}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.applications[caller.Namespace])) {
		all = append(all, a.applications[caller.Namespace][name].show(name))
	}
	gateway.WriteJSON(w, http.StatusOK, all)
	return nil
}

// get shows one application.
func (a *API) get(w http.ResponseWriter, r *http.Request) error {
	caller, err := a.tenant(w, r)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.applications[caller.Namespace][r.PathValue("name")]
	if k == nil {
		return unknownApplication(r)
	}
	gateway.WriteJSON(w, http.StatusOK, k.show(r.PathValue("name")))
	return nil
}

// setMode has an application's calls run there, or no longer. Its agents hear of it with their next report.
func (a *API) setMode(w http.ResponseWriter, r *http.Request) error {
	caller, err := a.tenant(w, r)
	if err != nil {
		return err
	}
	body, err := gateway.Body(w, r, maxReport)
	if err != nil {
		return err
	}
	var wanted struct {
		Mode string `json:"mode"`
	}
	if err := json.Unmarshal(body, &wanted); err != nil || wanted.Mode != "on" && wanted.Mode != "off" {
		return forerun.Errorf(forerun.Invalid, "", `Send {"mode": "on"} or {"mode": "off"}.`)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.applications[caller.Namespace][r.PathValue("name")]
	if k == nil {
		return unknownApplication(r)
	}
	k.mode = wanted.Mode
	gateway.NoteDetail(r, caller.Who(), caller.Namespace, http.StatusOK, wanted.Mode)
	gateway.WriteJSON(w, http.StatusOK, k.show(r.PathValue("name")))
	return nil
}

func unknownApplication(r *http.Request) error {
	return forerun.Errorf(forerun.NotFound, "", "No application %s with an offload agent has reported since the server started: `forerun offload list` shows those that have.",
		strings.ToValidUTF8(r.PathValue("name"), "?"))
}
