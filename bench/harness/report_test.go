package harness

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		target    string
		value     float64
		meets, ok bool
	}{
		{"<=1.2", 1.2, true, true},
		{"<=1.2", 1.21, false, true},
		{">=700", 699, false, true},
		{">=700", 700, true, true},
		{"", 1, false, false},
		{"=1", 1, false, false},
	} {
		row := Row{Value: &c.value, Target: Text(c.target)}
		if meets, ok := row.Meets(); ok != c.ok || ok && meets != c.meets {
			t.Errorf("%v against %q: %v, %v", c.value, c.target, meets, ok)
		}
	}
}

func TestReportHasNullWhereAFieldDoesNotApply(t *testing.T) {
	text, err := json.Marshal(Report{Machine: map[string]any{"cores": 2}, Rows: []Row{{Case: "c", Metric: "p50", Unit: "ms", Value: Number(1.23456)}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"machine":{"cores":2},"rows":[{"case":"c","metric":"p50","unit":"ms","value":1.235,"baseline":null,"ratio":null,"interval":null,"paper":null,"target":null}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestWhatWasNotMeasuredIsNoNumber(t *testing.T) {
	if n := Number(math.NaN()); n != nil {
		t.Errorf("got %v", *n)
	}
}

func TestReportIsWritten(t *testing.T) {
	folder := t.TempDir()
	report := Report{Rows: []Row{{Case: "a", Value: Number(1), Target: Text("<=1")}}}
	if err := report.Write(folder, "some"); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"some.json": `"case": "a"`, "some.txt": "met"} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s: %q, %v", file, want, text, err)
		}
	}
}

func TestTableSaysWhatIsMet(t *testing.T) {
	report := Report{Title: "all of it", Rows: []Row{
		{Case: "a", Value: Number(1), Target: Text("<=1")},
		{Case: "b", Value: Number(2), Target: Text("<=1")},
		{Case: "c", Target: Text("<=1")},
		{Case: "d", Value: Number(1)},
	}}
	var table strings.Builder
	if err := report.Table(&table); err != nil {
		t.Fatal(err)
	}
	if want := `^all of it\ncase .*\na .* met *\nb .* MISSED *\nc .* not measured *\nd [^a-z]*\n$`; !regexp.MustCompile(want).MatchString(table.String()) {
		t.Errorf("it is no %s:\n%s", want, table.String())
	}
}
