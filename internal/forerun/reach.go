package forerun

// Reach is how far an execution reached beyond the records of its tenant.
type Reach byte

// The kinds of reach. A smaller one is further.
const (
	Outside   Reach = iota // to the outside; or that is not known
	ReadHosts              // to hosts that its action only reads from, and no others
	Inside                 // not to the outside
)
