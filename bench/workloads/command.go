package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

type options struct {
	binary, out, only string
	quick             bool
}

// Run runs `bench workloads`: it profiles the applications.
func Run(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet("bench workloads", flag.ContinueOnError)
	f.StringVar(&o.binary, "binary", "bin/forerun", "the server's `PATH`")
	f.StringVar(&o.out, "out", "bench/out", "`FOLDER` for workloads.json")
	f.BoolVar(&o.quick, "quick", false, "ask each application ten times in place of a hundred")
	f.StringVar(&o.only, "case", "", "profile one `APPLICATION`, and write no file")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	code, entered, err := Enter(ctx)
	switch {
	case err != nil:
		return err
	case !entered && code != 0:
		return fmt.Errorf("the profile ended with status %d", code)
	case !entered:
		return nil
	}
	profiles, err := o.profile(ctx)
	if err != nil {
		return err
	}
	if o.only == "" {
		if err := write(o.out, profiles); err != nil {
			return err
		}
	}
	return Table(os.Stdout, profiles)
}

func (o *options) profile(ctx context.Context) ([]*Profile, error) {
	folder, err := os.MkdirTemp("", "forerun-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	companies, err := StartCompanies()
	if err != nil {
		return nil, err
	}
	defer companies.Stop()
	s, err := server.Start(ctx, server.Options{
		Binary: o.binary, Data: filepath.Join(folder, "data"), Redis: true, Args: append([]string{"--speculate", "off"}, ServerArguments()...),
	})
	if err != nil {
		return nil, err
	}
	defer s.Kill() // its data are removed
	if err := SetupServer(ctx, s); err != nil {
		return nil, err
	}
	client := s.Client(1)
	defer client.Close()
	applications, err := Applications()
	if err != nil {
		return nil, err
	}
	n := 100
	if o.quick {
		n = 10
	}
	var profiles []*Profile
	for _, a := range applications {
		if o.only != "" && o.only != a.Slug {
			continue
		}
		fmt.Fprintln(os.Stderr, a.Name)
		p, err := a.Measure(ctx, client, companies, n)
		if err != nil {
			return nil, err
		}
		profiles = append(profiles, p)
	}
	if profiles == nil {
		return nil, fmt.Errorf("there is no application %q: name one of %s", o.only, strings.Join(slugs(applications), ", "))
	}
	return profiles, nil
}

func slugs(applications []*Application) (all []string) {
	for _, a := range applications {
		all = append(all, a.Slug)
	}
	return all
}

// Door is a client for the state of a server's first tenant.
func Door(s *server.Server) *redis.Client {
	user, password, _ := strings.Cut(s.Auth, ":")
	return redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: password, Protocol: 2})
}

// SetupServer is Setup for a server whose door is open.
func SetupServer(ctx context.Context, s *server.Server) error {
	door := Door(s)
	defer func() { _ = door.Close() }()
	return Setup(ctx, door)
}

func write(folder string, profiles []*Profile) error {
	text, err := json.MarshalIndent(profiles, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "workloads.json"), append(text, '\n'), 0o644)
}

// Table writes the profiles for people: the functions of each application, and a line for all of it.
func Table(to io.Writer, profiles []*Profile) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "function\truns/request\tms\tCPU ms\toutside ms\treads\twrites\tquestions\tacts\t")
	for _, p := range profiles {
		for _, f := range p.Profiles {
			fmt.Fprintf(w, "%s %s\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n",
				p.Name, f.Name, f.Share, f.Time, f.CPU, f.Wait, f.Reads, f.Writes, f.Questions, f.Acts)
		}
	}
	fmt.Fprintln(w, "\napplication\tfunctions\tcommonest path\tits share\tms in sequence\tlongest ms\tbound\twith effects in turn\t")
	for _, p := range profiles {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t%.1f\t%.1f\t%.1fx\t%.1fx\t\n",
			p.Name, len(p.Functions), len(p.Paths[0].Functions), p.Paths[0].Share, p.Time, p.Critical, p.Bound, p.TurnBound)
	}
	return w.Flush()
}
