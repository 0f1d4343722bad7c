"""Extracts a zip archive of an action: nothing of it lands outside its folder."""

from __future__ import annotations

import io
import os
import stat
import zipfile

from .loader import LoadError

MAX_FILES = 20_000
MAX_BYTES = 512 << 20


def extract(data: bytes, folder: str) -> None:
    """Extract the files of an archive under folder. Links, absolute names and names with ".." are refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check(members)
            for member in members:
                _extract_one(archive, member, folder)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise LoadError(f"the archive cannot be read as a zip file: {error}") from None
    except OSError as error:
        raise LoadError(f"the archive cannot be extracted: {error.strerror}") from None


def _check(members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MAX_FILES:
        raise LoadError(f"the archive has {len(members)} files; at most {MAX_FILES} are allowed")
    if sum(member.file_size for member in members) > MAX_BYTES:
        raise LoadError(f"the archive extracts to more than {MAX_BYTES >> 20} MiB")
    for member in members:
        name = member.filename
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise LoadError(f"the archive has a file with the unsafe name {name!r}")
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise LoadError(f"{name!r} in the archive is neither a file nor a folder")


def _extract_one(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: str) -> None:
    path = os.path.join(folder, member.filename)
    if member.is_dir():
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    left = member.file_size
    with archive.open(member) as source, open(path, "wb") as target:
        while chunk := source.read(1 << 16):
            left -= len(chunk)
            if left < 0:  # the directory lied about the size, which the limit was checked with
                raise LoadError(f"{member.filename!r} in the archive is larger than the archive says")
            target.write(chunk)
    if (member.external_attr >> 16) & 0o100:
        os.chmod(path, 0o755)  # noqa: S103 - the author marked it as a program
