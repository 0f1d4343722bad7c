package workloads

import (
	"encoding/json"
	"iter"
	"math/rand/v2"
	"sync/atomic"
)

// DefaultHitRate is how often a branch that the data do not decide goes the usual way, as in the paper (section VII).
const DefaultHitRate = 0.9

// Request is the input of one invocation.
type Request map[string]any

// String is the request as JSON, by which requests are told apart.
func (r Request) String() string {
	text, err := json.Marshal(map[string]any(r))
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(text)
}

// customer is somebody who asks again and again: for the same trip, and the same things.
type customer struct {
	number, weight int
	routes         [2]route // to where the table of airports knows
	trip           route    // of all
}

// Requests returns the requests of an application, without end, the same for the same seed. Routes come as often as they
// were flown; each customer has two that are asked for again. hitRate is how often each branch that the data do not decide
// goes the usual way (see DefaultHitRate); a request that does not has a mistyped password, somebody unknown or a group of
// a thousand, of one of few customers.
func (a *Application) Requests(seed uint64, hitRate float64) (iter.Seq[Request], error) {
	return a.requests(&generator{random: seeded(seed), hitRate: hitRate})
}

// FreshRequests are Requests with mistakes that nobody made before, of any customer: they are numbered from what made counts on.
func (a *Application) FreshRequests(seed uint64, hitRate float64, made *atomic.Int64) (iter.Seq[Request], error) {
	return a.requests(&generator{random: seeded(seed), hitRate: hitRate, made: made})
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5bec)) }

func (a *Application) requests(g *generator) (iter.Seq[Request], error) {
	w, err := loadWorld()
	if err != nil {
		return nil, err
	}
	g.customers = customers(w)
	for _, c := range g.customers {
		g.weight += c.weight
	}
	draw := g.maker(a)
	return func(yield func(Request) bool) {
		for yield(draw()) {
		}
	}, nil
}

// customers are the same in each run: the state holds them.
func customers(w *world) []customer {
	random := rand.New(rand.NewPCG(2013, 7))
	all := make([]customer, users)
	for n := range all {
		all[n] = customer{number: n, weight: 10 + 200/(n+1), trip: fly(random, w.Routes)}
		for i := range all[n].routes {
			for {
				all[n].routes[i] = fly(random, w.Routes)
				if w.known(all[n].routes[i]) {
					break
				}
			}
		}
	}
	return all
}

// fly draws a route as often as it is flown.
func fly(random *rand.Rand, routes []route) route {
	flights := 0
	for _, r := range routes {
		flights += r.Flights
	}
	left := random.IntN(flights)
	for _, r := range routes {
		if left -= r.Flights; left < 0 {
			return r
		}
	}
	return routes[0]
}

// generator draws requests.
type generator struct {
	random    *rand.Rand
	hitRate   float64
	customers []customer
	weight    int           // of all customers
	made      *atomic.Int64 // the mistakes so far, if none is made twice
}

func (g *generator) customer() customer {
	left := g.random.IntN(g.weight)
	for _, c := range g.customers {
		if left -= c.weight; left < 0 {
			return c
		}
	}
	return g.customers[0]
}

// unusual says whether the next branch goes the other way.
func (g *generator) unusual() bool { return g.random.Float64() >= g.hitRate }

// mistaken is who makes a mistake, and its number: one of the few who do, and theirs again and again, so that their mistakes are known
// as other inputs are; or anybody, and no mistake is made twice.
func (g *generator) mistaken() (c customer, number int) {
	if g.made != nil {
		return g.customer(), users + int(g.made.Add(1))
	}
	c = g.customers[g.random.IntN(careless)]
	return c, c.number
}

// many is a number above whatever there is, that of a mistake.
func many(n int) int { return 1000 + n }

// login is the customer's name and password.
func login(c customer) Request {
	return Request{"user": userName(c.number), "password": userPassword(c.number)}
}

// route is one of the customer's two, mostly the first.
func (g *generator) route(c customer) route {
	if g.random.IntN(5) == 0 {
		return c.routes[1]
	}
	return c.routes[0]
}

// draw is a request of somebody: what is usual, or that with the mistake of the first branch that goes the other way.
func (g *generator) draw(usual func(customer) Request, mistakes ...func(int, Request)) Request {
	for _, mistake := range mistakes {
		if g.unusual() {
			c, number := g.mistaken()
			r := usual(c)
			mistake(number, r)
			return r
		}
	}
	return usual(g.customer())
}

func wrong(name string) func(int, Request) {
	return func(n int, r Request) { r[name] = typo(n) }
}

func tooMany(name string) func(int, Request) {
	return func(n int, r Request) { r[name] = many(n) }
}

func (g *generator) maker(a *Application) func() Request {
	switch a.Slug {
	case "login":
		return func() Request { return g.draw(login, wrong("password")) }
	case "banking":
		return func() Request { return g.draw(g.banking, wrong("user"), wrong("pin"), tooMany("amount")) }
	case "flightbook":
		return func() Request { return g.draw(g.flightBook, tooMany("seats"), wrong("user"), wrong("card")) }
	case "hotelbook":
		return func() Request { return g.draw(g.hotelBook, tooMany("rooms")) }
	case "smarthome":
		return func() Request { return g.draw(g.smartHome, wrong("password")) }
	case "onlpurch":
		return func() Request { return g.draw(g.onlinePurchase, wrong("password"), tooMany("pieces"), wrong("card")) }
	case "cancelapp":
		return func() Request { return Request{"user": userName(g.customer().number)} }
	case "getleftapp", "querytrvl":
		return func() Request {
			c := g.customer()
			return Request{"from": c.trip.From, "to": c.trip.To}
		}
	case "tcktapp", "tripinfapp":
		return func() Request { return trip(g.customer()) }
	default:
		return func() Request { return g.draw(trip, wrong("user")) }
	}
}

// trip is somebody's trip.
func trip(c customer) Request {
	return Request{"user": userName(c.number), "from": c.trip.From, "to": c.trip.To}
}

func (g *generator) banking(c customer) Request {
	return Request{"user": userName(c.number), "pin": userPin(c.number), "amount": 20 * (1 + (c.number+g.random.IntN(2))%5)}
}

func (g *generator) flightBook(c customer) Request {
	way := g.route(c)
	return Request{
		"user": userName(c.number), "from": way.From, "to": way.To, "hour": 6 + c.number%15, "seats": 1 + c.number%3,
		"card": userCard(c.number),
	}
}

func (g *generator) hotelBook(c customer) Request {
	return Request{"user": userName(c.number), "to": g.route(c).To, "rooms": 1 + c.number%2}
}

// smartHome draws one of the four hours at which the customer's home asks: how warm it was is data.
func (g *generator) smartHome(c customer) Request {
	r := login(c)
	r["from"], r["hour"] = c.routes[0].From, (5*c.number+3*g.random.IntN(4))%24
	return r
}

func (g *generator) onlinePurchase(c customer) Request {
	r := login(c)
	r["from"], r["item"], r["pieces"], r["card"] = g.route(c).To, itemName(c.number*7%items), 1+c.number%3, userCard(c.number)
	return r
}
