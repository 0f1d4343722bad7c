package workloads

import (
	"context"

	"forerun.dev/forerun/test/server"
)

// GetTickts is TrainTicket's search as HashCache's paper has it: 17 activations for a request. It is TcktApp, with the answers of companies
// as records of the state, below a function that searches and another that reads settings.
func GetTickts() (*Application, error) {
	outside, calls, err := sharedCode()
	if err != nil {
		return nil, err
	}
	a, err := read("tcktapp", outside, calls)
	if err != nil {
		return nil, err
	}
	more, err := files.ReadFile("apps/gettickts.py")
	if err != nil {
		return nil, err
	}
	a.Name, a.Entry, a.code = "GetTickts", "search", a.code+"\n\n"+string(more)
	a.Functions = append(a.Functions, "search", "settings")
	a.Calls["search"] = []string{"settings", "tickets"}
	return a, nil
}

// DeployCached is Deploy for functions whose results are kept.
func (a *Application) DeployCached(ctx context.Context, c *server.Client) error {
	return a.deploy(ctx, c, func(function string) (string, string) { return a.code, function }, annotation("state_cache", true))
}

// Searches are all that can be searched for: each route, on a day from 0 to 4 ahead.
func Searches() ([]Request, error) {
	w, err := loadWorld()
	if err != nil {
		return nil, err
	}
	var all []Request
	for day := range 5 {
		for i, r := range w.Routes {
			if w.known(r) {
				all = append(all, Request{"user": userName(i % users), "from": r.From, "to": r.To, "day": day})
			}
		}
	}
	return all, nil
}
