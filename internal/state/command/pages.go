package command

import (
	"bytes"
	"slices"
	"sort"
)

// pair is an element of an image, by what follows in its key behind the name of the record.
type pair struct{ key, value []byte }

// pages are pairs in the order of their keys, and immutable. A change copies the pages that it touches, and shares the
// others with what was there before.
type pages struct {
	list [][]pair // none is empty
	n    int      // pairs
	size int      // bytes of keys and values
}

// pageSize is how many pairs a page has at most after it was split.
const pageSize = 64

// pairCost is what a pair takes beside its bytes.
const pairCost = 48

func (p *pages) bytes() int { return p.size + p.n*pairCost }

// at is the number of the last page that begins at a key or before it; 0 if there is none.
func (p *pages) at(key []byte) int {
	return max(sort.Search(len(p.list), func(i int) bool { return bytes.Compare(p.list[i][0].key, key) > 0 })-1, 0)
}

func (p *pages) get(key []byte) ([]byte, bool) {
	if len(p.list) == 0 {
		return nil, false
	}
	page := p.list[p.at(key)]
	if i, found := find(page, key); found {
		return page[i].value, true
	}
	return nil, false
}

func find(page []pair, key []byte) (int, bool) {
	return slices.BinarySearchFunc(page, key, func(p pair, key []byte) int { return bytes.Compare(p.key, key) })
}

// scan calls f with the pairs from a key to another (nil: the end), in order or in reverse, until it returns false.
func (p *pages) scan(from, to []byte, reverse bool, f func(pair) bool) {
	if len(p.list) == 0 {
		return
	}
	if !reverse {
		p.forth(from, to, f)
		return
	}
	last := len(p.list) - 1
	if to != nil {
		last = p.at(to)
	}
	for i := last; i >= 0; i-- {
		for _, e := range slices.Backward(p.list[i]) {
			if to != nil && bytes.Compare(e.key, to) >= 0 {
				continue
			}
			if bytes.Compare(e.key, from) < 0 || !f(e) {
				return
			}
		}
	}
}

func (p *pages) forth(from, to []byte, f func(pair) bool) {
	for _, page := range p.list[p.at(from):] {
		for _, e := range page {
			if bytes.Compare(e.key, from) < 0 {
				continue
			}
			if to != nil && bytes.Compare(e.key, to) >= 0 || !f(e) {
				return
			}
		}
	}
}

// add puts a pair behind the others of pages that nobody else has yet.
func (p *pages) add(e pair) {
	if last := len(p.list) - 1; last < 0 || len(p.list[last]) == pageSize {
		p.list = append(p.list, make([]pair, 0, pageSize))
	}
	last := len(p.list) - 1
	p.list[last] = append(p.list[last], e)
	p.n++
	p.size += len(e.key) + len(e.value)
}

// cleared are the pages without the pairs from a key to another (nil: the end).
func (p pages) cleared(from, to []byte) pages {
	if len(p.list) == 0 {
		return p
	}
	if len(from) == 0 && to == nil {
		return pages{}
	}
	var left pages
	for _, page := range p.list {
		for _, e := range page {
			if bytes.Compare(e.key, from) < 0 || to != nil && bytes.Compare(e.key, to) >= 0 {
				left.add(e)
			}
		}
	}
	return left
}

// edit sets a pair, or removes it.
type edit struct {
	pair
	deleted bool
}

// edited are the pages after edits, which are in the order of their keys and about one key each.
func (p pages) edited(edits []edit) pages {
	if len(edits) == 0 {
		return p
	}
	if len(p.list) == 0 {
		p.list = [][]pair{nil}
	}
	out := pages{list: make([][]pair, 0, len(p.list)+len(edits)/pageSize+1), n: p.n, size: p.size}
	for i, page := range p.list {
		mine := len(edits)
		if i+1 < len(p.list) {
			next := p.list[i+1][0].key
			mine = sort.Search(len(edits), func(j int) bool { return bytes.Compare(edits[j].key, next) >= 0 })
		}
		if mine > 0 {
			page = out.merge(page, edits[:mine])
			edits = edits[mine:]
		}
		out.list = appendSplit(out.list, page)
	}
	return out
}

// merge makes a page of another and edits, and counts what changes.
func (p *pages) merge(page []pair, edits []edit) []pair {
	merged := make([]pair, 0, len(page)+len(edits))
	for _, e := range edits {
		i, found := find(page, e.key)
		merged = append(merged, page[:i]...)
		page = page[i:]
		if found {
			p.n--
			p.size -= len(page[0].key) + len(page[0].value)
			page = page[1:]
		}
		if !e.deleted {
			p.n++
			p.size += len(e.key) + len(e.value)
			merged = append(merged, e.pair)
		}
	}
	return append(merged, page...)
}

// appendSplit adds a page, in parts if it is too large.
func appendSplit(list [][]pair, page []pair) [][]pair {
	for len(page) > 2*pageSize {
		list = append(list, page[:pageSize:pageSize])
		page = page[pageSize:]
	}
	if len(page) > 0 {
		list = append(list, page)
	}
	return list
}
