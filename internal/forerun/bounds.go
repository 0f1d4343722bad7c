package forerun

// Bounds are what a server lets any action have and any activation carry, whoever's it is. What an action itself asks for
// is in Limits.
type Bounds struct {
	Timeout   int // milliseconds, the most that an action may ask for
	Memory    int // MiB, the same
	Logs      int // MiB, the same
	Payload   int // bytes of an activation's input, and of its result
	Code      int // bytes of an action's code, in base64 if it is binary
	Unpacked  int // MiB that an archive may extract to
	Processes int // processes and threads of a sandbox
	Tmp       int // MiB of a sandbox's /tmp, which count as its memory
}

// DefaultBounds are those of a server that was told of no others.
func DefaultBounds() Bounds {
	return Bounds{
		Timeout: 3_600_000, Memory: 512, Logs: 10, Payload: 6 << 20, Code: 48 << 20, Unpacked: 512, Processes: 256, Tmp: 512,
	}
}
