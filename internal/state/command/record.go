package command

import (
	"bytes"
	"encoding/binary"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// How records lie in the byte-KV store (format 1). SPACE is escaped so that a space's keys are contiguous and in the order of names.
//
//	'm' SPACE name              -> type, version, expiry, and the payload: the data of a string, the shape of another type
//	'e' SPACE len name element  -> an element: a field's value, a list's item, a sorted set's score, nothing for a set's member
//	'o' SPACE len name score member -> nothing: the order of a sorted set's members
//	'x' expiry SPACE name       -> nothing: the index of expiries
const (
	metaPrefix    = 'm'
	elementPrefix = 'e'
	orderPrefix   = 'o'
	expiryPrefix  = 'x'
)

// escapeSpace appends a space so that none is the beginning of another and the order of bytes is kept.
func escapeSpace(b []byte, space string) []byte {
	for i := range len(space) {
		b = append(b, space[i])
		if space[i] == 0 {
			b = append(b, 0xff)
		}
	}
	return append(b, 0, 1)
}

// unescapeSpace is the inverse of escapeSpace; rest follows the space.
func unescapeSpace(b []byte) (space string, rest []byte, ok bool) {
	var s []byte
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 || i+1 >= len(b) {
			return "", nil, false
		}
		s = append(s, b[:i]...)
		switch b[i+1] {
		case 1:
			return string(s), b[i+2:], true
		case 0xff:
			s, b = append(s, 0), b[i+2:]
		default:
			return "", nil, false
		}
	}
}

// SplitKey finds the space of a key and the record's name in it. ok is false for keys that no space has, and for spaces whose names are escaped.
// The name is that of a record only if IsRecordKey says that the key is one.
func SplitKey(key []byte) (space, name []byte, ok bool) {
	at := 1
	if len(key) > 0 && key[0] == expiryPrefix {
		at = 1 + expirySize
	}
	if len(key) <= at {
		return nil, nil, false
	}
	switch key[0] {
	case metaPrefix, elementPrefix, orderPrefix, expiryPrefix:
	default:
		return nil, nil, false
	}
	rest := key[at:]
	end := bytes.IndexByte(rest, 0)
	if end < 0 || end+1 >= len(rest) || rest[end+1] != 1 {
		return nil, nil, false
	}
	return rest[:end], rest[end+2:], true
}

// RecordKey is where a record lies.
func RecordKey(k forerun.Key) []byte {
	return append(spaceKey(metaPrefix, k.Space, len(k.Name)), k.Name...)
}

func spaceKey(prefix byte, space string, more int) []byte {
	b := make([]byte, 0, 1+len(space)+2+more)
	return escapeSpace(append(b, prefix), space)
}

// RecordRange bounds the keys of a space's records whose names are in a range; an empty end is the space's.
func RecordRange(space, from, to string) (first, last []byte) {
	first = append(spaceKey(metaPrefix, space, len(from)), from...)
	if to != "" {
		return first, append(spaceKey(metaPrefix, space, len(to)), to...)
	}
	last = spaceKey(metaPrefix, space, 0)
	last[len(last)-1]++ // the terminator is followed by no key of this space
	return first, last
}

// ParseRecordKey is the inverse of RecordKey; ok is false for keys that are not those of records.
func ParseRecordKey(key []byte) (forerun.Key, bool) {
	if len(key) == 0 || key[0] != metaPrefix {
		return forerun.Key{}, false
	}
	space, name, ok := unescapeSpace(key[1:])
	return forerun.Key{Space: space, Name: string(name)}, ok
}

// DueRange bounds the keys of the index of expiries that are over at a time.
func DueRange(now time.Time) (first, last []byte) {
	return []byte{expiryPrefix}, expiryTime(now.UnixMilli())
}

// ParseExpiryKey finds the record that an entry of the index of expiries is about.
func ParseExpiryKey(key []byte) (forerun.Key, bool) {
	if len(key) < 9 || key[0] != expiryPrefix {
		return forerun.Key{}, false
	}
	space, name, ok := unescapeSpace(key[9:])
	return forerun.Key{Space: space, Name: string(name)}, ok
}

func expiryTime(ms int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{expiryPrefix}, uint64(ms))
}

// Layout of a record's head: type, version, whether there is an expiry, and the expiry.
const (
	versionAt  = 1
	expiringAt = versionAt + 8
	headSize   = expiringAt + 1
	expirySize = 8
)

