// Package sandbox says what an isolated environment of one action is: the
// Maker and Sandbox contracts, whose implementation with Linux namespaces is
// in native, and whose suite is in sandboxtest.
//
// A sandbox holds one initializer, the first process in it, which loads the
// action's code and forks a handler for each activation. It has no network but
// a loopback with the doors; its root is an allow-list of read-only binds over
// a tmpfs.
package sandbox

import (
	"context"
	"net"
	"os"
	"time"

	"forerun.dev/forerun/internal/egress"
)

// Spec describes a sandbox to make.
type Spec struct {
	ID        string   // unique in this process, [a-z0-9-]{1,40}
	Owner     string   // whose it is: who has many has no more of the host's ports than are left for others; may be empty
	Argv      []string // the initializer's command, an absolute path as seen inside and arguments; it starts in /tmp
	Env       []string // its whole environment; HOME=/tmp is added if it has none
	Files     []File   // small files put into the root, read-only, before the start
	Binds     []Bind   // besides the base system: the language's own folders
	MemoryMiB int      // limit of all processes together
	CPUWeight int      // share of the processors while all sandboxes want them, 1 to 10000; 0: DefaultCPUWeight
	Processes int      // limit of processes and threads
	TmpMiB    int      // size of /tmp, and of /dev/shm
	CodeMiB   int      // size of /action, the one folder the initializer may write its code to
	Launcher  bool     // the initializer executes nothing of the action, and processes that it starts share nothing through it
}

// File is a file that the sandbox sees at Path.
type File struct {
	Path string
	Data []byte
	Mode uint32
}

// Bind shows the host's folder or file Host at Inside, read-only. A missing Host is an error, and so is one that the
// maker was not allowed to show when it was made.
type Bind struct{ Host, Inside string }

// Doors a sandbox has, each a listener on its own loopback that the maker's caller accepts on.
const (
	DoorState = "state" // RESP, 127.0.0.1:6379
	DoorAPI   = "api"   // HTTP, 127.0.0.1:3233
)

// Sandbox is a running sandbox. Its methods may be called concurrently.
type Sandbox interface {
	// Control is the stream to the initializer (its descriptor 3), which can pass descriptors. Owned by the sandbox.
	Control() *net.UnixConn
	// Output returns the read ends of the standard output and error of all processes inside. Owned by the sandbox;
	// non-blocking.
	Output() (stdout, stderr *os.File)
	// Door returns the listener of a door. Owned by the sandbox.
	Door(name string) net.Listener
	// Denied says that Refused has something to tell; never closed.
	Denied() <-chan struct{}
	// Refused returns a sentence for each outside connection that the egress policy refused since it was asked last: of those that
	// a process inside knows of, none is missing. Of many some are left out.
	Refused() []string
	// Reset ends an activation: kills every process but the initializer and the processes in keep (host ids, the
	// spare handler), and empties the folders that handlers can write but /action. When it returns nothing of them is
	// left, connections and unanswered datagrams to the outside included. killed is how many processes there were. After
	// an error the sandbox must be closed.
	Reset(ctx context.Context, keep ...int) (killed int, err error)
	// Strike is a Reset that returns as soon as no process that it kills executes anything any more, or ever will: while the
	// kernel takes back what those have, if that is little. Until then their ends of connections with the doors are open, and
	// other Resets and Holds know nothing of them.
	Strike(ctx context.Context, keep ...int) error
	// Limit changes limits that the sandbox was made with, at once. It does nothing where the maker enforces none. A memory limit
	// below what the sandbox uses has its processes killed.
	Limit(ctx context.Context, l Limits) error
	// Hold has all that processes inside send to the outside wait from now on: connections, datagrams and questions for
	// names, but for those to hosts ("name", "name:port", "address", "address:port"), which only read from them. What waits when a
	// Reset comes is gone.
	Hold(ctx context.Context, hosts []string) (Held, error)
	// Release lets go what waits, and whatever is sent from now on. It returns for how long the first call that waits has; datagrams
	// have nobody wait.
	Release(ctx context.Context) (waited time.Duration, err error)
	// Reached reports whether anything has waited of what processes sent to the outside since the last Hold; datagrams only if they are
	// more than are to wait.
	Reached() bool
	// Confine has processes inside reach only what all these lists name, besides what the maker's policy lets them reach: connections,
	// datagrams and questions for names. It is to be called before anything inside can ask for more.
	Confine(ctx context.Context, lists egress.Lists) error
	// Permit makes connections to these hosts, and questions for their names, count as reads from now on, as Hold does.
	Permit(ctx context.Context, hosts []string) error
	// Asked is what processes inside have asked of the outside since the start. What a process asked for before it sent its result is
	// counted when that has been received. After Close it is not known.
	Asked() (asked Asked, known bool)
	// Flooded says that more datagrams came since the last Hold than are to wait; never closed. Those that come in the next moment wait, too.
	Flooded() <-chan struct{}
	// TakeHeld takes out the datagrams that wait, of an activation that has ended without waiting for them; nil if there are none.
	// send sends them, whatever the sandbox does meanwhile. Nobody hears an answer. Those that need not wait are on their way when it returns.
	TakeHeld() (send func())
	// Seal makes /action read-only for good. sealed is false if a process has a file there open for writing: then it never is.
	Seal(ctx context.Context) (sealed bool, err error)
	// Reachable reports whether other processes inside can connect to one of some processes (host ids), or send to it: it listens, has a
	// Unix socket with a name, or one for datagrams.
	Reachable(ctx context.Context, pids ...int) (bool, error)
	// Memory is what the sandbox has of memory, in bytes; 0 where that is not measured.
	Memory() (bytes int64, err error)
	// OOMKills is how many processes were killed because the memory limit was reached.
	OOMKills() (int, error)
	// Spent is what all processes inside have taken of the processors; 0 where that is not measured.
	Spent() (time.Duration, error)
	// Close kills the sandbox and removes every trace of it.
	Close() error
	// Done is closed when the initializer has ended, for whatever reason.
	Done() <-chan struct{}
}

// Limits are those that a running sandbox can be given; what is 0, or empty, stays as it is.
type Limits struct {
	Owner     string // whose it is from now on
	MemoryMiB int    // of all processes together
	CPUWeight int    // share of the processors while all sandboxes want them, 1 to 10000
}

// DefaultCPUWeight is the share of a sandbox of which nothing else is said.
const DefaultCPUWeight = 100

// Held is what a Hold cannot hold back.
type Held struct {
	Connected bool // a process inside, but the initializer, has a connection to the outside that was made before, on which it may send
	// Shared: the initializer has something that processes which it forks can change for one another: writable memory that
	// they share, files open for writing, pipes, what counts or waits for events.
	Shared bool
}

// Asked counts connections that were asked for, datagrams that were sent and questions for names, the refused ones included.
type Asked struct {
	Reads  uint32 // of hosts that were given to Hold or Permit
	Others uint32 // of all others
}

// Maker makes sandboxes. It may be called concurrently.
type Maker interface {
	// Start makes a sandbox and starts its initializer. It returns when the doors are open and the initializer is executing.
	Start(ctx context.Context, s Spec) (Sandbox, error)
	// Enforced says, for the start's report, what this machine and user let the maker enforce and what not.
	Enforced() []Enforcement
	// Spent is what all sandboxes, and the maker for them, have taken of the processors since it began; known is false if that is
	// not measured here.
	Spent() (d time.Duration, known bool)
	// Close closes every sandbox.
	Close() error
}

// Enforcement is one protection and whether it is in force here.
type Enforcement struct {
	What string // "memory limit"
	On   bool
	Why  string // if not
}
