package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/bench/workloads"
)

// traveller is the one customer account of the paper's artifact.
const traveller = "user00"

// orders is how many the customer has at the start, and kept how many of the last there are, as in trainticket.py.
const (
	kept   = 40
	orders = 20
)

// tickets is TrainTicket: its customer's searches begin or end at one airport.
type tickets struct {
	trips []workloads.Trip
}

// trainTicket makes the suite; a rough look has fewer stations.
func trainTicket(quick bool) (*suite, error) {
	t, none := new(tickets), math.NaN() // not comparable: over single URLs
	var err error
	if t.trips, err = workloads.Trips("EWR"); err != nil {
		return nil, err
	}
	if quick {
		t.trips = t.trips[:8]
	}
	var code []*workloads.Application
	for _, read := range []func() (*workloads.Application, error){workloads.GetTickts, workloads.Information, workloads.Orders} {
		a, err := read()
		if err != nil {
			return nil, err
		}
		code = append(code, a)
	}
	return &suite{
		name: "TrainTicket", slug: "trainticket", users: 5, code: code, setup: t.setup, first: t.first,
		paper: suitePaper{served: 6.14, openWhisk: 2.01, faasCache: 1.25, hits: 0.843, target: ">=4.8"},
		apps: []application{
			{"GetTickts", 600, t.drawSearch, latencyPaper{1701, 7800, 119, 2300}},
			{"QueryOrd", 390, func(*rand.Rand) script { return single(query()) }, latencyPaper{2000, 7800, 346, 6000}},
			{"CalRef", 10, t.choosing(calculate), latencyPaper{2657, none, 671, none}},
			{"PresvTickt", 5, t.drawPreserve, latencyPaper{34899, 45000, 18891, 45000}},
			{"CancOrd", 5, t.choosing(cancel), latencyPaper{8572, none, 3662, none}},
			{"GetContact", 3, t.drawContacts, latencyPaper{2196, 6400, 209, 6400}},
			{"PayOrd", 2, t.choosing(pay), latencyPaper{11577, 17000, 6064, 13000}},
		},
	}, nil
}

// setup writes the world, and the customer's orders.
func (t *tickets) setup(ctx context.Context, door redis.UniversalClient) error {
	if err := workloads.Setup(ctx, door); err != nil {
		return err
	}
	pipe := door.Pipeline()
	for n := range orders {
		trip := t.trips[n%len(t.trips)]
		pipe.RPush(ctx, "orders:"+traveller, n+1)
		pipe.Set(ctx, fmt.Sprintf("order:%d", n+1), text(map[string]any{
			"number": n + 1, "user": traveller, "from": trip.From, "to": trip.To, "price": 100 + n, "status": []string{"open", "paid"}[n%2],
		}), 0)
	}
	pipe.Set(ctx, "orders", orders, 0)
	pipe.HSet(ctx, "contacts:"+traveller, "1", "Ada", "2", "Grace")
	pipe.HSet(ctx, "assurances", "1", 3)
	_, err := pipe.Exec(ctx)
	return err
}

func (t *tickets) first() (all []script) {
	for day := range 5 {
		for _, trip := range t.trips {
			all = append(all, single(search(trip, day)))
		}
	}
	all = append(all, single(query()), single(contacts()))
	for i := range orders {
		all = append(all, t.chosen(i, calculate))
	}
	return append(all, t.preserving(t.trips[0], 0), t.chosen(0, cancel), t.chosen(1, pay))
}

func (t *tickets) drawSearch(random *rand.Rand) script {
	return single(search(t.trips[random.IntN(len(t.trips))], random.IntN(5)))
}

func (t *tickets) drawPreserve(random *rand.Rand) script {
	return t.preserving(t.trips[random.IntN(len(t.trips))], random.IntN(5))
}

// preserving looks for a trip's tickets and orders one.
func (t *tickets) preserving(trip workloads.Trip, day int) script {
	return func(send sender) error {
		if _, err := send(search(trip, day)); err != nil {
			return err
		}
		_, err := send(preserve(trip))
		return err
	}
}

func (t *tickets) drawContacts(*rand.Rand) script {
	return func(send sender) error {
		if _, err := send(query()); err != nil {
			return err
		}
		_, err := send(contacts())
		return err
	}
}

// choosing reads the fresh list of orders, and does something with one of them.
func (t *tickets) choosing(next func(number int) ask) func(*rand.Rand) script {
	return func(random *rand.Rand) script { return t.chosen(random.IntN(kept), next) }
}

func (t *tickets) chosen(which int, next func(number int) ask) script {
	return func(send sender) error {
		answer, err := send(query())
		if err != nil {
			return err
		}
		listed := numbersIn(answer)
		if len(listed) == 0 {
			return fmt.Errorf("there are no orders in %.200s", answer)
		}
		_, err = send(next(listed[which%len(listed)]))
		return err
	}
}

