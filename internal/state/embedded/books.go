package embedded

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// Accounting tells the store whose records are, and how much each tenant may store. The zero value counts nothing.
type Accounting struct {
	// Owner finds the tenant to whom a record of a space belongs, and the part of what the tenant stores that it is of. Elements of
	// collections have names that begin otherwise. No tenant: the record counts for none. It must not keep what it is given.
	Owner func(space, name []byte) (tenant []byte, part state.Part)
	// Allowed is how much a tenant may store. It must not call the store.
	Allowed func(tenant string) state.Allowance
}

// How the accounts are kept. Each change of a record changes its tenant's account in memory, in the step that enters the log. The log gets
// the account when it has changed by saveEvery, and when the store is closed. A store that was not closed counts its records again after it
// is opened, beside its work: until then an account may be wrong by saveEvery.
const (
	saveEvery     = 64 << 10              // bytes
	recountAtOnce = 10 * time.Millisecond // of work, then it rests as long
)

// countedKey says that the store was closed, so all accounts are right. accountPrefix begins the keys of the accounts.
var (
	countedKey    = []byte("s/counted")
	accountPrefix = []byte("s/stored/")
)

// books are the accounts of all tenants.
type books struct {
	Accounting
	accounts atomic.Pointer[map[string]*account] // by tenant; replaced, never changed
	opening  sync.Mutex                          // held while an account is added
	counted  atomic.Bool                         // the accounts are exact
}

// account is what one tenant stores.
type account struct {
	tenant  string
	parts   [state.Parts]atomic.Int64 // written while commits.mu is held
	unsaved int64                     // bytes by which parts have changed since the log got them; guarded by commits.mu
}

func (a *account) stored() (s state.Stored) {
	for i := range s {
		s[i] = max(0, a.parts[i].Load()) // it can be below 0 until all is counted again
	}
	return s
}

// save adds the account to a batch.
func (a *account) save(b *pebble.Batch) error {
	a.unsaved = 0
	key := append(bytes.Clone(accountPrefix), a.tenant...)
	var value []byte
	for i := range a.parts {
		value = binary.AppendVarint(value, a.parts[i].Load())
	}
	if a.stored() == (state.Stored{}) {
		return b.Delete(key, nil)
	}
	return b.Set(key, value, nil)
}

// openBooks reads the accounts, and has them counted again if the store was not closed.
func (s *Store) openBooks(a Accounting) error {
	if a.Owner == nil {
		return nil
	}
	s.books = &books{Accounting: a}
	accounts, short := make(map[string]*account), false
	err := reader{db: s.db}.Scan(accountPrefix, append(bytes.Clone(accountPrefix), 0xff), false, func(key, value []byte) bool {
		acc := &account{tenant: string(key[len(accountPrefix):])}
		for i := range acc.parts {
			n, size := binary.Varint(value)
			if size <= 0 {
				short = true // damaged, or of a version that told fewer parts apart
				break
			}
			acc.parts[i].Store(n)
			value = value[size:]
		}
		accounts[acc.tenant] = acc
		return true
	})
	if err != nil {
		return err
	}
	s.books.accounts.Store(&accounts)
	_, counted, err := reader{db: s.db}.Get(countedKey)
	if err != nil {
		return err
	}
	s.books.counted.Store(counted && !short)
	if !s.books.counted.Load() {
		s.behind.Go(s.recount)
	}
	if !counted {
		return nil
	}
	if err := s.db.Delete(countedKey, pebble.NoSync); err != nil {
		return broken(err)
	}
	return nil
}

// of finds the account that the pair of a key belongs to; nil if there is none.
func (b *books) of(key []byte) (*account, state.Part) {
	space, name, ok := command.SplitKey(key)
	if !ok {
		return nil, 0
	}
	tenant, part := b.Owner(space, name)
	if len(tenant) == 0 {
		return nil, 0
	}
	if a := (*b.accounts.Load())[string(tenant)]; a != nil {
		return a, part
	}
	return b.open(string(tenant)), part
}

func (b *books) open(tenant string) *account {
	b.opening.Lock()
	defer b.opening.Unlock()
	old := *b.accounts.Load()
	if a := old[tenant]; a != nil {
		return a
	}
	accounts := maps.Clone(old)
	accounts[tenant] = &account{tenant: tenant}
	b.accounts.Store(&accounts)
	return accounts[tenant]
}

// bill is by how much a batch changes accounts.
type bill struct {
	books   *books
	entries []entry
	room    [2]entry // for those of most batches
}

type entry struct {
	account *account
	part    state.Part
	bytes   int64
}

// add notes that the pair of a key takes so many bytes more.
func (b *bill) add(key []byte, bytes int64) {
	if bytes == 0 || b.books == nil {
		return
	}
	a, part := b.books.of(key)
	if a == nil {
		return
	}
	for i := range b.entries {
		if e := &b.entries[i]; e.account == a && e.part == part {
			e.bytes += bytes
			return
		}
	}
	if b.entries == nil {
		b.entries = b.room[:0]
	}
	b.entries = append(b.entries, entry{a, part, bytes})
}

