"""What handlers learn for each other."""

from __future__ import annotations

import mmap
import os

import pytest
from forerun_runtime import hints

PAGE = mmap.PAGESIZE


def told(data: bytes) -> list[tuple[int, int]] | None:
    """Take what a handler wrote."""
    reader, writer = os.pipe()
    os.write(writer, data)
    try:
        return hints.take(reader)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        (b"imports\n", None),
        (b"pages 100+700\n", [(100, 700)]),
        (b"imports no.such\npages 100+300 500+400\n", [(100, 300), (500, 400)]),
        (b"pages 100+7\n", []),  # not worth it
        (b"pages 100+700 7\n", []),
        (b"pages 100+700 -5+8\n", []),
        (b"pages 100+700 0+8\n", []),
        (b"pages 100+9999999999\n", []),
        (b"pages 99999999999999999999+700\n", []),
        (b"pages\n", []),
        (b"\xff\n", None),
    ],
)
def test_pages(data: bytes, pages: list[tuple[int, int]] | None) -> None:
    assert told(data) == pages


def test_what_a_child_writes_to_is_told_and_taken() -> None:
    area = mmap.mmap(-1, 2000 * PAGE, flags=mmap.MAP_PRIVATE)
    for page in range(0, 2000):
        area[page * PAGE] = 1
    reader, writer = os.pipe()

    def child(write: bool, ranges: list[tuple[int, int]]) -> tuple[list[tuple[int, int]] | None, int]:
        """Fork, rehearse, write or not, and tell; returns what was told and how many pages it had of its own before."""
        pid = os.fork()
        if pid == 0:
            own, _ = os.pipe()
            hints.rehearse(own, ranges)
            before = len(list(hints._own_pages()))
            if write:
                for page in range(1000, 1900):
                    area[page * PAGE] = 2
            os.write(writer, b"%d\n" % before)
            hints.tell(writer, 0, True)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        data = os.read(reader, 1 << 16)
        first, _, rest = data.partition(b"\n")
        return told(rest), int(first)

    pages, before = child(write=True, ranges=[])
    assert pages is not None
    if not pages:
        pytest.skip("this kernel does not tell which pages are a process's own")
    assert sum(count for _, count in pages) >= 900 > before
    _, rehearsed = child(write=False, ranges=pages)
    assert rehearsed >= 900 or rehearsed == before  # before Linux 5.14 nothing is taken ahead


def test_rehearsal_ends_when_somebody_waits() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"x")
    hints.rehearse(reader, [(1, 1)] * 1000)  # pages that are not there
    assert os.read(reader, 1) == b"x"
