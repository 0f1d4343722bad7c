package openwhisk

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Bounds of what is kept of servers.
const (
	ticketLife  = 2 * time.Hour    // a server knows its tickets for so long
	maxTickets  = 8                // of a server
	blockedTime = 10 * time.Minute // without another try of UDP
)

// tickets keeps what the next connections to one server need to send early data, in files of the user's cache folder. Each file is one ticket,
// for its owner alone. It is used once: a process takes it by renaming it, which one process can. Another file notes that UDP does not reach the
// server. Where the files cannot be written, they are missing.
type tickets struct {
	folder string
	server string
}

// ticket is a session of before, and how long a round trip took.
type ticket struct {
	Ticket, State []byte
	RTT           time.Duration
}

func ticketsOf(address, ca string) tickets {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = "" // no file can be written there
	}
	name := sha256.Sum256([]byte(address + "\n" + ca))
	return tickets{folder: filepath.Join(cache, "forerun", "quic-go"), server: hex.EncodeToString(name[:16])}
}

// put keeps a session.
func (t tickets) put(session *tls.ClientSessionState, rtt time.Duration) {
	sealed, state, err := session.ResumptionState()
	if err != nil || state == nil {
		return
	}
	text, err := state.Bytes()
	if err != nil {
		return
	}
	content, err := json.Marshal(ticket{Ticket: sealed, State: text, RTT: rtt})
	if err != nil {
		return
	}
	if all := t.all(); len(all) >= maxTickets {
		for _, old := range all[maxTickets-1:] {
			_ = os.Remove(old) // another process may have taken it
		}
	}
	t.write(t.server+"-"+rand.Text(), content)
}

// take takes the newest session, which no other call gets. It returns nil if there is none.
func (t tickets) take() (*tls.ClientSessionState, time.Duration) {
	for _, path := range t.all() {
		info, err := os.Stat(path)
		taken := path + "." + rand.Text()
		if err != nil || os.Rename(path, taken) != nil {
			continue // another process was faster
		}
		content, err := os.ReadFile(taken)
		_ = os.Remove(taken) // it is void in any case
		var kept ticket
		if err != nil || json.Unmarshal(content, &kept) != nil || time.Since(info.ModTime()) > ticketLife {
			continue
		}
		state, err := tls.ParseSessionState(kept.State)
		if err != nil {
			continue
		}
		if session, err := tls.NewResumptionState(kept.Ticket, state); err == nil {
			return session, kept.RTT
		}
	}
	return nil, 0
}

// block notes that UDP does not reach the server.
func (t tickets) block() { t.write(t.server+".blocked", nil) }

// blocked reports whether UDP did not reach the server in the last ten minutes.
func (t tickets) blocked() bool {
	info, err := os.Stat(filepath.Join(t.folder, t.server+".blocked"))
	return err == nil && time.Since(info.ModTime()).Abs() < blockedTime
}

// all lists the tickets, the newest first.
func (t tickets) all() []string {
	found, _ := filepath.Glob(filepath.Join(t.folder, t.server+"-*")) // the pattern is well formed
	found = slices.DeleteFunc(found, func(path string) bool { return filepath.Ext(path) != "" })
	times := make(map[string]time.Time)
	for _, path := range found {
		if info, err := os.Stat(path); err == nil {
			times[path] = info.ModTime()
		}
	}
	slices.SortFunc(found, func(a, b string) int { return times[b].Compare(times[a]) })
	return found
}

// write writes a file as a whole, for its owner alone.
func (t tickets) write(name string, content []byte) {
	if os.MkdirAll(t.folder, 0o700) != nil {
		return
	}
	path := filepath.Join(t.folder, name)
	unfinished := path + "." + rand.Text()
	if os.WriteFile(unfinished, content, 0o600) != nil || os.Rename(unfinished, path) != nil {
		_ = os.Remove(unfinished) // it may not be there
	}
}
