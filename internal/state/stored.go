package state

import (
	"fmt"
	"strings"
)

// Part is a part of what a tenant stores.
type Part int

// The parts.
const (
	Values   Part = iota // the state of its functions
	Entities             // actions, packages, triggers and rules, with their parameters and annotations
	Code                 // of its actions
	Records              // of its activations
	Keys                 // of requests that are carried out once
	Parts    int  = iota // how many there are
)

// RecordsPart is the part of what a tenant may store up to which records of activations count, as 1/RecordsPart: the oldest of more are removed.
const RecordsPart = 4

// Stored is how many bytes of keys and values a tenant stores, by Part.
type Stored [Parts]int64

// Total is what all parts take.
func (s Stored) Total() (bytes int64) {
	for _, part := range s {
		bytes += part
	}
	return bytes
}

// String tells what each part takes.
func (s Stored) String() string {
	var b strings.Builder
	for i, name := range [Parts]string{"state", "entities", "code", "activation records", "idempotency keys"} {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + " " + Bytes(s[i]))
	}
	return b.String()
}

// Bytes writes an amount for people.
func Bytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Allowance is how much a tenant may store.
type Allowance struct {
	Bytes int64 // negative: any number
	Share int   // percent of the room on the disk that is free or the tenant's; 0: no share bounds it
}
