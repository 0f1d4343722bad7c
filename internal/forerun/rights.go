package forerun

// Rights are what the bearer of credentials may do with a namespace.
type Rights uint8

// The rights.
const (
	// MayRead is the right to read entities with code and secrets, lists, activation records and logs.
	MayRead Rights = 1 << iota
	// MayInvoke is the right to invoke actions, to fire triggers, and to read the record of an activation by its id.
	MayInvoke
	// MayChange is the right to create, change and delete entities.
	MayChange

	// AllRights are those of a tenant's own key.
	AllRights = MayRead | MayInvoke | MayChange
)

// Any reports whether one of the other rights is among the rights.
func (r Rights) Any(other Rights) bool { return r&other != 0 }
