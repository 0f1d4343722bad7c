package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/config"
	"forerun.dev/forerun/internal/service"
)

func restoreCommand() *cobra.Command {
	folder := os.Getenv("FORERUN_DATA")
	if folder == "" {
		folder = config.DataFolder(os.Geteuid() == 0, config.StateHome(os.Getenv))
	}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data folder of a backup",
		Long: `Make a data folder of a file that ` + "`forerun backup`" + ` wrote. The folder must be new or empty; a server is started on it
afterwards with ` + "`forerun serve --data FOLDER`" + `. Tenants and their keys are as they were; the operator gets a new key.`,
		Args: cobra.ExactArgs(1),
	}
	data := cmd.Flags().String("data", folder, "`FOLDER` to make")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := filepath.Abs(*data)
		if err != nil {
			return err
		}
		s, err := service.Restore(args[0], path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "ok: %s is as of %s (%d records, %d bytes); start a server on it with `forerun serve --data %s`\n",
			path, s.Created.Format("2006-01-02 15:04:05 MST"), s.Pairs, s.Bytes, path)
		return err
	}
	return cmd
}
