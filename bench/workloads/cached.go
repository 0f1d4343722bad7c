package workloads

import (
	"context"
	"slices"

	"forerun.dev/forerun/test/server"
)

// GetTickts is TrainTicket's search as HashCache's paper has it: 17 activations for a request. It is TcktApp, with the answers of companies
// as records of the state, below a function that searches and another that reads settings.
func GetTickts() (*Application, error) {
	a, err := onRecords("tcktapp", "gettickts")
	if err != nil {
		return nil, err
	}
	a.Name, a.Entry = "GetTickts", "search"
	a.Functions = append(a.Functions, "search", "settings")
	a.Calls["search"] = []string{"settings", "tickets"}
	return a, nil
}

// Information is TripInfApp with the answers of companies as records of the state: 24 activations.
func Information() (*Application, error) { return onRecords("tripinfapp") }

// onRecords is an application with the answers of companies as records of the state, and with more functions.
func onRecords(slug string, more ...string) (*Application, error) {
	outside, calls, err := sharedCode()
	if err != nil {
		return nil, err
	}
	a, err := read(slug, outside, calls)
	if err != nil {
		return nil, err
	}
	for _, name := range append([]string{"answers"}, more...) {
		code, err := files.ReadFile("apps/" + name + ".py")
		if err != nil {
			return nil, err
		}
		a.code += "\n\n" + string(code)
	}
	return a, nil
}

// Orders are TrainTicket's applications of HashCache's paper around orders. Preserve calls Information's functions.
func Orders() (*Application, error) {
	return plain("trainticket", "trainticket", []string{
		"contacts", "query", "orders", "calculate", "order", "cancel", "refund", "notify", "pay", "payment",
		"preserve", "security", "assurance", "seat", "create",
	})
}

// Hotels are HotelReservation's applications.
func Hotels() (*Application, error) {
	return plain("hotel", "hotelreservation", []string{
		"search", "near", "rates", "free", "profiles", "recommend", "best", "user", "reserve",
	})
}

// plain are functions of a file in Python.
func plain(slug, file string, functions []string) (*Application, error) {
	outside, calls, err := sharedCode()
	if err != nil {
		return nil, err
	}
	code, err := files.ReadFile("apps/" + file + ".py")
	if err != nil {
		return nil, err
	}
	return &Application{Slug: slug, Functions: functions, code: outside + calls + "\n\n" + string(code)}, nil
}

// Workflow are FaaSWorkflow's functions, in Node: four that are asked singly, and two sequences.
func Workflow() (*Application, error) {
	code, err := files.ReadFile("apps/faasworkflow.cjs")
	if err != nil {
		return nil, err
	}
	return &Application{
		Slug: "faas", kind: "nodejs:default", code: string(code),
		Functions: []string{"regression", "transform", "tree", "rule_match", "resize", "predict", "render", "compute", "find", "check"},
		sequences: map[string][]string{"prediction": {"resize", "predict", "render"}, "setcompute": {"compute", "find", "check"}},
	}, nil
}

// DeployCached is Deploy for functions whose results are kept. Their developer promises that a process remembers no record: results of
// processes that stay are not executed again to be compared.
func (a *Application) DeployCached(ctx context.Context, c *server.Client) error {
	err := a.deploy(ctx, c, func(function string) (string, string) { return a.code, function }, annotation("state_cache", true), annotation("cache-verify", 0))
	if err != nil {
		return err
	}
	for name, functions := range a.sequences {
		steps := slices.Clone(functions)
		for i := range steps {
			steps[i] = a.Slug + "-" + steps[i]
		}
		if err := c.PutSequence(ctx, a.Slug+"-"+name, steps...); err != nil {
			return err
		}
	}
	return nil
}

// Trip is a route that can be searched for.
type Trip struct {
	From, To, Carrier string
	Miles             int
}

// Trips are the routes from an airport to those that the table of airports has.
func Trips(from string) ([]Trip, error) {
	w, err := loadWorld()
	if err != nil {
		return nil, err
	}
	var all []Trip
	for _, r := range w.Routes {
		if r.From == from && w.known(r) {
			all = append(all, Trip{From: r.From, To: r.To, Carrier: r.Carrier, Miles: r.Distance})
		}
	}
	return all, nil
}
