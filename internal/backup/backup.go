// Package backup is the form of a backup: a store's pairs of keys and values as
// of one moment, in one compressed stream.
//
// It promises that a stream that was cut, changed or lengthened is told from a
// whole one: Read calls its function with what it finds, and returns nil only if
// all that Write wrote was there.
//
// The form: Magic; then, compressed with zstd, a line of JSON (Header), the pairs
// (the key's length plus one, the key, the value's length, the value), a zero, the
// number of pairs, and the SHA-256 of all that came before it in the compressed
// part. Numbers are unsigned varints.
package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"iter"
	"time"

	"github.com/klauspost/compress/zstd"

	"forerun.dev/forerun/internal/forerun"
)

// Magic begins a backup.
const Magic = "forerun backup\n"

// format is the form that this code writes, and the newest that it reads.
const format = 1

const (
	maxHeader = 64 << 10
	maxPart   = 1 << 30 // bytes of a key or of a value
	window    = 1 << 20 // what zstd looks back at, which is what it takes in memory
)

// Header says what a backup is of.
type Header struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	Version string    `json:"version"` // of the Forerun that wrote it
}

// Pair is a key with its value.
type Pair struct{ Key, Value []byte }

// Summary is what Read has found.
type Summary struct {
	Header
	Pairs uint64
	Bytes uint64 // of keys and values
}

// Write writes a backup of pairs, whose error it returns; the header's format is set.
func Write(w io.Writer, h Header, pairs iter.Seq2[Pair, error]) error {
	if _, err := io.WriteString(w, Magic); err != nil {
		return err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return err
	}
	b := &writer{Writer: bufio.NewWriterSize(z, 64<<10), sum: sha256.New()}
	h.Format = format
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	b.write(append(head, '\n'))
	n := uint64(0)
	for p, err := range pairs {
		if err != nil {
			return errors.Join(err, z.Close())
		}
		b.number(uint64(len(p.Key)) + 1)
		b.write(p.Key)
		b.number(uint64(len(p.Value)))
		b.write(p.Value)
		n++
		if b.err != nil {
			break
		}
	}
	b.number(0)
	b.number(n)
	b.write(b.sum.Sum(nil))
	return errors.Join(b.err, b.Flush(), z.Close())
}

// writer writes and sums up. Its first error is kept.
type writer struct {
	*bufio.Writer
	sum hash.Hash
	err error
}

func (w *writer) write(p []byte) {
	w.sum.Write(p)
	if w.err == nil {
		_, w.err = w.Write(p)
	}
}

func (w *writer) number(n uint64) { w.write(binary.AppendUvarint(nil, n)) }

// Read reads a backup to its end and calls f with each pair, whose slices are valid only until it returns. What f was
// called with counts only if the error is nil; else it is f's, forerun.Invalid (this is no backup, or it is damaged) or
// Unsupported (it was written by a newer Forerun).
func Read(r io.Reader, f func(Pair) error) (Summary, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	magic := make([]byte, len(Magic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != Magic {
		return Summary{}, forerun.Errorf(forerun.Invalid, "", "This is not a backup of Forerun: `forerun backup` writes them.")
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return Summary{}, damaged(err)
	}
	defer z.Close()
	d := &reader{Reader: bufio.NewReaderSize(z, 64<<10), sum: sha256.New()}
	s, err := d.header()
	if err != nil {
		return s, err
	}
	if err := d.pairs(&s, f); err != nil {
		return s, err
	}
	return s, d.end(s.Pairs)
}

func damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return forerun.Errorf(forerun.Invalid, "", "The backup ends too early: it was not written or copied whole. Take another.")
	}
	return forerun.Errorf(forerun.Invalid, "", "The backup is damaged: %w. Take another.", err)
}

var errForm = errors.New("it is not in the form of a backup")

// reader reads and sums up.
type reader struct {
	*bufio.Reader
	sum  hash.Hash
	room bytes.Buffer // that of key and value
}

func (r *reader) header() (Summary, error) {
	var line []byte
	for len(line) < maxHeader {
		c, err := r.ReadByte()
		if err != nil {
			return Summary{}, damaged(err)
		}
		if line = append(line, c); c == '\n' {
			break
		}
	}
	r.sum.Write(line)
	var s Summary
	if err := json.Unmarshal(line, &s.Header); err != nil {
		return s, damaged(errForm)
	}
	if s.Format > format || s.Format < 1 {
		return s, forerun.Errorf(forerun.Unsupported, "", "The backup was written by a newer Forerun (%s; its form is %d, this one reads up to %d). Restore it with that version.", s.Version, s.Format, format)
	}
	return s, nil
}

func (r *reader) pairs(s *Summary, f func(Pair) error) error {
	for {
		n, err := r.number()
		if err != nil {
			return damaged(err)
		}
		if n == 0 {
			return nil
		}
		r.room.Reset()
		if err := r.part(n - 1); err != nil {
			return damaged(err)
		}
		size, err := r.number()
		if err == nil {
			err = r.part(size)
		}
		if err != nil {
			return damaged(err)
		}
		both := r.room.Bytes()
		s.Pairs++
		s.Bytes += uint64(len(both))
		if err := f(Pair{both[:n-1], both[n-1:]}); err != nil {
			return err
		}
	}
}

func (r *reader) number() (uint64, error) {
	n, err := binary.ReadUvarint(r.Reader)
	r.sum.Write(binary.AppendUvarint(nil, n))
	return n, err
}

// part reads n bytes. It takes no more memory than comes in.
func (r *reader) part(n uint64) error {
	if n > maxPart {
		return errForm
	}
	begin := r.room.Len()
	if _, err := io.CopyN(&r.room, r.Reader, int64(n)); err != nil {
		return err
	}
	r.sum.Write(r.room.Bytes()[begin:])
	return nil
}

// end checks what follows the pairs.
func (r *reader) end(pairs uint64) error {
	n, err := r.number()
	if err != nil {
		return damaged(err)
	}
	want := r.sum.Sum(nil)
	sum := make([]byte, sha256.Size)
	if _, err := io.ReadFull(r.Reader, sum); err != nil {
		return damaged(err)
	}
	if n != pairs || !bytes.Equal(sum, want) {
		return damaged(errors.New("its checksum is wrong"))
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged(errForm)
	}
	return nil
}