func search(trip workloads.Trip, day int) ask {
	input := map[string]any{"user": traveller, "from": trip.From, "to": trip.To, "day": day}
	c := called("tcktapp-search", input, nil, called("tcktapp-settings", nil, records("gettickts:settings")), found(trip))
	return ask{app: "GetTickts", action: "tcktapp-search", input: input, calls: happens(c)}
}

// found is what a search calls: all about the tickets of a trip.
func found(trip workloads.Trip) *call {
	return called("tcktapp-tickets", trip, nil, append(common("tcktapp", trip), called("tcktapp-extras", traveller, records("onlpurch:points"), asked("tcktapp", "food", traveller)))...)
}

// asked is a function that reads one company's answers, and other records.
func asked(slug, function string, input any, more ...string) *call {
	return called(slug+"-"+function, input, append(more, "answers:"+function))
}

// common are the calls that TcktApp and TripInfApp have in common.
func common(slug string, trip workloads.Trip) []*call {
	place := func(name string) string { return "world:airport:" + name }
	route, way := "world:route:"+trip.From+":"+trip.To, trip.From+trip.To
	return []*call{
		called(slug+"-stations", way, nil, asked(slug, "start", trip.From, place(trip.From)), asked(slug, "end", trip.To, place(trip.To))),
		called(slug+"-travel", way, nil, asked(slug, "route", way, route), asked(slug, "train", way)),
		called(slug+"-fare", trip, nil, asked(slug, "base", trip.Miles), asked(slug, "tax", trip.Carrier)),
		called(slug+"-seats", trip, nil, asked(slug, "sold", way, route), asked(slug, "layout", trip.Carrier)),
	}
}

func information(trip workloads.Trip) *call {
	const slug = "tripinfapp"
	way := trip.From + trip.To
	return called(slug+"-information", way, nil, append(common(slug, trip),
		called(slug+"-extras", traveller, records("onlpurch:points"), asked(slug, "food", traveller), asked(slug, "insurance", traveller)),
		called(slug+"-there", way, nil,
			asked(slug, "weather", way, "world:weather:"+trip.From), asked(slug, "gate", way), asked(slug, "belt", way), asked(slug, "hotel", way)),
		called(slug+"-traveller", trip.To, nil, asked(slug, "contact", trip.To, "login:profiles"), asked(slug, "visa", trip.To)),
	)...)
}

func order(number int) string { return fmt.Sprintf("order:%d", number) }

// numbersIn are the numbers of the orders that an answer lists.
func numbersIn(answer []byte) (all []int) {
	var list struct{ Orders []struct{ Number int } }
	if json.Unmarshal(answer, &list) != nil {
		return nil
	}
	for _, o := range list.Orders {
		all = append(all, o.Number)
	}
	return all
}

// one is a request that is about the traveller alone, or about one order of theirs.
func one(app, function string, number int, calls func([]byte) []*call) ask {
	input := map[string]any{"user": traveller}
	if number != 0 {
		input["order"] = number
	}
	return ask{app: app, action: "trainticket-" + function, input: input, calls: calls}
}

func query() ask {
	return one("QueryOrd", "query", 0, func(answer []byte) []*call {
		list := called("trainticket-orders", traveller, append(numbered("order:%d", numbersIn(answer)), "orders:"+traveller))
		return []*call{called("trainticket-query", traveller, nil, list)}
	})
}

func contacts() ask { return one("GetContact", "contacts", 0, happens(contact())) }

func contact() *call {
	return called("trainticket-contacts", traveller, records("contacts:"+traveller))
}

// looked is the function that reads an order.
func looked(number int) *call { return called("trainticket-order", number, records(order(number))) }

func calculate(number int) ask {
	return one("CalRef", "calculate", number, happens(called("trainticket-calculate", number, nil, looked(number))))
}

func cancel(number int) ask {
	return one("CancOrd", "cancel", number, happens(called("trainticket-cancel", number, nil, looked(number),
		writing("trainticket-refund", number, records(order(number), "refunded:"+traveller)), noted())))
}

func noted() *call { return writing("trainticket-notify", 0, records("notices:"+traveller)) }

func pay(number int) ask {
	return one("PayOrd", "pay", number, happens(called("trainticket-pay", number, nil, looked(number),
		writing("trainticket-payment", number, records(order(number), "spent:"+traveller)))))
}

// preserve orders a ticket. The answer has the order's number.
func preserve(trip workloads.Trip) ask {
	way := trip.From + trip.To
	return ask{
		app: "PresvTickt", action: "trainticket-preserve", input: map[string]any{"user": traveller, "from": trip.From, "to": trip.To},
		calls: func(answer []byte) []*call {
			var made struct{ Order int }
			_ = json.Unmarshal(answer, &made) // it was checked
			return []*call{called("trainticket-preserve", way, nil,
				called("trainticket-security", traveller, records("security:suspects")), contact(), information(trip),
				called("trainticket-assurance", 1, records("assurances")),
				writing("trainticket-seat", way, records("world:route:"+trip.From+":"+trip.To)),
				writing("trainticket-create", way, records("orders", order(made.Order), "orders:"+traveller)), noted())}
		},
	}
}
