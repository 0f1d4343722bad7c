// Package speculation measures what running ahead brings: each application with
// speculation off and on, the same requests at the same moments, round by round
// on one server; the figures and tables of the paper's evaluation, beside the
// paper's values and what the pure machine does on a cluster of its size.
package speculation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/workloads"
)

// bench is one run and what it has measured.
type bench struct {
	options
	folder    string // temporary, for all data
	companies *workloads.Companies
	measured  []*measured
	ratios    []ratio
	report    harness.Report
}

type options struct {
	binary, out string
	only        []string
	quick       bool
	files       bool // are written
}

// Run runs `bench speculation`.
func Run(ctx context.Context, args []string) error {
	b := new(bench)
	if err := b.parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	switch code, entered, err := workloads.Enter(ctx); {
	case err != nil:
		return err
	case !entered: // it was run in the network, and has said all
		os.Exit(code)
	}
	var err error
	if b.companies, err = workloads.StartCompanies(); err != nil {
		return err
	}
	defer b.companies.Stop()
	if b.folder, err = os.MkdirTemp("", "forerun-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.folder)
	b.report.Machine = harness.Machine()
	b.report.Machine["quick"] = b.quick
	if err := b.measure(ctx); err != nil {
		return err
	}
	return b.finish()
}

// measure measures all that is asked for.
func (b *bench) measure(ctx context.Context) error {
	subjects, err := applications(usual(workloads.DefaultHitRate), b.companies)
	if err != nil {
		return err
	}
	for _, s := range append(synthetic(), subjects...) {
		if !b.named(s.slug) && !b.onlyParts() {
			continue
		}
		if err := b.subject(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.slug, err)
		}
		if err := b.keep(); err != nil {
			return err
		}
	}
	for _, m := range others() {
		if !b.named(m.name) {
			continue
		}
		b.progress("%s: %s", m.name, m.about)
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := b.keep(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) parse(args []string) error {
	words, err := words()
	if err != nil {
		return err
	}
	f := flag.NewFlagSet("bench speculation", flag.ContinueOnError)
	f.StringVar(&b.binary, "binary", "bin/forerun", "the server's `PATH`")
	f.StringVar(&b.out, "out", "bench/out", "`FOLDER` for figures")
	f.BoolVar(&b.quick, "quick", false, "measure a quarter, for a rough look")
	only := f.String("case", "", "measure some `CASES`, with commas between, and write no files but where -out says a folder: applications, and parts of what is measured of them; of "+strings.Join(words, ", "))
	if err := f.Parse(args); err != nil {
		return err
	}
	f.Visit(func(given *flag.Flag) { b.files = b.files || given.Name == "out" })
	b.only = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' })
	b.files = b.files || len(b.only) == 0
	for _, word := range b.only {
		if !slices.Contains(words, word) {
			return fmt.Errorf("there is no case %q: name some of %s", word, strings.Join(words, ", "))
		}
	}
	return nil
}

// words are all that cases can name.
func words() (all []string, err error) {
	for _, s := range synthetic() {
		all = append(all, s.slug)
	}
	known, err := workloads.Applications()
	if err != nil {
		return nil, err
	}
	for _, a := range known {
		all = append(all, a.Slug)
	}
	for _, m := range append(parts(), others()...) {
		all = append(all, m.name)
	}
	return all, nil
}

// named says whether a case is asked for.
func (b *bench) named(name string) bool { return len(b.only) == 0 || slices.Contains(b.only, name) }

// onlyParts says whether nothing but parts of what is measured of applications is asked for: then of all of them.
func (b *bench) onlyParts() bool {
	part := func(name string) bool {
		return slices.ContainsFunc(parts(), func(p measurement) bool { return p.name == name })
	}
	return !slices.ContainsFunc(b.only, func(name string) bool { return !part(name) })
}

// measures says whether a part is measured of the applications: one that is asked for, or all if none is.
func (b *bench) measures(part string) bool {
	named := func(p measurement) bool { return slices.Contains(b.only, p.name) }
	return !slices.ContainsFunc(parts(), named) || slices.Contains(b.only, part)
}

func (b *bench) row(r harness.Row) { b.report.Rows = append(b.report.Rows, r) }

// lasting is how long to measure something.
func (b *bench) lasting(d time.Duration) time.Duration {
	if b.quick {
		return d / 4
	}
	return d
}

// progress tells a person what is going on.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
