package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// longSentence is the length, in words, over which the command shows a sentence.
const longSentence = 40

// bound says what a group of documents may measure.
type bound struct {
	name     string
	patterns []string // of files, from the module's root
	p50, p90 int      // words a sentence
	findings float64  // a 10,000 words
	long     int      // sentences over longSentence words
}

// bounds are the groups of documents. The goal for each is p50 15, p90 28, one finding and no long sentence.
var bounds = []bound{
	{"README and guide", []string{"README.md", "docs/guide/*.md"}, 15, 28, 1, 0},
	{"reference", []string{"docs/reference/*.md", "docs/performance.md", "SECURITY.md", "CONTRIBUTING.md"}, 15, 28, 1, 0},
	{"architecture and decisions", []string{"ARCHITECTURE.md", "docs/decisions/*.md"}, 15, 28, 1, 0},
}

func (b bound) measure(root string) (*measure, error) {
	var files []string
	for _, pattern := range b.patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			name, err := filepath.Rel(root, f)
			if err != nil {
				return nil, err
			}
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: there are no files %v", b.name, b.patterns)
	}
	return measureFiles(root, files)
}

// problems says in which ways m is beyond the bound.
func (b bound) problems(m *measure) (all []string) {
	p50, p90 := m.percentile(50), m.percentile(90)
	if p50 > b.p50 {
		all = append(all, fmt.Sprintf("half of the sentences have more than %d words: p50 is %d", b.p50, p50))
	}
	if p90 > b.p90 {
		all = append(all, fmt.Sprintf("a tenth of the sentences has more than %d words: p90 is %d", b.p90, p90))
	}
	if m.findingsRate() > b.findings {
		all = append(all, fmt.Sprintf("%d findings in %d words, more than %g in 10,000", len(m.findings), m.words, b.findings))
		for _, f := range m.findings {
			all = append(all, f.String())
		}
	}
	var long []string
	for _, s := range m.sentences {
		if s.words > longSentence {
			long = append(long, fmt.Sprintf("%s:%d: a sentence of %d words: %s", s.file, s.line, s.words, s.text))
		}
	}
	if len(long) > b.long {
		all = append(all, long...)
	}
	return all
}

// moduleRoot is the folder of this module's go.mod, seen from the working folder.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("run it inside the project's folder: there is no go.mod above the working folder")
		}
		dir = parent
	}
}
