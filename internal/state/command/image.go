package command

import (
	"bytes"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Image is a state.Image: a record in its stored form, without its name. What is in it is decoded when a command looks.
// Images share what they have in common.
type Image struct {
	version  forerun.Version // the store's (0: absent), or, of what a command made, one that the store has not
	stored   []byte          // head and payload; nil: absent
	elements pages
	order    pages
}

var _ state.Image = (*Image)(nil)

// imageCost is what an image takes beside the bytes of its record.
const imageCost = 128

// Absent tells whether there is no such record.
func (i *Image) Absent() bool { return i.stored == nil }

// Size is about how many bytes the image takes.
func (i *Image) Size() int {
	return imageCost + len(i.stored) + i.elements.bytes() + i.order.bytes()
}

// Bounds of what one TakeImages copies: what is larger takes so long that it is better done at its place.
const (
	maxImages   = 32 << 20 // bytes
	maxElements = 20_000
)

// TakeImages reads images of records from a store that does not change meanwhile, at a time. The error is that of the
// store, or forerun.TooLarge.
func TakeImages(r Reader, now time.Time, keys []forerun.Key) ([]state.Fetched, error) {
	fetched := make([]state.Fetched, len(keys))
	size, elements := 0, 0
	for n, k := range keys {
		image, err := takeImage(r, now, k, maxImages-size, maxElements-elements)
		if err != nil {
			return nil, err
		}
		size += image.Size()
		elements += image.elements.n
		fetched[n] = state.Fetched{Image: image, Version: image.version}
	}
	return fetched, nil
}

// TakeWhole reads the image of a record that is a single entry of the store, which may change meanwhile: of a String, or of none. ok is
// false if it has more than that.
func TakeWhole(r Reader, now time.Time, k forerun.Key) (fetched state.Fetched, ok bool, err error) {
	image, head, err := takeHead(r, now, k, maxImages, maxElements)
	if err != nil {
		return fetched, false, err
	}
	return state.Fetched{Image: image, Version: image.version}, image.Absent() || head.kind == state.String, nil
}

// takeImage reads an image of at most so many bytes and elements.
func takeImage(r Reader, now time.Time, k forerun.Key, size, elements int) (*Image, error) {
	image, head, err := takeHead(r, now, k, size, elements)
	if err != nil || image.Absent() || head.kind == state.String {
		return image, err
	}
	if err := image.take(r, elementPrefix, k, size); err != nil {
		return nil, err
	}
	if head.kind == state.SortedSet {
		if err := image.take(r, orderPrefix, k, size); err != nil {
			return nil, err
		}
	}
	if image.Size() > size {
		return nil, tooLarge(k)
	}
	return image, nil
}

// takeHead reads an image without its elements, and what it says of them.
func takeHead(r Reader, now time.Time, k forerun.Key, size, elements int) (*Image, record, error) {
	stored, found, err := r.Get(RecordKey(k))
	if err != nil || !found {
		return &Image{}, record{}, err
	}
	head, ok := decodeRecord(stored)
	switch {
	case !ok:
		return nil, record{}, ErrDamaged
	case head.gone(now.UnixMilli()):
		return &Image{}, record{}, nil
	case len(stored)+imageCost > size || head.elementCount() > int64(elements):
		return nil, record{}, tooLarge(k)
	}
	return &Image{version: head.version, stored: stored}, head, nil
}

// take reads one kind of the record's elements, until the image is larger than size.
func (i *Image) take(r Reader, prefix byte, k forerun.Key, size int) error {
	t := txn{space: k.Space}
	from, to := t.collectionRange(prefix, []byte(k.Name))
	into := i.collection(prefix)
	return r.Scan(from, to, false, func(key, value []byte) bool {
		into.add(ownPair(key[len(from):], value))
		return i.Size() <= size
	})
}

// ownPair copies a pair.
func ownPair(key, value []byte) pair {
	b := append(append(make([]byte, 0, len(key)+len(value)), key...), value...)
	return pair{b[:len(key):len(key)], b[len(key):]}
}

func tooLarge(k forerun.Key) error {
	return forerun.Errorf(forerun.TooLarge, "state", "The record %q is too large for a copy, with those that were asked for with it.", k.Name)
}

// expires is when the record expires, in Unix milliseconds; 0: never.
func (i *Image) expires() int64 {
	r, _ := decodeRecord(i.stored)
	return r.expires
}

// Over reports whether the record's life has ended at a time.
func (i *Image) Over(at time.Time) bool {
	end := i.expires()
	return end != 0 && end < at.UnixMilli()
}

// imageReader shows images as the store in which they lie. All of them are in one space.
type imageReader struct {
	space  []byte // as it is escaped
	images map[string]*Image
}

func newImageReader(space string, names int) *imageReader {
	return &imageReader{escapeSpace(nil, space), make(map[string]*Image, names)}
}

// find takes a key apart: the image that it is in, if there is one, and what follows the name, or the head's letter.
func (r *imageReader) find(key []byte) (image *Image, name, rest []byte) {
	name, rest = r.split(key)
	return r.images[string(name)], name, rest
}

func (r *imageReader) split(key []byte) (name, rest []byte) {
	if len(key) <= len(r.space) || key[0] == expiryPrefix || !bytes.HasPrefix(key[1:], r.space) {
		return nil, nil
	}
	behind := key[1+len(r.space):]
	if key[0] == metaPrefix {
		return behind, nil
	}
	return splitCollectionKey(behind)
}

// Get finds a head or an element.
func (r *imageReader) Get(key []byte) (value []byte, found bool, err error) {
	image, _, rest := r.find(key)
	switch {
	case image == nil:
		return nil, false, nil
	case key[0] == metaPrefix:
		return image.stored, image.stored != nil, nil
	}
	value, found = image.collection(key[0]).get(rest)
	return value, found, nil
}

// Scan walks over elements of one record.
func (r *imageReader) Scan(from, to []byte, reverse bool, f func(key, value []byte) bool) error {
	image, _, first := r.find(from)
	if image == nil || from[0] == metaPrefix {
		return nil
	}
	prefix := from[:len(from)-len(first)]
	last, within := bytes.CutPrefix(to, prefix)
	if !within {
		last = nil
	}
	key := bytes.Clone(prefix)
	image.collection(from[0]).scan(first, last, reverse, func(e pair) bool {
		key = append(key[:len(prefix)], e.key...)
		return f(key, e.value)
	})
	return nil
}

func (i *Image) collection(prefix byte) *pages {
	if prefix == orderPrefix {
		return &i.order
	}
	return &i.elements
}

// redraft is a Changes that makes of images new ones.
type redraft struct {
	from *imageReader
	made map[string]*draft
}

// draft is an image in the making, and the edits that are not in it yet.
type draft struct {
	Image
	elements, order []edit
}

func (d *redraft) at(name []byte) *draft {
	if m := d.made[string(name)]; m != nil {
		return m
	}
	m := &draft{}
	if image := d.from.images[string(name)]; image != nil {
		m.Image = *image
	}
	d.made[string(name)] = m
	return m
}

// Clear removes a range of elements of one record; all of them come before Set and Delete.
func (d *redraft) Clear(from, to []byte) error {
	_, name, first := d.from.find(from)
	if name == nil {
		return nil
	}
	last, within := bytes.CutPrefix(to, from[:len(from)-len(first)])
	if !within {
		last = nil
	}
	m := d.at(name)
	c := m.collection(from[0])
	*c = c.cleared(first, last)
	return nil
}

// Set writes a head or an element.
func (d *redraft) Set(key, value []byte) error {
	d.edit(key, value, false)
	return nil
}

// Delete removes a head or an element.
func (d *redraft) Delete(key []byte) error {
	d.edit(key, nil, true)
	return nil
}

func (d *redraft) edit(key, value []byte, deleted bool) {
	name, rest := d.from.split(key)
	if name == nil {
		return // the index of expiries
	}
	m := d.at(name)
	switch e := (edit{pair{rest, value}, deleted}); key[0] {
	case metaPrefix:
		m.stored = value
	case elementPrefix:
		m.elements = append(m.elements, e)
	case orderPrefix:
		m.order = append(m.order, e)
	}
}

// image is the image that was made, at a time: of a record that has expired none is left.
func (m *draft) image(now int64, version forerun.Version) *Image {
	r, exists := decodeRecord(m.stored)
	if !exists || r.gone(now) {
		return &Image{version: version}
	}
	return &Image{version, m.stored, m.Image.elements.edited(m.elements), m.Image.order.edited(m.order)}
}
