import os
import signal
import subprocess
from collections.abc import Iterator

import leftovers
import pytest


@pytest.fixture
def orphan() -> Iterator[int]:
    """Have a process whose parent has ended."""
    out = leftovers.adopt(lambda: str(subprocess.Popen(["sleep", "1000"]).pid))
    yield int(out)
    os.kill(int(out), signal.SIGKILL)
    assert leftovers.left(leftovers.marks()) == []


def test_a_process_that_lost_its_parent_is_named(orphan: int) -> None:
    assert leftovers.left(leftovers.marks(), patience=0) == [f"process {orphan}: sleep 1000"]


def test_what_fails_has_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert leftovers.adopt(lambda: str(1 // 0)) == ""
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_what_was_there_before_does_not_count() -> None:
    before = leftovers.marks()
    assert leftovers.left(before | {"mount of another server"}, patience=0) == []


def test_a_new_mount_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = leftovers.marks()
    monkeypatch.setattr(leftovers, "marks", lambda: before | {"mount of a test"})
    assert leftovers.left(before, patience=0) == ["mount of a test"]
