package launcher

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// entry is one of an archive to make.
type entry struct {
	name, content string
	mode          fs.FileMode
}

func zipEntries(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarEntries(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	return tarred(t, func(w *tar.Writer) {
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func tarFiles(t testing.TB, entries ...entry) []byte {
	t.Helper()
	return tarred(t, func(w *tar.Writer) {
		for _, e := range entries {
			if err := w.WriteHeader(&tar.Header{Name: e.name, Size: int64(len(e.content)), Mode: 0o600}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(e.content)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func tarred(t testing.TB, write func(*tar.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	write(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpackZip(t *testing.T) {
	folder := t.TempDir()
	err := unpackArchive(zipEntries(t,
		entry{"a/b/file.txt", "text", 0}, entry{"./a//c/../bin", "program", 0o755}, entry{"empty/", "", 0},
		entry{"link", "a/b", fs.ModeSymlink | 0o777}, entry{"a/up", "../link/file.txt", fs.ModeSymlink | 0o777},
		entry{"dangling", "nowhere", fs.ModeSymlink | 0o777},
	), folder)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a/b/file.txt": "text", "a/bin": "program", "link/file.txt": "text", "a/up": "text"} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(folder, "a/bin")); err != nil || info.Mode() != 0o755 {
		t.Errorf("a/bin is %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(folder, "empty")); err != nil || !info.IsDir() {
		t.Errorf("empty is %v, %v", info, err)
	}
}

// TestUnpackVirtualenv: the links to its interpreter, which lead out, are left out.
func TestUnpackVirtualenv(t *testing.T) {
	folder := t.TempDir()
	const symlink = fs.ModeSymlink | 0o777
	err := unpackArchive(zipEntries(t,
		entry{"virtualenv/bin/python", "python3", symlink}, entry{"virtualenv/bin/python3", "/usr/bin/python3", symlink},
		entry{"virtualenv/lib64", "lib", symlink}, entry{"virtualenv/lib/x", "x", 0},
	), folder)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "virtualenv/lib64/x")); err != nil || string(got) != "x" {
		t.Errorf("virtualenv/lib64/x is %q, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(folder, "virtualenv/bin/python3")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link to the interpreter is there (%v)", err)
	}
}

// TestUnpackSaysWhatToDo: a link that leads out is named, with its target.
func TestUnpackSaysWhatToDo(t *testing.T) {
	err := unpackArchive(zipEntries(t, entry{"a/b", "../../etc", fs.ModeSymlink | 0o777}), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), `the symbolic link "a/b" leads to "../../etc", which is not in the archive: leave the link out`) {
		t.Errorf("the error is %v", err)
	}
}

func TestUnpackTar(t *testing.T) {
	folder := t.TempDir()
	err := unpackArchive(tarEntries(t,
		tar.Header{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o700}, tar.Header{Name: "a/x", Size: 3, Mode: 0o700},
		tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a/x"}), folder)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "l")); err != nil || string(got) != "xxx" {
		t.Errorf("l is %q, %v", got, err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	const symlink = fs.ModeSymlink | 0o777
	for name, data := range map[string][]byte{
		"parent":                        zipEntries(t, entry{"../x", "x", 0}),
		"hidden parent":                 zipEntries(t, entry{"a/../../x", "x", 0}),
		"absolute":                      zipEntries(t, entry{"/x", "x", 0}),
		"backslash":                     zipEntries(t, entry{`..\x`, "x", 0}),
		"zero":                          zipEntries(t, entry{"a\x00b", "x", 0}),
		"device":                        zipEntries(t, entry{"x", "", fs.ModeDevice | 0o666}),
		"absolute link":                 zipEntries(t, entry{"x", "/etc", symlink}),
		"link out":                      zipEntries(t, entry{"x", "../etc", symlink}),
		"link by a link":                zipEntries(t, entry{"a/b/up", "../..", symlink}, entry{"x", "a/b/up/../y", symlink}),
		"link to itself":                zipEntries(t, entry{"x", "x", symlink}),
		"through a link":                zipEntries(t, entry{"x", "a", symlink}, entry{"x/y", "y", 0}),
		"long target":                   zipEntries(t, entry{"x", strings.Repeat("a", maxTarget+1), symlink}),
		"file as folder":                zipEntries(t, entry{"x", "x", 0}, entry{"x/y", "y", 0}),
		"long name":                     zipEntries(t, entry{strings.Repeat("a", maxName+1), "x", 0}),
		"deep name":                     zipEntries(t, entry{strings.Repeat("a/", maxDepth) + "x", "x", 0}),
		"absolute link in a virtualenv": zipEntries(t, entry{"virtualenv/bin/pip", "/usr/bin/pip", symlink}),
		"hard link":                     tarEntries(t, tar.Header{Name: "x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}),
		"tar parent":                    tarEntries(t, tar.Header{Name: "../x", Size: 1}),
		"truncated tar":                 tarEntries(t, tar.Header{Name: "x", Size: 1000})[:40],
		"truncated zip":                 zipEntries(t, entry{"x", "x", 0})[:30],
		"wrong content":                 bytes.Replace(zipOf(t, map[string]string{"x": "\x00"}), []byte{0x08, 0x08, 0, 0}, []byte{0x08, 0x09, 0, 0}, 1)[:50],
		"neither":                       []byte("neither"),
		"nothing":                       nil,
	} {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			folder := filepath.Join(outer, "code")
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			err := unpackArchive(data, folder)
			if _, ok := err.(loadError); !ok { //nolint:errorlint // it is the author's sentence itself
				t.Errorf("the error is %v", err)
			}
			assertInside(t, outer)
		})
	}
}

func TestUnpackBoundsBytes(t *testing.T) {
	x, err := newExtraction(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer x.root.Close()
	x.left = 10
	data := zipEntries(t, entry{"a", "12345", 0}, entry{"b", "123456", 0})
	if err := x.zip(data); err == nil || !strings.Contains(err.Error(), "extracts to more than") {
		t.Errorf("the error is %v", err)
	}
}

func TestUnpackBoundsFiles(t *testing.T) {
	x, err := newExtraction(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer x.root.Close()
	x.files = maxFiles - 1
	if err := x.tar(tarEntries(t, tar.Header{Name: "a"}, tar.Header{Name: "b"})); err == nil || !strings.Contains(err.Error(), "entries") {
		t.Errorf("the error is %v", err)
	}
}

// assertInside checks that the folder "code" is all that there is in outer, and that no link in it leads out.
func assertInside(t *testing.T, outer string) {
	t.Helper()
	names, err := os.ReadDir(outer)
	if err != nil || len(names) != 1 || names[0].Name() != "code" || !names[0].IsDir() {
		t.Errorf("beside the code are %v, %v", names, err)
	}
}

// assertLinksStay checks that no symbolic link under folder leads out of it.
func assertLinksStay(t *testing.T, folder string) {
	t.Helper()
	_ = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() != fs.ModeSymlink {
			return err
		}
		if target, err := filepath.EvalSymlinks(name); err == nil && target != folder && !strings.HasPrefix(target, folder+"/") {
			t.Errorf("%s leads to %s", name, target)
		}
		return nil
	})
}

func FuzzUnpack(f *testing.F) {
	const symlink = fs.ModeSymlink | 0o777
	f.Add(zipEntries(f, entry{"a/b", "text", 0o755}, entry{"l", "a/b", symlink}))
	f.Add(zipEntries(f, entry{"a/b/up", "../..", symlink}, entry{"x", "a/b/up/../y", symlink}, entry{"x", "y", 0}))
	f.Add(tarEntries(f, tar.Header{Name: "a/x", Size: 3}, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a/x"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			return
		}
		outer, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(outer, "code")
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		x, err := newExtraction(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer x.root.Close()
		x.left, x.files = 1<<20, maxFiles-100
		err = x.all(data)
		assertInside(t, outer)
		if err == nil {
			assertLinksStay(t, folder)
		}
	})
}
