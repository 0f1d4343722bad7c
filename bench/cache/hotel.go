package cache

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/bench/workloads"
)

// The hotels stand on a grid; guests ask for the nearest ones.
const (
	gridSide   = 31 // of the grid
	roughGrid  = 6  // of the part from which guests ask in a rough look
	hotels     = 80
	guests     = 501
	firstDay   = 9
	lastDay    = 24
	shownLeast = 5
)

func place(hotel int) (x, y int) { return hotel * 7 % gridSide, hotel * 11 % gridSide }
func rating(hotel int) int       { return hotel * 13 % 50 }
func price(hotel int) int        { return 100 + hotel*17%80 }
func password(guest int) string  { return fmt.Sprintf("secret-%d", guest) }
func guestName(guest int) string { return fmt.Sprintf("guest%03d", guest) }

// places are those from which guests ask, by the side of their square.
type places int

// hotelReservation makes the suite.
func hotelReservation(quick bool) (*suite, error) {
	from := places(gridSide)
	if quick {
		from = roughGrid
	}
	code, err := workloads.Hotels()
	if err != nil {
		return nil, err
	}
	return &suite{
		name: "HotelReservation", slug: "hotel", users: 5, code: []*workloads.Application{code}, setup: setupHotels, first: from.first,
		paper: suitePaper{served: 16.5, openWhisk: 12.9, faasCache: 13.6, hits: 0.859, target: ">=1.3"},
		apps: []application{
			{"Search", 600, from.drawStay, latencyPaper{217, 660, 100, 720}},
			{"Reco", 390, from.drawRecommendation, latencyPaper{79, 500, 24, 200}},
			{"Reserve", 5, func(r *rand.Rand) script { return single(reserve(r.IntN(guests), r.IntN(hotels), drawDays(r))) }, latencyPaper{367, 6300, 133, 660}},
			{"User", 5, func(r *rand.Rand) script { return single(guest(r.IntN(guests))) }, latencyPaper{162, 5000, 105, 4900}},
		},
	}, nil
}

func setupHotels(ctx context.Context, door redis.UniversalClient) error {
	pipe := door.Pipeline()
	var places [][2]int
	var ratings, prices []int
	for n := range hotels {
		x, y := place(n)
		places, ratings, prices = append(places, [2]int{x, y}), append(ratings, -rating(n)), append(prices, price(n))
		pipe.Set(ctx, fmt.Sprintf("hotel:rate:%d", n), price(n), 0)
		pipe.Set(ctx, fmt.Sprintf("hotel:profile:%d", n), text(map[string]any{"name": fmt.Sprintf("Hotel %d", n), "x": x, "y": y, "stars": rating(n) / 10}), 0)
	}
	pipe.Set(ctx, "hotel:places", text(map[string]any{"places": places}), 0)
	pipe.Set(ctx, "hotel:rating", text(map[string]any{"values": ratings}), 0) // the best first
	pipe.Set(ctx, "hotel:price", text(map[string]any{"values": prices}), 0)
	for n := range guests {
		digest := sha256.Sum256([]byte(password(n)))
		pipe.HSet(ctx, "hotel:user:"+guestName(n), "password", hex.EncodeToString(digest[:]))
	}
	_, err := pipe.Exec(ctx)
	return err
}

// first asks once for all about each place. There are too many stays to ask for each.
func (p places) first() (all []script) {
	for x := range int(p) {
		for y := range int(p) {
			all = append(all, single(searchHotels(x, y, [2]int{firstDay, lastDay})))
			for _, by := range kinds() {
				all = append(all, single(recommend(by, x, y)))
			}
		}
	}
	return append(all, single(reserve(0, 0, [2]int{firstDay, lastDay})), single(guest(0)))
}

// kinds are the kinds of recommendations.
func kinds() []string { return []string{"distance", "rating", "price"} }

// drawDays are the day of arrival and the day of departure.
func drawDays(r *rand.Rand) [2]int {
	in := firstDay + r.IntN(lastDay-firstDay)
	return [2]int{in, in + 1 + r.IntN(lastDay-in)}
}

func (p places) drawStay(r *rand.Rand) script {
	return single(searchHotels(r.IntN(int(p)), r.IntN(int(p)), drawDays(r)))
}

func (p places) drawRecommendation(r *rand.Rand) script {
	return single(recommend(kinds()[r.IntN(3)], r.IntN(int(p)), r.IntN(int(p))))
}

func abs(n int) int { return max(n, -n) }

// least are the hotels of the lowest values.
func least(value func(hotel int) int) []int {
	all := make([]int, hotels)
	for n := range all {
		all[n] = n
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(value(a), value(b)) })
	return all[:shownLeast]
}

func nearest(x, y int) []int {
	return least(func(n int) int {
		a, b := place(n)
		return abs(a-x) + abs(b-y)
	})
}

func profiles(of []int) *call {
	return called("hotel-profiles", of, numbered("hotel:profile:%d", of))
}

// searchHotels looks for hotels with free rooms near a place.
func searchHotels(x, y int, days [2]int) ask {
	near := nearest(x, y)
	stay := []any{near, days}
	var taken []string
	for _, n := range near {
		for day := days[0]; day < days[1]; day++ {
			taken = append(taken, fmt.Sprintf("hotel:taken:%d:%d", n, day))
		}
	}
	input := map[string]any{"x": x, "y": y, "in": days[0], "out": days[1]}
	return ask{app: "Search", action: "hotel-search", input: input, calls: happens(called("hotel-search", input, nil,
		called("hotel-near", []int{x, y}, records("hotel:places")),
		called("hotel-rates", stay, numbered("hotel:rate:%d", near)),
		called("hotel-free", stay, taken), profiles(near)))}
}

// recommend looks for the best hotels.
func recommend(by string, x, y int) ask {
	input := map[string]any{"by": by, "x": x, "y": y}
	var found *call
	var list []int
	switch by {
	case "distance":
		list, found = nearest(x, y), called("hotel-best", []int{x, y}, records("hotel:places"))
	case "rating":
		list, found = least(func(n int) int { return -rating(n) }), called("hotel-best", by, records("hotel:rating"))
	default:
		list, found = least(price), called("hotel-best", by, records("hotel:price"))
	}
	return ask{app: "Reco", action: "hotel-recommend", input: input, calls: happens(called("hotel-recommend", input, nil, found, profiles(list)))}
}

func known(n int) *call {
	return called("hotel-user", n, records("hotel:user:"+guestName(n)))
}

func guest(n int) ask {
	return ask{app: "User", action: "hotel-user", input: map[string]any{"user": guestName(n), "password": password(n)}, calls: happens(known(n))}
}

// reserve takes a room of a hotel.
func reserve(n, hotel int, days [2]int) ask {
	input := map[string]any{"user": guestName(n), "password": password(n), "hotel": hotel, "in": days[0], "out": days[1]}
	c := called("hotel-reserve", input, nil, known(n))
	for day := days[0]; day < days[1]; day++ {
		c.writes = append(c.writes, fmt.Sprintf("hotel:taken:%d:%d", hotel, day))
	}
	return ask{app: "Reserve", action: "hotel-reserve", input: input, calls: happens(c)}
}
