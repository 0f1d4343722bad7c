package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// longDelay is the delay that makes a flight cheaper, in minutes.
const longDelay = 30

// How long what the functions ask outside takes to answer. They sleep that long in place of the request.
const (
	searchTime  = 60 * time.Millisecond // the airlines' search
	weatherTime = 60 * time.Millisecond // the weather service
	ratesTime   = 60 * time.Millisecond // the hotels and car rentals
)

// trip is a booking so far: what was asked for, and what the functions before have added. Its numbers are float64.
type trip map[string]any

// function adds to a trip what it is named after.
type function func(context.Context, *redis.Client, trip) (trip, error)

func functions() map[string]function {
	return map[string]function{
		"FindFlight": findFlight, "ForecastDelay": forecastDelay, "PriceTrip": priceTrip, "ReserveHotel": reserveHotel,
	}
}

// findFlight finds a day's first flight from a time on: {from, to, date, after} -> {flight, departs, hour, distance}. A route
// that nobody flies that day leaves the trip without one.
func findFlight(ctx context.Context, state *redis.Client, t trip) (trip, error) {
	time.Sleep(searchTime)
	var flights []trip // in the order of departure
	err := read(ctx, state, &flights, fmt.Sprintf("flightbook:flights:%s:%s:%s", t["from"], t["to"], t["date"]))
	for _, flight := range flights {
		if flight.text("departs") >= t.text("after") {
			return t.with(flight), err
		}
	}
	return t, err
}

// forecastDelay expects a delay of weather and carrier: {flight, from, hour} -> {delay}, in minutes.
func forecastDelay(ctx context.Context, state *redis.Client, t trip) (trip, error) {
	time.Sleep(weatherTime)
	carrier := t.text("flight")[:2]
	usual, err := state.HGet(ctx, "flightbook:delays:"+t.text("from"), carrier).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	// Tenths of mph, tenths of a mile, hundredths of an inch; an hour that nobody measured is a fair one.
	weather := struct{ Wind, Visibility, Rain int }{Visibility: 100}
	text, err := state.HGet(ctx, "flightbook:weather:"+t.text("from"), t.text("hour")).Bytes()
	if err == nil {
		err = json.Unmarshal(text, &weather)
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	delay := usual + max(0, weather.Wind-150)/10 + max(0, 100-weather.Visibility)/4 + weather.Rain/2
	return t.with(trip{"delay": delay}), nil
}

// priceTrip prices flight, hotel and car: {to, departs, distance, delay, nights, car} -> {price}, in cents: 15% off for odd
// hours, 10% for a long delay; a car is kept at least a day.
func priceTrip(ctx context.Context, state *redis.Client, t trip) (trip, error) {
	time.Sleep(ratesTime)
	rates, err := state.HGetAll(ctx, "flightbook:rates:"+t.text("to")).Result()
	if err != nil {
		return nil, err
	}
	fare := 4900 + 11*t.number("distance")
	if departs := t.text("departs"); departs < "07:00" || departs >= "20:00" {
		fare = fare * 85 / 100
	}
	if t.number("delay") >= longDelay {
		fare = fare * 90 / 100
	}
	hotel, _ := strconv.Atoi(rates["hotel"]) // a destination without rates costs nothing
	car, _ := strconv.Atoi(rates["car"])
	price := fare + hotel*t.number("nights")
	if t["car"] == true {
		price += car * max(1, t.number("nights"))
	}
	return t.with(trip{"price": price}), nil
}

// reserveHotel takes a room at the destination, if the trip needs one: {to, date, nights} -> {room}.
func reserveHotel(ctx context.Context, state *redis.Client, t trip) (trip, error) {
	if t.number("nights") == 0 {
		return t, nil
	}
	room, err := state.Incr(ctx, fmt.Sprintf("%s:rooms:%s:%s", t["store"], t["to"], t["date"])).Result()
	return t.with(trip{"room": room}), err
}

// read decodes the document under a key; one that is not there leaves into as it is.
func read(ctx context.Context, state *redis.Client, into any, key string) error {
	text, err := state.Get(ctx, key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// with returns the trip with more in it.
func (t trip) with(more trip) trip {
	for name, value := range more {
		t[name] = value
	}
	return t
}

func (t trip) text(name string) string {
	s, _ := t[name].(string)
	return s
}

func (t trip) number(name string) int {
	n, _ := t[name].(float64)
	return int(n)
}
