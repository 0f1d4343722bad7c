package whisk

// Status is what the operator's API tells of a server's doors.
type Status struct {
	Version   string `json:"version"`
	Listeners []struct {
		Setting   string   `json:"setting"`
		Address   string   `json:"address"`
		Protocols []string `json:"protocols"`
	} `json:"listeners"`
	Certificate *Certificate `json:"certificate"` // nil: there is no TLS
	Connections struct {
		TCP  int64 `json:"tcp"`
		QUIC int64 `json:"quic"`
	} `json:"connections"`
	Requests map[string]int64 `json:"requests"` // by protocol
	QUIC     struct {
		Handshakes int64 `json:"handshakes"`
		Resumed    int64 `json:"resumed"`
		Unfinished int64 `json:"unfinished"`
		Retries    int64 `json:"retries"`
	} `json:"quic"`
	EarlyData struct {
		On       bool  `json:"on"`
		Accepted int64 `json:"accepted"`
		Held     int64 `json:"held"`
		Refused  int64 `json:"refused"`
		Replayed int64 `json:"replayed"` // tickets
	} `json:"earlyData"`
}

// StatusPath is where it is, for a client whose root is the operator's API.
const StatusPath = "status"
