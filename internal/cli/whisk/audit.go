package whisk

import "time"

// AuditEntry is a line of the server's audit log, as the operator's API shows it.
type AuditEntry struct {
	Time      time.Time `json:"time"`
	Who       string    `json:"who"`
	Namespace string    `json:"namespace"`
	Action    string    `json:"action"`
	Object    string    `json:"object"`
	Status    int       `json:"status"`
	Detail    string    `json:"detail"`
	Peer      string    `json:"peer"`
	Forwarded string    `json:"forwardedFor"`
	LeftOut   int       `json:"leftOut"`
}

// AuditPath is where the log is, for a client whose root is the operator's API.
const AuditPath = "audit"