// clear notes that the pairs of a range are removed, and returns how many bytes they take.
func (b *bill) clear(stored command.Reader, from, to []byte) (size int64, err error) {
	if b.books == nil {
		return 0, nil
	}
	err = stored.Scan(from, to, false, func(key, value []byte) bool {
		pair := int64(len(key) + len(value))
		b.add(key, -pair)
		size += pair
		return true
	})
	return size, err
}

// enter changes the accounts, and puts into the batch those that have changed by much. The caller holds commits.mu.
func (b *bill) enter(batch *pebble.Batch) error {
	for _, e := range b.entries {
		e.account.parts[e.part].Add(e.bytes)
		if e.account.unsaved += max(e.bytes, -e.bytes); e.account.unsaved < saveEvery {
			continue
		}
		if err := e.account.save(batch); err != nil {
			return err
		}
	}
	return nil
}

// admit refuses a batch by which a tenant would store more than it may. One that stores no more than before is never refused, and
// records of activations are not: they are of what was admitted, and the oldest are removed. The error is forerun.OverQuota.
func (b *bill) admit(room *room) error {
	for i, e := range b.entries {
		growth := int64(0)
		for j, other := range b.entries {
			if other.account != e.account || other.part == state.Records {
				continue
			}
			if j < i {
				growth = 0 // it was admitted with that one
				break
			}
			growth += other.bytes
		}
		if growth <= 0 {
			continue
		}
		stored := e.account.stored()
		most := b.books.most(e.account.tenant, stored, room)
		counts := stored.Total() - max(0, stored[state.Records]-most/state.RecordsPart)
		if counts+growth > most {
			return overQuota(e.account.tenant, stored, growth, most)
		}
	}
	return nil
}

func overQuota(tenant string, stored state.Stored, growth, most int64) error {
	return forerun.Errorf(forerun.OverQuota, "storage", "The tenant %s may store %s, stores %s (%s), and this would add %s. Delete something first, or ask the operator for a larger quota.",
		tenant, state.Bytes(most), state.Bytes(stored.Total()), stored, state.Bytes(growth))
}

// most is how many bytes a tenant may store that stores so much.
func (b *books) most(tenant string, stored state.Stored, room *room) int64 {
	allowed, most := b.Allowed(tenant), int64(math.MaxInt64)
	if allowed.Bytes >= 0 {
		most = allowed.Bytes
	}
	if left := room.left(); allowed.Share > 0 && left >= 0 {
		most = min(most, (left+stored.Total())/100*int64(allowed.Share))
	}
	return most
}

// Stored tells what a tenant stores, and how many bytes it may store; math.MaxInt64 if nothing bounds it.
func (s *Store) Stored(tenant string) (stored state.Stored, most int64) {
	if s.books == nil {
		return stored, math.MaxInt64
	}
	if a := (*s.books.accounts.Load())[tenant]; a != nil {
		stored = a.stored()
	}
	return stored, s.books.most(tenant, stored, s.room)
}

// recount makes the accounts exact: it counts what is stored at one moment, and adds to each account by how much it was wrong at that
// moment.
func (s *Store) recount() {
	snapshot, before := s.accountsNow()
	counted, err := s.count(snapshot)
	if closeErr := snapshot.Close(); err != nil || closeErr != nil {
		return // the store is closing, or damaged: the next start counts
	}
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	batch := s.db.NewBatch()
	for tenant, a := range *s.books.accounts.Load() {
		for i := range a.parts {
			a.parts[i].Add(counted[tenant][i] - before[tenant][i])
		}
		if a.save(batch) != nil {
			return
		}
	}
	if s.db.Apply(batch, pebble.NoSync) == nil {
		s.books.counted.Store(true)
	}
}

// accountsNow takes a snapshot, and the accounts at the same moment.
func (s *Store) accountsNow() (*pebble.Snapshot, map[string]state.Stored) {
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	accounts := make(map[string]state.Stored)
	for tenant, a := range *s.books.accounts.Load() {
		var parts state.Stored
		for i := range parts {
			parts[i] = a.parts[i].Load()
		}
		accounts[tenant] = parts
	}
	return s.db.NewSnapshot(), accounts
}

// count counts what a snapshot holds. It takes half of a processor.
func (s *Store) count(snapshot *pebble.Snapshot) (map[string]state.Stored, error) {
	counted := make(map[string]state.Stored)
	since := time.Now()
	stopped := false
	err := reader{db: snapshot}.Scan(nil, nil, false, func(key, value []byte) bool {
		if a, part := s.books.of(key); a != nil {
			parts := counted[a.tenant]
			parts[part] += int64(len(key) + len(value))
			counted[a.tenant] = parts
		}
		worked := time.Since(since)
		if worked < recountAtOnce {
			return true
		}
		select {
		case <-s.stop:
			stopped = true
		case <-time.After(worked):
		}
		since = time.Now()
		return !stopped
	})
	if stopped {
		err = errStopped
	}
	return counted, err
}

// close puts the accounts on disk, when no call is at work any more.
func (b *books) close(s *Store) {
	if b == nil || !b.counted.Load() || s.disk.failure() != nil {
		return
	}
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	batch := s.db.NewBatch()
	for _, a := range *b.accounts.Load() {
		if a.unsaved > 0 && a.save(batch) != nil {
			return
		}
	}
	if batch.Set(countedKey, nil, nil) == nil {
		_ = s.db.Apply(batch, pebble.NoSync) // if it fails, the next start counts
	}
}
