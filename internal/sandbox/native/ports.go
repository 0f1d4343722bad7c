package native

import "sync"

// portsAtMost bounds the host's ports that datagrams of all sandboxes go out from. An owner may have as many as are left for others.
const portsAtMost = 16 << 10

// ports counts them, by the owners of the sandboxes.
type ports struct {
	mu   sync.Mutex // guards the rest
	used map[string]int
	all  int
}

func newPorts() *ports { return &ports{used: make(map[string]int)} }

// take counts one more, if the owner may have it.
func (p *ports) take(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used[owner]+1 > portsAtMost-(p.all+1) {
		return false
	}
	p.used[owner]++
	p.all++
	return true
}

// give counts one less.
func (p *ports) give(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.used[owner]--; p.used[owner] == 0 {
		delete(p.used, owner)
	}
}
