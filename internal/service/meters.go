package service

import (
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"forerun.dev/forerun/internal/audit"
	"forerun.dev/forerun/internal/certificate"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/gateway/offload"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/internal/telemetry"
	"forerun.dev/forerun/internal/worker"
)

// measure shows the state of the worker and of the store in the metrics.
func measure(m *telemetry.Metrics, w *worker.Worker, store *embedded.Store) {
	m.Gauge("forerun_store_bytes", "Size of the store's files.", func() float64 { return float64(size(os.DirFS(storeName))) })
	m.Gauge("forerun_store_full", "1 while nothing new is stored because the disk is full.", func() float64 {
		if store.Room() != nil {
			return 1
		}
		return 0
	})
	m.Counter("forerun_cold_starts_total", "Sandboxes that were started.", func() float64 { return float64(w.Stats().ColdStarts) })
	m.Counter("forerun_prewarmed_starts_total", "Sandboxes that were started before an action needed them.", func() float64 { return float64(w.Stats().Prewarmed) })
	m.Counter("forerun_wasted_seconds_total", "Processor time of speculative activations that were squashed, and of their removal.", func() float64 { return w.Stats().Wasted.Seconds() })
	m.Counter("forerun_expired_total", "Activations that waited too long for a sandbox.", func() float64 { return float64(w.Stats().Expired) })
	m.Counter("forerun_evictions_total", "Sandboxes that were closed to make room.", func() float64 { return float64(w.Stats().Evicted) })
	m.Counter("forerun_phases_demoted_total", "Times that a phase made way for another, and went on with less weight.", func() float64 { return float64(w.Stats().Turns.Demoted) })
	m.Counter("forerun_phases_reclassified_total", "Times that a phase used far more than its need, and got another.", func() float64 { return float64(w.Stats().Turns.Reclassified) })
	for _, gauge := range []struct {
		name, help string
		read       func(worker.Stats) int
	}{
		{"forerun_sandboxes_starting", "Sandboxes that load their code.", func(s worker.Stats) int { return s.Starting }},
		{"forerun_sandboxes_idle", "Sandboxes that wait for work.", func(s worker.Stats) int { return s.Idle }},
		{"forerun_sandboxes_busy", "Sandboxes that execute an activation.", func(s worker.Stats) int { return s.Busy }},
		{"forerun_sandboxes_memory_bytes", "Memory that sandboxes occupy: the limits of those that work, what the others use.", func(s worker.Stats) int { return s.MemoryMiB << 20 }},
		{"forerun_sandboxes_blank", "Sandboxes that wait for code.", func(s worker.Stats) int { return s.Blank }},
		{"forerun_queued_activations", "Activations that wait for a sandbox.", func(s worker.Stats) int { return s.Queued }},
		{"forerun_waiting_phases", "Phases that wait for processors.", func(s worker.Stats) int { return s.Turns.Waiting }},
		{"forerun_phases_at_doors", "Activations that wait at a door, or for one that they called.", func(s worker.Stats) int { return s.Turns.Away }},
		{"forerun_slabs", "Sixteenths of processors that there are for phases; 0: the policy has no bound.", func(s worker.Stats) int { return s.Turns.Slabs }},
		{"forerun_slabs_in_use", "Sixteenths of processors that phases hold.", func(s worker.Stats) int { return s.Turns.Used }},
	} {
		m.Gauge(gauge.name, gauge.help, func() float64 { return float64(gauge.read(w.Stats())) })
	}
}

// measureAudit shows failures to authenticate in the metrics.
func measureAudit(m *telemetry.Metrics, l *audit.Log) {
	m.Counter("forerun_authentication_failures_total", "Requests and connections whose credentials were not accepted.", func() float64 { return float64(l.Failures()) })
	m.Counter("forerun_audit_lost_total", "Entries that could not be written to the audit log.", func() float64 { return float64(l.Lost()) })
}

// measureOffload shows the calls of Java applications in the metrics.
func measureOffload(m *telemetry.Metrics, a *offload.API) {
	m.Counter("forerun_offload_calls_total", "Calls of Java applications that functions began to execute.", func() float64 { return float64(a.Totals().Calls) })
	m.Gauge("forerun_offload_calls_open", "Calls of Java applications that functions execute.", func() float64 { return float64(a.Totals().Open) })
	m.Counter("forerun_offload_bytes_total", "Bytes between applications and functions, of calls that have ended.", func() float64 { return float64(a.Totals().Bytes) })
}

// measureCertificate shows the state of the server's certificate in the metrics; k is nil if there is none.
func measureCertificate(m *telemetry.Metrics, k *certificate.Keeper) {
	m.Gauge("forerun_certificate_seconds", "Time until the server's certificate expires; 0: there is no TLS.", func() float64 {
		if k == nil {
			return 0
		}
		return k.Left().Seconds()
	})
	m.Counter("forerun_certificate_failures_total", "Certificates that could not be taken into use.", func() float64 {
		if k == nil {
			return 0
		}
		return float64(k.Failures())
	})
}

