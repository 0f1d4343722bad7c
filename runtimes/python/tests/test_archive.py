"""Archives, which another program extracts: internal/launcher tests the hostile ones."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from forerun_runtime import archive
from forerun_runtime.loader import LoadError

EXTRACTOR = Path(__file__).parent / "extractor.sh"


def zipped(files: dict[str, bytes]) -> bytes:
    """Return an archive of files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(name, content)
    return data.getvalue()


@pytest.fixture(autouse=True)
def extractor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a small program in the place of Forerun's."""
    monkeypatch.setattr(archive, "PROGRAM", str(EXTRACTOR))


def test_extracts(tmp_path: Path) -> None:
    archive.extract(zipped({"__main__.py": b"x = 1", "pkg/a.py": b""}), str(tmp_path))
    assert (tmp_path / "__main__.py").read_bytes() == b"x = 1"
    assert (tmp_path / "pkg" / "a.py").exists()


def test_what_the_extractor_says_is_for_the_author(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"^it is not a zip file$"):
        archive.extract(b"no archive", str(tmp_path))


def test_extractor_that_is_killed(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="its extractor ended with -9"):
        archive.extract(b"kill", str(tmp_path))


def test_no_extractor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "PROGRAM", "/nowhere/forerun")
    with pytest.raises(LoadError, match="No such file"):
        archive.extract(b"", str(tmp_path))
