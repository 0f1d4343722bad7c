// Package textfile reads text that people write with editors and shells: settings,
// parameters and project files.
//
// It promises UTF-8 without a byte order mark: a mark of UTF-8 is dropped, and text
// whose mark says UTF-16 (Windows PowerShell writes it) is converted. Other bytes stay
// as they are; whether they are valid UTF-8 is checked by the parser of the text.
package textfile

import (
	"bytes"
	"encoding/binary"
	"os"
	"unicode/utf16"
)

// The byte order marks.
const (
	markUTF8    = "\xef\xbb\xbf"
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
)

// Read reads the text of a file.
func Read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	return Decode(data), err
}

// Decode returns the text of data in UTF-8, without its byte order mark.
func Decode(data []byte) []byte {
	if text, ok := bytes.CutPrefix(data, []byte(markUTF8)); ok {
		return text
	}
	if text, ok := bytes.CutPrefix(data, []byte(markUTF16LE)); ok {
		return fromUTF16(text, binary.LittleEndian)
	}
	if text, ok := bytes.CutPrefix(data, []byte(markUTF16BE)); ok {
		return fromUTF16(text, binary.BigEndian)
	}
	return data
}

// fromUTF16 drops an odd last byte, which is not a character.
func fromUTF16(data []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}
