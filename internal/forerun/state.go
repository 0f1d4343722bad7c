package forerun

// Version is the version of a record: a number of one store-wide sequence (rule R11), so that it never
// comes back after a deletion. 0 stands for a record that is not there.
type Version uint64

// Key names a record: a space (one tenant's state, or a room of the platform) and a name within it.
type Key struct {
	Space string
	Name  string
}
