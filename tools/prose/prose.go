package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

type sentence struct {
	file  string
	line  int
	text  string
	words int
}

// finding is a form that readers stumble over, where a sentence has it.
type finding struct {
	sentence
	form string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.form, f.text) }

// measure is what was counted in some documents.
type measure struct {
	words     int
	sentences []sentence
	findings  []finding
}

func measureFiles(root string, files []string) (*measure, error) {
	m := new(measure)
	for _, name := range files {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		m.add(sentences(name, source))
	}
	return m, nil
}

func (m *measure) add(all []sentence) {
	for _, s := range all {
		m.words += s.words
		m.sentences = append(m.sentences, s)
		for _, form := range findForms(s.text) {
			m.findings = append(m.findings, finding{s, form})
		}
	}
}

func (m *measure) summary() string {
	return fmt.Sprintf("%d words in %d sentences, p50 %d, p90 %d; %d findings, %.1f in 10,000 words",
		m.words, len(m.sentences), m.percentile(50), m.percentile(90), len(m.findings), m.findingsRate())
}

// percentile is the number of words that p in 100 sentences do not exceed.
func (m *measure) percentile(p int) int {
	if len(m.sentences) == 0 {
		return 0
	}
	lengths := make([]int, len(m.sentences))
	for i, s := range m.sentences {
		lengths[i] = s.words
	}
	slices.Sort(lengths)
	return lengths[(len(lengths)*p+99)/100-1]
}

func (m *measure) findingsRate() float64 {
	return float64(len(m.findings)) * 10_000 / float64(max(m.words, 1))
}

// forms are searched in the text of one sentence.
var forms = []struct {
	name string
	is   *regexp.Regexp
}{
	{"a clause as the subject", regexp.MustCompile(`^\W*(Who|What|Whoever|Whatever) [^?]*$`)},
	{"that of", regexp.MustCompile(`(?i)\b(that|those) of\b`)},
	{"nobody, somebody", regexp.MustCompile(`(?i)\b(nobody|somebody)\b`)},
	{"anew, likewise, of late", regexp.MustCompile(`(?i)\b(anew|likewise|of late)\b`)},
}

var (
	isNo       = regexp.MustCompile(`(?i)(\w+ )?\b(is|are|was|were) no (\w+)`)
	existence  = regexp.MustCompile(`(?i)^there `)
	comparison = regexp.MustCompile(`^(longer|more|less|fewer|better|worse|later|sooner|earlier|slower|faster|larger|smaller|shorter|one)$`)
)

// findForms names the forms that a sentence has. "X is no Y" is one; "there is no Y" and "is no longer" are not.
func findForms(text string) (found []string) {
	for _, f := range forms {
		if f.is.MatchString(text) {
			found = append(found, f.name)
		}
	}
	for _, match := range isNo.FindAllStringSubmatch(text, -1) {
		if !existence.MatchString(match[1]) && !comparison.MatchString(match[3]) {
			found = append(found, "is no")
			break
		}
	}
	return found
}

// sentences finds the sentences of a Markdown document.
func sentences(file string, source []byte) (all []sentence) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM))
	document := markdown.Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n.Kind().String() {
		case "Heading":
			return ast.WalkSkipChildren, nil
		case "Paragraph", "TextBlock", "TableCell":
			all = append(all, sentencesOf(file, source, n)...)
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return all
}

// sentencesOf finds the sentences of one block. A piece of fewer than four words that ends without a full stop is
// a label or a value, as cells of tables often are, and counts as nothing. So does a list of code spans alone.
func sentencesOf(file string, source []byte, block ast.Node) (all []sentence) {
	plain, offsets := plainText(source, block)
	for _, span := range split(plain) {
		piece := strings.Join(strings.Fields(string(plain[span[0]:span[1]])), " ")
		words := countWords(piece)
		if words == 0 || words < 4 && !strings.HasSuffix(piece, ".") || countWords(codeSpan.ReplaceAllString(piece, "")) == 0 {
			continue
		}
		line := 1 + bytes.Count(source[:offsets[span[0]]], []byte("\n"))
		all = append(all, sentence{file, line, piece, words})
	}
	return all
}

// plainText is the text of a block without markup, and where in the source each of its runes stands.
// A span of code stands as its first word in backquotes.
func plainText(source []byte, block ast.Node) (plain []rune, offsets []int) {
	put := func(s string, at int) {
		for _, r := range s {
			plain, offsets = append(plain, r), append(offsets, at)
			at += len(string(r))
		}
	}
	last := 0
	_ = ast.Walk(block, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			if t, ok := n.FirstChild().(*ast.Text); ok {
				last = t.Segment.Start
				words := strings.FieldsFunc(string(t.Segment.Value(source)), unicode.IsSpace)
				put("`"+strings.Join(words, "_")+"`", last)
			}
			return ast.WalkSkipChildren, nil
		case *ast.AutoLink:
			put("`"+string(n.URL(source))+"`", last)
		case *ast.Text:
			last = n.Segment.Start
			put(string(n.Segment.Value(source)), last)
			if n.SoftLineBreak() || n.HardLineBreak() {
				put(" ", n.Segment.Stop)
			}
		}
		return ast.WalkContinue, nil
	})
	return plain, offsets
}

var codeSpan = regexp.MustCompile("`[^`]*`")

var abbreviation = regexp.MustCompile(`(?i)\b(e\.g|i\.e|vs|cf|approx|etc)\.$`)

// split says where the sentences of a text begin and end. A full stop ends one if a new one begins behind it:
// with a capital, a digit, a quote, a bracket or code.
func split(plain []rune) (spans [][2]int) {
	start := 0
	add := func(end int) {
		for start < end && unicode.IsSpace(plain[start]) {
			start++
		}
		if start < end {
			spans = append(spans, [2]int{start, end})
		}
		start = end
	}
	inCode := false
	for i, r := range plain {
		if r == '`' {
			inCode = !inCode
		}
		if inCode || !strings.ContainsRune(".!?", r) {
			continue
		}
		end := i + 1
		for end < len(plain) && strings.ContainsRune(`)"'*`, plain[end]) {
			end++
		}
		next := end
		for next < len(plain) && unicode.IsSpace(plain[next]) {
			next++
		}
		if next == end || next == len(plain) || abbreviation.MatchString(string(plain[start:i+1])) {
			continue
		}
		if r := plain[next]; unicode.IsUpper(r) || unicode.IsDigit(r) || strings.ContainsRune("`\"([*", r) {
			add(end)
		}
	}
	add(len(plain))
	return spans
}

// countWords counts what has a letter or a digit between spaces.
func countWords(s string) (n int) {
	for _, word := range strings.Fields(s) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}