// SetVersion writes the version into the stored form of a record, which commands leave at 0.
func SetVersion(stored []byte, v forerun.Version) {
	binary.BigEndian.PutUint64(stored[versionAt:], uint64(v))
}

// record is a record's head and payload, in memory.
type record struct {
	kind    state.Type
	version forerun.Version
	expires int64 // Unix milliseconds; 0: never
	indexed int64 // the expiry under which the index has it; 0: it has not
	payload []byte
}

func (r *record) exists() bool { return r.kind != state.Absent }

// gone says whether the record has expired at a time: as in Redis, the millisecond itself still belongs to it.
func (r *record) gone(now int64) bool { return r.expires != 0 && now > r.expires }

func (r *record) encode() []byte {
	b := make([]byte, headSize, headSize+expirySize+len(r.payload))
	b[0] = byte(r.kind)
	if r.expires != 0 {
		b[expiringAt] = 1
		b = binary.BigEndian.AppendUint64(b, uint64(r.expires))
	}
	return append(b, r.payload...)
}

// PlainSizes are the lengths of the key and of the stored form of a String record that never expires.
func PlainSizes(space string, name, data []byte) (key, stored int) {
	return 1 + len(space) + strings.Count(space, "\x00") + 2 + len(name), headSize + len(data)
}

// PutPlain writes the key and the stored form of such a record where there is room for them, as PlainSizes says. Its version stays 0.
// Without room for the stored form it writes the key alone.
func PutPlain(key, stored []byte, space string, name, data []byte) {
	copy(key[len(escapeSpace(append(key[:0], metaPrefix), space)):], name)
	if stored == nil {
		return
	}
	clear(stored[:headSize])
	stored[0] = byte(state.String)
	copy(stored[headSize:], data)
}

// decodeRecord is the inverse of encode; the payload is a part of b.
func decodeRecord(b []byte) (record, bool) {
	if len(b) < headSize || b[0] == byte(state.Absent) || b[0] > byte(state.SortedSet) {
		return record{}, false
	}
	r := record{kind: state.Type(b[0]), version: forerun.Version(binary.BigEndian.Uint64(b[versionAt:])), payload: b[headSize:]}
	if b[expiringAt] == 0 {
		return r, true
	}
	if len(r.payload) < expirySize {
		return record{}, false
	}
	r.expires = int64(binary.BigEndian.Uint64(r.payload))
	r.indexed = r.expires
	r.payload = r.payload[expirySize:]
	return r, b[expiringAt] == 1 && r.expires != 0
}

// Decode makes the public form of a stored record at a time: an expired one is absent. Data is a part of b.
// The error is forerun.Internal.
func Decode(b []byte, now time.Time) (state.Record, error) {
	r, ok := decodeRecord(b)
	if !ok {
		return state.Record{}, ErrDamaged
	}
	if r.gone(now.UnixMilli()) {
		return state.Record{}, nil
	}
	out := state.Record{Version: r.version, Type: r.kind}
	if r.kind == state.String {
		out.Data = r.payload
	}
	if r.expires != 0 {
		out.Expires = time.UnixMilli(r.expires)
	}
	return out, nil
}

// ErrDamaged says that a record is not what was stored.
var ErrDamaged = forerun.Errorf(forerun.Internal, "state", "A stored record is damaged. Restore the data folder from a backup.")

// IsRecordKey says whether a key is that of a record.
func IsRecordKey(key []byte) bool { return len(key) > 0 && key[0] == metaPrefix }

// Reclaim removes a record that has expired, and an entry of the index of expiries that led to it.
func Reclaim(o *Overlay, k forerun.Key, entry []byte, now time.Time) error {
	err := Sweep(o, k, now)
	o.Delete(entry)
	return err
}

// Sweep removes a record if it has expired.
func Sweep(o *Overlay, k forerun.Key, now time.Time) error {
	t := txn{overlay: o, spec: table["del"], space: k.Space, now: now.UnixMilli()}
	t.load([]byte(k.Name)) // a command that writes sweeps it away
	return t.err
}

// splitCollectionKey takes apart what follows the space in the key of an element or of an order.
func splitCollectionKey(b []byte) (name, rest []byte) {
	if len(b) < 4 {
		return nil, nil
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return nil, nil
	}
	return b[:n:n], b[n:]
}
