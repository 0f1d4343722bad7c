package microtasks

import (
	"bytes"
	"slices"
	"testing"
)

// TestValidate: sorted records are valid. A record that is missing, changed, twice or out of order is found.
func TestValidate(t *testing.T) {
	const n = 100
	data := generate(1, n)
	checksum := sum(data)
	records := slices.Collect(slices.Chunk(data, recordSize))
	slices.SortFunc(records, bytes.Compare)
	sorted := bytes.Join(records, nil)
	if err := validate([][]byte{sorted[:30*recordSize], sorted[30*recordSize:]}, n, checksum); err != nil {
		t.Error(err)
	}
	changed := slices.Clone(sorted)
	changed[50]++
	swapped := slices.Concat(sorted[recordSize:2*recordSize], sorted[:recordSize], sorted[2*recordSize:])
	twice := slices.Concat(sorted[:recordSize], sorted[:len(sorted)-recordSize])
	for name, wrong := range map[string][]byte{"missing": sorted[recordSize:], "changed": changed, "out of order": swapped, "twice": twice, "cut": sorted[1:]} {
		if validate([][]byte{wrong}, n, checksum) == nil {
			t.Errorf("%s: nothing is found", name)
		}
	}
	if !bytes.Equal(generate(1, n), data) || bytes.Equal(generate(2, n), data) {
		t.Error("a seed does not make its own records")
	}
}
