package main

import (
	"slices"
	"strings"
	"testing"
)

// TestDocumentsKeepTheirBounds measures the documents. A failure names each place.
func TestDocumentsKeepTheirBounds(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bounds {
		t.Run(b.name, func(t *testing.T) {
			m, err := b.measure(root)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(m.summary())
			for _, problem := range b.problems(m) {
				t.Error(problem)
			}
		})
	}
}

// TestSentences: which text counts, as what sentences, from which lines.
func TestSentences(t *testing.T) {
	source := strings.Join([]string{
		"# A heading does not count. Not at all.",
		"",
		"The client sends a request. It waits, e.g. for",
		"an answer of `forerun action get` (in JSON). 32 clients wait.",
		"",
		"- One item of a list is a sentence",
		"- label",
		"- `a`, `b c`, `d`, `e`",
		"",
		"| name | meaning |",
		"| --- | --- |",
		"| `a.b` | A cell holds a sentence. The [second](x.md) one is *short*. |",
		"",
		"    code does not count at all.",
		"",
		"```",
		"Nor does fenced code count.",
		"```",
		"<!-- Nor does a comment count. -->",
	}, "\n")
	type row struct {
		line, words int
		text        string
	}
	var got []row
	for _, s := range sentences("x.md", []byte(source)) {
		got = append(got, row{s.line, s.words, s.text})
	}
	want := []row{
		{3, 5, "The client sends a request."},
		{3, 10, "It waits, e.g. for an answer of `forerun_action_get` (in JSON)."},
		{4, 3, "32 clients wait."},
		{6, 8, "One item of a list is a sentence"},
		{12, 5, "A cell holds a sentence."},
		{12, 5, "The second one is short."},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// TestForms: what is found, and what looks alike and is not.
func TestForms(t *testing.T) {
	for text, want := range map[string]string{
		"What was written is on disk.":              "a clause as the subject",
		"Who waits is served first.":                "a clause as the subject",
		"What is a sandbox?":                        "",
		"The record says what was written.":         "",
		"The limit is that of the action.":          "that of",
		"Those of another tenant are not seen.":     "that of",
		"Nobody sees it.":                           "nobody, somebody",
		"The function is called anew.":              "anew, likewise, of late",
		"It is no address.":                         "is no",
		"There is no address, and it is no longer.": "",
		"A sandbox that is no more is forgotten.":   "",
	} {
		if got := strings.Join(findForms(text), ";"); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestBoundsCanFail: a document that is beyond each bound has a problem for each.
func TestBoundsCanFail(t *testing.T) {
	m := new(measure)
	m.add(sentences("x.md", []byte("What "+strings.Repeat("word ", 50)+"is no sentence.")))
	problems := bound{p50: 15, p90: 28, findings: 1}.problems(m)
	if len(problems) != 6 { // p50, p90, the rate with its two findings, and the long sentence
		t.Errorf("%d problems: %q", len(problems), problems)
	}
}

func TestPercentile(t *testing.T) {
	m := new(measure)
	for i := range 10 {
		m.sentences = append(m.sentences, sentence{words: 10 - i})
	}
	if m.percentile(50) != 5 || m.percentile(90) != 9 || new(measure).percentile(90) != 0 {
		t.Errorf("p50 %d, p90 %d", m.percentile(50), m.percentile(90))
	}
}
