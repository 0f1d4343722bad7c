package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What the data do not have is made up, for so many of each, the same in each run.
const (
	users    = 60
	careless = 4 // of the users: those who make mistakes
	items    = 40
	hotels   = 5 // near each airport
)

// world is what apps/world.json holds; see world.py.
type world struct {
	Routes   []route                       `json:"routes"`
	Airports map[string]map[string]float64 `json:"airports"` // by code: lat and lon, in degrees
	Weather  map[string]map[string]float64 `json:"weather"`  // by airport and hour: degrees Fahrenheit
}

// route is where one can fly from New York.
type route struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Carrier  string `json:"carrier"`
	Flights  int    `json:"flights"`  // in 2013
	Distance int    `json:"distance"` // miles
}

func loadWorld() (*world, error) {
	text, err := files.ReadFile("apps/world.json")
	if err != nil {
		return nil, err
	}
	w := new(world)
	return w, json.Unmarshal(text, w)
}

// known says whether the table of airports has the end of the route.
func (w *world) known(r route) bool {
	_, ok := w.Airports[r.To]
	return ok
}

func userName(n int) string     { return fmt.Sprintf("user%02d", n) }
func userPassword(n int) string { return fmt.Sprintf("secret-%d", n*7919) }
func userPin(n int) string      { return fmt.Sprintf("%04d", 1000+n*131%9000) }
func userCard(n int) string     { return fmt.Sprintf("4000-%08d", n*104729) }
func typo(n int) string         { return "typo-" + userName(n) } // the n-th mistake
func userLimit(n int) int       { return 200 + n%5*100 }
func itemName(n int) string     { return fmt.Sprintf("item%02d", n) }

// Setup writes what the applications start with, for all of them, over the door for Redis clients. It forgets everything
// else.
func Setup(ctx context.Context, door redis.UniversalClient) error {
	w, err := loadWorld()
	if err != nil {
		return err
	}
	if err := door.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("the state cannot be emptied: %w", err)
	}
	pipe := door.Pipeline()
	setUsers(ctx, pipe)
	for n := range items {
		pipe.HSet(ctx, "onlpurch:stock", itemName(n), 20)
	}
	documents := map[string]any{}
	for place, position := range w.Airports {
		documents["world:airport:"+place] = position
		setHotels(ctx, pipe, documents, place, position)
		if strings.ContainsAny(place[:1], "ABDM") {
			pipe.SAdd(ctx, "onlpurch:stores", place)
		}
	}
	for place, hours := range w.Weather {
		documents["world:weather:"+place] = hours
	}
	for _, r := range w.Routes {
		documents["world:route:"+r.From+":"+r.To] = r
		pipe.HSet(ctx, "flightbook:free", r.From+"-"+r.To, 9)
	}
	for key, document := range documents {
		text, err := json.Marshal(document)
		if err != nil {
			return err
		}
		pipe.Set(ctx, key, text, 0)
	}
	_, err = pipe.Exec(ctx)
	return err
}

func setUsers(ctx context.Context, pipe redis.Pipeliner) {
	for n := range users {
		name := userName(n)
		pipe.HSet(ctx, "login:passwords", name, userPassword(n))
		pipe.HSet(ctx, "login:profiles", name, fmt.Sprintf("profile of %s, customer since %d", name, 1990+n%30))
		pipe.HSet(ctx, "banking:cards", name, userCard(n))
		pipe.HSet(ctx, "banking:pins", name, userPin(n))
		pipe.HSet(ctx, "banking:limits", name, userLimit(n))
		pipe.HSet(ctx, "smarthome:thresholds", name, 21+n%6)
		pipe.HSet(ctx, "onlpurch:points", name, n%50)
		if n%40 == 17 { // 2.5% of New York's flights of 2013 were cancelled; their orders cannot be
			pipe.SAdd(ctx, "cancelapp:grounded", name)
		}
		if n < careless {
			pipe.SAdd(ctx, "alibaba:blocked", typo(n))
		}
	}
}

// setHotels places hotels around an airport.
func setHotels(ctx context.Context, pipe redis.Pipeliner, documents map[string]any, place string, at map[string]float64) {
	for n := range hotels {
		name := fmt.Sprintf("%s-%d", place, n)
		documents[fmt.Sprintf("hotelbook:hotel:%s:%d", place, n)] = map[string]any{
			"name": name, "stars": 1 + (n*3+len(place)+int(at["lat"]))%5,
			"lat": at["lat"] + float64(n*7%5-2)/50, "lon": at["lon"] + float64(n*11%7-3)/50,
		}
		pipe.HSet(ctx, "hotelbook:rooms", name, 9)
	}
}

// State is what the applications wrote, by key: everything but the world. It is compared between runs.
func State(ctx context.Context, door redis.UniversalClient) (map[string]string, error) {
	state := map[string]string{}
	keys := door.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		if strings.HasPrefix(key, "world:") || strings.HasPrefix(key, "hotelbook:hotel:") {
			continue
		}
		value, err := dump(ctx, door, key)
		if err != nil {
			return nil, err
		}
		state[key] = value
	}
	return state, keys.Err()
}

func dump(ctx context.Context, door redis.UniversalClient, key string) (string, error) {
	kind, err := door.Type(ctx, key).Result()
	if err != nil {
		return "", err
	}
	switch kind {
	case "hash":
		fields, err := door.HGetAll(ctx, key).Result()
		return fmt.Sprint(fields), err // by name of the field
	case "set":
		members, err := door.SMembersMap(ctx, key).Result()
		return fmt.Sprint(members), err
	default:
		return door.Get(ctx, key).Result()
	}
}
