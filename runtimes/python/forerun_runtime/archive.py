"""Has an archive of an action extracted, by the program that extracts those of all languages (internal/launcher)."""

from __future__ import annotations

import os

from .loader import LoadError

PROGRAM = os.environ.get("FORERUN_PROGRAM", "/forerun/forerun")


def extract(data: bytes, folder: str) -> None:
    """Extract an archive into folder. What is wrong with it is a LoadError."""
    archive = os.memfd_create("archive")
    answer, told = os.pipe()
    try:
        with open(archive, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(archive, 0, os.SEEK_SET)
        pid = os.posix_spawn(
            PROGRAM,
            [PROGRAM, "runtime-launcher", "unpack", folder],
            {},
            file_actions=[(os.POSIX_SPAWN_DUP2, archive, 0), (os.POSIX_SPAWN_DUP2, told, 1)],
        )
    except OSError as error:
        os.close(answer)
        raise LoadError(f"the archive cannot be extracted: {error.strerror}") from None
    finally:
        os.close(archive)
        os.close(told)
    with open(answer, encoding="utf-8", errors="replace") as file:
        sentence = file.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        how = f"its extractor ended with {os.waitstatus_to_exitcode(status)}"
        raise LoadError(sentence or f"the archive cannot be extracted: {how}")
