package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/backup"
	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "backup FILE|FOLDER", Short: "Copy all that a running server keeps into a file", Args: between(1, 1),
		Long: `Copy all that a server keeps, of all tenants, as of one moment, into a new file, while it runs. In a folder the file gets a
name with the time. ` + "`forerun restore`" + ` makes a data folder of it. It takes the operator's key, as ` + "`forerun tenant`" + ` does.

The file holds everything: code, state, records, and hashes of keys, but no key. It is readable for its owner only.`,
	}
	cmd.Flags().String("operator", "", "`FILE` with the operator's key")
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		file := args[0]
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			file = filepath.Join(file, time.Now().Format("forerun-20060102-150405.backup"))
		}
		summary, err := takeBackup(cmd.Context(), c, file)
		if err != nil {
			return err
		}
		say(cmd, "ok: %d records, %d bytes", summary.Pairs, summary.Bytes)
		_, err = fmt.Fprintln(data(cmd), file)
		return err
	})
	return cmd
}

// takeBackup reads a backup into a new file, which is there only if it is whole.
func takeBackup(ctx context.Context, c *whisk.Client, file string) (s backup.Summary, err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return s, wrongf("%s is there already: name a new file, or a folder", file)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return s, wrongf("there is no folder %s for the backup: create it first, or name another", filepath.Dir(file))
	}
	out, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.part") // nobody else can have it open
	if err != nil {
		return s, wrongf("the backup cannot be written: %v", err)
	}
	part := out.Name()
	defer func() {
		if err != nil {
			os.Remove(part)
		}
	}()
	defer out.Close()
	in, err := whisk.Backup(ctx, c)
	if err != nil {
		return s, err
	}
	defer in.Close()
	if s, err = backup.Read(io.TeeReader(in, out), func(backup.Pair) error { return nil }); err != nil {
		return s, &failure{exitGeneral, "the backup that the server sent is not complete: " + err.Error() + "; run the command again"}
	}
	if err = errors.Join(out.Sync(), out.Close()); err != nil {
		return s, fmt.Errorf("the backup cannot be written: %w", err)
	}
	return s, os.Rename(part, file)
}
