package microtasks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
)

// The records have the form of gensort's: 100 bytes, of which the first 10 are the key.
const (
	recordSize = 100
	keySize    = 10
	parts      = 32
)

// generate makes n records from a seed, in the manner of gensort: a random key, and the number of the record.
func generate(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 100))
	data := make([]byte, n*recordSize)
	for i := range n {
		record := data[i*recordSize : (i+1)*recordSize]
		binary.BigEndian.PutUint64(record, r.Uint64())
		binary.BigEndian.PutUint16(record[8:], uint16(r.Uint32()))
		copy(record[keySize:], fmt.Sprintf("%020d-%020d", seed, i))
	}
	return data
}

// sum adds up the checksums of records, in whatever order they are.
func sum(data []byte) (total uint64) {
	for at := 0; at+recordSize <= len(data); at += recordSize {
		total += uint64(crc32.ChecksumIEEE(data[at : at+recordSize]))
	}
	return total
}

// validate checks, in the manner of valsort, that the outputs are all records in order: how many there are, their checksum, their keys.
func validate(outputs [][]byte, n int, checksum uint64) error {
	last, count, total := []byte(nil), 0, uint64(0)
	for i, data := range outputs {
		if len(data)%recordSize != 0 {
			return fmt.Errorf("output %d has %d bytes", i, len(data))
		}
		for at := 0; at < len(data); at += recordSize {
			key := data[at : at+keySize]
			if bytes.Compare(last, key) > 0 {
				return fmt.Errorf("record %d of output %d is out of order", at/recordSize, i)
			}
			last = key
		}
		count += len(data) / recordSize
		total += sum(data)
	}
	if count != n || total != checksum {
		return fmt.Errorf("%d records with the checksum %x came out, of %d with %x", count, total, n, checksum)
	}
	return nil
}
