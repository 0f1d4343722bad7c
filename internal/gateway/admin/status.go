package admin

import (
	"net/http"
	"time"

	"forerun.dev/forerun/internal/certificate"
	"forerun.dev/forerun/internal/gateway"
)

// Listener is a port of the server.
type Listener struct {
	Setting   string   `json:"setting"` // that names its address
	Address   string   `json:"address"`
	TLS       bool     `json:"tls"`
	Protocols []string `json:"protocols"`
}

// status is what the operator is told of the server's doors. Counts are since its start, and of all HTTP listeners.
type status struct {
	Version     string            `json:"version"`
	Listeners   []Listener        `json:"listeners"`
	Certificate *certificate.Info `json:"certificate,omitzero"` // absent: there is no TLS
	Left        int64             `json:"certificateSeconds,omitzero"`
	Connections connections       `json:"connections"`
	Requests    map[string]int64  `json:"requests"` // by protocol
	QUIC        quicStatus        `json:"quic"`
	EarlyData   earlyStatus       `json:"earlyData"`
}

// connections are those that are open.
type connections struct {
	TCP  int64 `json:"tcp"`
	QUIC int64 `json:"quic"`
}

type quicStatus struct {
	Handshakes int64 `json:"handshakes"`
	Resumed    int64 `json:"resumed"`
	Unfinished int64 `json:"unfinished"`
	Retries    int64 `json:"retries"`
}

type earlyStatus struct {
	On       bool  `json:"on"`
	Accepted int64 `json:"accepted"`
	Held     int64 `json:"held"`
	Refused  int64 `json:"refused"`
	Replayed int64 `json:"replayed"` // tickets
}

// getStatus answers with the state of the server's doors.
func (a *API) getStatus(w http.ResponseWriter, _ *http.Request) error {
	t := a.Traffic
	s := status{
		Version: a.Version, Listeners: a.Listeners,
		Connections: connections{TCP: t.TCP.Load(), QUIC: t.QUIC.Load()},
		Requests:    t.Requests(),
		QUIC:        quicStatus{Handshakes: t.Handshakes.Load(), Resumed: t.Resumed.Load(), Unfinished: t.Unfinished.Load(), Retries: t.Retries.Load()},
		EarlyData: earlyStatus{
			On: a.EarlyData, Accepted: t.EarlyAccepted.Load(), Held: t.EarlyHeld.Load(), Refused: t.EarlyRefused.Load(), Replayed: t.Replayed.Load(),
		},
	}
	if a.Certificate != nil {
		info := a.Certificate.Info()
		s.Certificate, s.Left = &info, int64(a.Certificate.Left()/time.Second)
	}
	gateway.WriteJSON(w, http.StatusOK, s)
	return nil
}
