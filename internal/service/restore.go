package service

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"forerun.dev/forerun/internal/backup"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/embedded"
)

// restoringName is the store's folder until it is whole.
const restoringName = "restoring"

// Restore makes a data folder of a backup. The folder must be empty or not be there, and if it fails it is again. The error
// is forerun.Invalid (there is something in the folder, or the backup is none or damaged), Unsupported (it is a newer
// Forerun's) or Full (the disk is).
func Restore(file, data string) (s backup.Summary, err error) {
	in, err := os.Open(file)
	if err != nil {
		return s, forerun.Errorf(forerun.Invalid, "", "The backup cannot be read: %w", err)
	}
	defer in.Close()
	if err := os.MkdirAll(data, 0o700); err != nil {
		return s, forerun.Errorf(forerun.Invalid, data, "The data folder cannot be made: %w. Choose another with --data.", err)
	}
	if err := checkEmpty(data); err != nil {
		return s, err
	}
	restoring := filepath.Join(data, restoringName)
	if s, err = load(in, restoring); err == nil {
		err = settle(data, restoring)
	}
	if err != nil {
		return s, errors.Join(err, os.RemoveAll(restoring))
	}
	return s, nil
}

func checkEmpty(data string) error {
	entries, err := os.ReadDir(data)
	if err != nil {
		return forerun.Errorf(forerun.Invalid, data, "The data folder cannot be read: %w. Choose another with --data.", err)
	}
	if len(entries) > 0 {
		return forerun.Errorf(forerun.Invalid, data, "The folder is not empty (it holds %s), and a restore replaces no file. Choose a new folder with --data, or move away what is there.", entries[0].Name())
	}
	return nil
}

// load makes a store of a backup, and opens it to see whether it is one.
func load(in *os.File, dir string) (backup.Summary, error) {
	loader, err := embedded.Load(dir, embedded.Options{})
	if err != nil {
		return backup.Summary{}, err
	}
	s, err := backup.Read(in, loader.Add)
	if err = cmp.Or(err, loader.Close()); err != nil {
		return s, err
	}
	store, err := embedded.Open(dir, embedded.Options{})
	if err != nil {
		return s, err
	}
	return s, store.Close()
}

// settle makes the folder a data folder, as whose a server knows it by its lock.
func settle(data, restoring string) error {
	err := os.Rename(restoring, filepath.Join(data, storeName))
	if err == nil {
		err = os.WriteFile(filepath.Join(data, lockName), nil, 0o600)
	}
	if err == nil {
		err = syncFolder(data)
	}
	if err != nil {
		return forerun.Errorf(forerun.Internal, data, "The data folder cannot be written: %w", err)
	}
	return nil
}

// syncFolder puts the names in a folder on disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
