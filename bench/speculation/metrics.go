package speculation

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"forerun.dev/forerun/test/server"
)

// outcomes are what became of functions that ran ahead.
type outcomes struct{ right, wrong, skipped float64 }

// add adds what happened between two readings.
func (o *outcomes) add(after, before outcomes) {
	o.right += after.right - before.right
	o.wrong += after.wrong - before.wrong
	o.skipped += after.skipped - before.skipped
}

// rate is the share of those that ran ahead and were right; NaN if none did.
func (o outcomes) rate() float64 { return o.right / (o.right + o.wrong) }

func (o outcomes) String() string {
	return fmt.Sprintf("%.0f ahead and right, %.0f wrong, %.0f skipped", o.right, o.wrong, o.skipped)
}

// metrics are what a server tells at /metrics of running ahead.
type metrics struct {
	outcomes
	wasted float64 // seconds of the processors
	cold   float64 // sandboxes that were started, or given code
}

func scrape(ctx context.Context, c *server.Client) (m metrics, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/metrics", nil)
	if err != nil {
		return m, err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return m, err
	}
	defer resp.Body.Close()
	into := map[string]*float64{
		`forerun_predictions_total{outcome="right"}`: &m.right, `forerun_predictions_total{outcome="wrong"}`: &m.wrong,
		`forerun_predictions_total{outcome="skipped"}`: &m.skipped, `forerun_wasted_seconds_total`: &m.wasted,
		`forerun_cold_starts_total`: &m.cold,
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if at, ok := into[name]; ok {
			if *at, err = strconv.ParseFloat(value, 64); err != nil {
				return m, err
			}
			delete(into, name)
		}
	}
	for name := range into {
		return m, fmt.Errorf("/metrics answered %d and does not tell %s", resp.StatusCode, name)
	}
	return m, lines.Err()
}
