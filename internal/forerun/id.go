package forerun

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// ActivationID names one activation: 32 lower-case hex digits, as OpenWhisk's.
type ActivationID string

// NewActivationID returns a fresh id: 48 bits of a time in milliseconds and 80 random ones, as in a UUID of version 7.
// Records that are written one after the other so lie beside each other, which spares the store half of its sorting.
func NewActivationID(at time.Time) ActivationID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(at.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // crypto/rand.Read never fails (Go 1.24)
	return ActivationID(hex.EncodeToString(b[:]))
}

// ParseActivationID checks that s has the form of an activation id.
func ParseActivationID(s string) (ActivationID, error) {
	if len(s) != 32 {
		return "", Errorf(Invalid, "activation id", "The length of the activation id is %d but must be equal to 32.", len(s))
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", Errorf(Invalid, "activation id", "The activation id %q is not made of the digits 0-9 and a-f.", s)
		}
	}
	return ActivationID(s), nil
}
