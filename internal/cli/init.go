package cli

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// templates has a folder with an example for each language.
//
//go:embed templates
var templates embed.FS

func initCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "init [FOLDER]", Short: "Write an example project in one of the languages", Args: between(0, 1),
		Long: `Write an example project into a folder, which is the current one by default and made if it is not there: a forerun.yaml and one
function. Files that are there already are never written over.`,
		Example: "  forerun init hello --language node\n  cd hello && forerun deploy && forerun invoke hello --result",
	}
	language := cmd.Flags().String("language", "python", "`LANGUAGE` of the function: python, node, java or go")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		folder, err := filepath.Abs(first(optional(args, 0), "."))
		if err != nil {
			return err
		}
		return initProject(cmd, folder, *language)
	}
	return cmd
}

func initProject(cmd *cobra.Command, folder, language string) error {
	example, err := fs.Sub(templates, "templates/"+language)
	if err == nil {
		_, err = fs.Stat(example, "forerun.yaml")
	}
	if err != nil {
		return wrongf("--language %q: write python, node, java or go", language)
	}
	names, err := fs.Glob(example, "*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(folder, target(name))); !errors.Is(err, fs.ErrNotExist) {
			return wrongf("%s is there already: name a new folder, like `forerun init hello`", filepath.Join(folder, target(name)))
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return wrongf("the folder cannot be made: %v", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(example, name)
		if err != nil {
			return err
		}
		file := filepath.Join(folder, target(name))
		project := strings.ReplaceAll(string(text), "PROJECT", fmt.Sprintf("%q", filepath.Base(folder)))
		if err := os.WriteFile(file, []byte(project), 0o644); err != nil {
			return wrongf("the example cannot be written: %v", err)
		}
		if _, err := fmt.Fprintln(data(cmd), file); err != nil {
			return err
		}
	}
	next := "Go on"
	if language == "java" {
		next = "Compile hello.jar as its forerun.yaml says, then go on"
	}
	say(cmd, "ok: wrote an example in %s. %s with `forerun deploy %s` and `forerun invoke hello --result -p name Ada`.", language, next, folder)
	return nil
}

// target is the name that a file of an example gets: Go source would otherwise be part of this program.
func target(name string) string { return strings.TrimSuffix(name, ".txt") }
