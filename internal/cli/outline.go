package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// outline is what `get --summary` tells of an entity.
type outline struct {
	Kind        string   `json:"kind"` // "action", ...
	Name        string   `json:"name"` // "/guest/hello"
	Description string   `json:"description,omitempty"`
	Status      string   `json:"status,omitempty"`     // of a rule
	Parameters  []string `json:"parameters,omitempty"` // sorted; one with a value has * before it, one with a final value **
}

// summaryFlag adds the flag --summary.
func summaryFlag(flags *pflag.FlagSet) *bool {
	return flags.BoolP("summary", "s", false, "show name, description and parameters; one with * has a value, one with ** a final one")
}

// outlineOf takes from annotations and parameters what they tell.
func outlineOf(kind, name string, annotations, parameters []forerun.KeyValue) outline {
	o := outline{Kind: kind, Name: name, Description: unquoted(forerun.Lookup(annotations, "description"))}
	mark := "*"
	if string(forerun.Lookup(annotations, "final")) == "true" {
		mark = "**"
	}
	var described []struct{ Name string }
	_ = json.Unmarshal(forerun.Lookup(annotations, "parameters"), &described) // of another form: they tell nothing
	for _, d := range described {
		if forerun.Lookup(parameters, d.Name) == nil {
			o.Parameters = append(o.Parameters, d.Name)
		}
	}
	for _, p := range parameters {
		o.Parameters = append(o.Parameters, mark+p.Key)
	}
	slices.SortFunc(o.Parameters, func(x, y string) int {
		return strings.Compare(strings.TrimLeft(x, "*"), strings.TrimLeft(y, "*"))
	})
	return o
}

func actionOutline(x *whisk.Action) []outline {
	return []outline{outlineOf("action", "/"+x.Namespace+"/"+x.Name, x.Annotations, x.Parameters)}
}

// packageOutline also has the package's actions and feeds.
func packageOutline(x *whisk.Package) []outline {
	name := "/" + x.Namespace + "/" + x.Name
	all := []outline{outlineOf("package", name, x.Annotations, x.Parameters)}
	for _, action := range x.Actions {
		all = append(all, outlineOf("action", name+"/"+action.Name, action.Annotations, action.Parameters))
	}
	for _, feed := range x.Feeds {
		all = append(all, outlineOf("feed", name+"/"+feed.Name, feed.Annotations, feed.Parameters))
	}
	return all
}

func triggerOutline(x *whisk.Trigger) []outline {
	return []outline{outlineOf("trigger", "/"+x.Namespace+"/"+x.Name, x.Annotations, x.Parameters)}
}

func ruleOutline(x *whisk.Rule) []outline {
	o := outlineOf("rule", "/"+x.Namespace+"/"+x.Name, x.Annotations, nil)
	o.Status = x.Status
	return []outline{o}
}

// outline shows outlines.
func (a *app) outline(cmd *cobra.Command, all []outline) error {
	if a.output == asJSON {
		return a.showLine(cmd, "", all)
	}
	for _, o := range all {
		if err := a.showLine(cmd, o.String(), o); err != nil {
			return err
		}
	}
	return nil
}

// String is the outline in wsk's form: two lines.
func (o outline) String() string {
	head := o.Kind + " " + o.Name
	switch {
	case o.Description != "":
		head += ": " + o.Description
	case o.Kind == "rule":
		return fmt.Sprintf("%s\n   (status: %s)", head, o.Status)
	}
	return fmt.Sprintf("%s\n   (parameters: %s)", head, first(strings.Join(o.Parameters, ", "), "none defined"))
}
