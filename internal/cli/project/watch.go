package project

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
)

// Folders lists the folders whose files the project is made of, for who watches them. Editors replace files, so that a
// folder is watched and not the file.
func (p *Project) Folders() []string {
	folders := map[string]bool{p.Folder: true}
	actions := []map[string]*action{p.file.Actions}
	compositions := []map[string]*composition{p.file.Compositions}
	for _, x := range p.file.Packages {
		if x != nil {
			actions, compositions = append(actions, x.Actions), append(compositions, x.Compositions)
		}
	}
	for _, group := range actions {
		for _, x := range group {
			p.watchAction(folders, x)
		}
	}
	for _, group := range compositions {
		for _, x := range group {
			folders[filepath.Dir(p.resolve(x.File))] = true
		}
	}
	return slices.Sorted(maps.Keys(folders))
}

func (p *Project) watchAction(folders map[string]bool, x *action) {
	if x.File != "" {
		folders[filepath.Dir(p.resolve(x.File))] = true
		return
	}
	root := p.resolve(x.Folder)
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error { // what cannot be read is told at the deployment
		switch {
		case err != nil || !entry.IsDir():
			return nil
		case path != root && (Ignored(entry.Name()) || entry.Name() == "node_modules"):
			return filepath.SkipDir
		}
		folders[path] = true
		return nil
	})
}