// measureTraffic shows in the metrics what comes through the doors.
func measureTraffic(m *telemetry.Metrics, t *gateway.Traffic) {
	m.Gauge("forerun_connections_tcp", "Connections of HTTP/1.1 and HTTP/2 that are open.", func() float64 { return float64(t.TCP.Load()) })
	m.Gauge("forerun_connections_quic", "Connections of HTTP/3 that are open.", func() float64 { return float64(t.QUIC.Load()) })
	for protocol := range t.Requests() {
		name := "forerun_requests_" + strings.NewReplacer("HTTP/", "http", ".1", "").Replace(protocol) + "_total"
		m.Counter(name, "Requests over "+protocol+".", func() float64 { return float64(t.Requests()[protocol]) })
	}
	for _, counter := range []struct {
		name, help string
		of         *atomic.Int64
	}{
		{"forerun_tls12_handshakes_total", "Handshakes of TLS 1.2 over TCP that were completed.", &t.TLS12},
		{"forerun_tls13_handshakes_total", "Handshakes of TLS 1.3 over TCP that were completed.", &t.TLS13},
		{"forerun_tls_handshakes_unfinished_total", "Connections over TCP that ended before their TLS handshake.", &t.TLSUnfinished},
		{"forerun_quic_handshakes_total", "Handshakes of QUIC that were completed.", &t.Handshakes},
		{"forerun_quic_handshakes_unfinished_total", "Handshakes of QUIC that were not completed.", &t.Unfinished},
		{"forerun_quic_resumed_total", "Handshakes of QUIC that were completed with a session ticket.", &t.Resumed},
		{"forerun_quic_retries_total", "Clients of QUIC that had to prove their address first.", &t.Retries},
		{"forerun_early_accepted_total", "Requests that ran as early data.", &t.EarlyAccepted},
		{"forerun_early_held_total", "Requests in early data that waited for the end of the handshake.", &t.EarlyHeld},
		{"forerun_early_refused_total", "Requests in the early data of a proxy that were refused (425).", &t.EarlyRefused},
		{"forerun_early_replayed_total", "Session tickets that came a second time: their early data was not read.", &t.Replayed},
	} {
		m.Counter(counter.name, counter.help, func() float64 { return float64(counter.of.Load()) })
	}
}

// measureMemo shows the state of the memo table in the metrics.
func measureMemo(m *telemetry.Metrics, c *controller.Controller) {
	m.Counter("forerun_memo_hits_total", "Outputs of functions that were looked up and known.", func() float64 { return float64(c.Memo().Hits) })
	m.Counter("forerun_memo_misses_total", "Outputs of functions that were looked up and not known.", func() float64 { return float64(c.Memo().Misses) })
	m.Counter("forerun_cache_evictions_total", "Outputs of functions that had to go for others.", func() float64 { return float64(c.Memo().Evictions) })
	m.Gauge("forerun_cache_rows", "Outputs of functions that are known.", func() float64 { return float64(c.Memo().Rows) })
	m.Gauge("forerun_cache_bytes", "Memory that known outputs take.", func() float64 { return float64(c.Memo().Bytes) })
	m.Counters("forerun_cache_verifications_total", "Hits that were executed again, by what that has shown: agreed, differed, or open, which is nothing.", "outcome", map[string]func() float64{
		"agreed":   func() float64 { agreed, _, _ := c.Verifications(); return float64(agreed) },
		"differed": func() float64 { _, differed, _ := c.Verifications(); return float64(differed) },
		"open":     func() float64 { _, _, open := c.Verifications(); return float64(open) },
	})
	m.Gauge("forerun_cache_waiters", "Executions that wait for an equal one.", func() float64 { return float64(c.Waiting()) })
}

// measureToll shows what running ahead costs in the metrics.
func measureToll(m *telemetry.Metrics, c *controller.Controller) {
	m.Gauge("forerun_speculation_toll", "Processor time of an activation with speculation as a multiple of its time without, measured under load; 0: not measured yet.", func() float64 {
		cost, _, _ := c.Toll()
		return cost
	})
	m.Gauge("forerun_speculation_barred", "1 while speculation is suspended because the processors have no time for its cost.", func() float64 {
		if _, barred, _ := c.Toll(); barred {
			return 1
		}
		return 0
	})
	m.Gauge("forerun_speculation_vain", "Actions, by namespace and mode, that are not speculative while the processors are busy, because their answers come no sooner then.", func() float64 {
		_, _, vain := c.Toll()
		return float64(vain)
	})
}

// size sums up the files of a folder. One that vanishes meanwhile counts for nothing.
func size(folder fs.FS) (bytes int64) {
	_ = fs.WalkDir(folder, ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
