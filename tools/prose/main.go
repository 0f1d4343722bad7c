// Command prose measures the documents of this project: how long their sentences are, and how often
// they use a form that readers stumble over.
//
//	go run ./tools/prose                      # all documents that have a bound, and what is over it
//	go run ./tools/prose docs/reference/api.md  # some documents: every long sentence, every finding
//
// Its test holds the documents to the bounds in bounds.go. Whoever improves a group of documents
// lowers its bounds there.
//
// A sentence counts wherever it stands: in a paragraph, a list or a cell of a table. Code blocks,
// headings and HTML do not count. A span of code, whatever its length, is one word.
package main

import (
	"fmt"
	"os"
)

func main() {
	root, err := moduleRoot()
	if err == nil {
		if len(os.Args) > 1 {
			err = showFiles(os.Args[1:])
		} else {
			err = showGroups(root)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func showFiles(files []string) error {
	m, err := measureFiles("", files)
	if err != nil {
		return err
	}
	fmt.Println(m.summary())
	for _, s := range m.sentences {
		if s.words > longSentence {
			fmt.Printf("%s:%d: %d words: %s\n", s.file, s.line, s.words, s.text)
		}
	}
	for _, f := range m.findings {
		fmt.Println(f)
	}
	return nil
}

func showGroups(root string) error {
	for _, b := range bounds {
		m, err := b.measure(root)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", b.name, m.summary())
		for _, problem := range b.problems(m) {
			fmt.Println("  " + problem)
		}
	}
	return nil
}
