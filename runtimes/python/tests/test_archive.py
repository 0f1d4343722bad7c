"""Archives, the hostile ones above all."""

from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

import pytest
from forerun_runtime import archive
from forerun_runtime.loader import LoadError


def zipped(files: dict[str, bytes], mode: int = stat.S_IFREG | 0o644) -> bytes:
    """Return an archive of files, all of one mode."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            target.writestr(info, content)
    return data.getvalue()


def test_extracts(tmp_path: Path) -> None:
    archive.extract(zipped({"__main__.py": b"x = 1", "pkg/a.py": b"", "pkg/data/": b""}), str(tmp_path))
    assert (tmp_path / "__main__.py").read_bytes() == b"x = 1"
    assert (tmp_path / "pkg" / "a.py").exists()


def test_programs_stay_programs(tmp_path: Path) -> None:
    archive.extract(zipped({"bin/tool": b"#!/bin/sh"}, stat.S_IFREG | 0o755), str(tmp_path))
    assert (tmp_path / "bin" / "tool").stat().st_mode & 0o100


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "a\\..\\evil", ".."])
def test_unsafe_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(LoadError, match="unsafe name"):
        archive.extract(zipped({"ok": b"", name: b"x"}), str(tmp_path / "code"))
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_neither_files_nor_folders(tmp_path: Path, kind: int) -> None:
    with pytest.raises(LoadError, match="neither a file nor a folder"):
        archive.extract(zipped({"link": b"/etc/passwd"}, kind | 0o777), str(tmp_path))


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
    with pytest.raises(LoadError, match="more than 1 MiB"):
        archive.extract(zipped({"zeros": bytes(2 << 20)}), str(tmp_path))


def test_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 2)
    with pytest.raises(LoadError, match="has 3 files"):
        archive.extract(zipped({"a": b"", "b": b"", "c": b""}), str(tmp_path))


def test_larger_than_it_says(tmp_path: Path) -> None:
    data = bytearray(zipped({"zeros": bytes(100_000)}))
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (10).to_bytes(4, "little")
    with pytest.raises(LoadError):
        archive.extract(bytes(data), str(tmp_path))
    assert sum(f.stat().st_size for f in tmp_path.rglob("*")) <= 10


@pytest.mark.parametrize("data", [b"", b"no archive", zipped({"a": b"x" * 1000})[:60]])
def test_no_archive(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(LoadError, match="zip file"):
        archive.extract(data, str(tmp_path))
