"""The system calls, and what the C library does wrong for processes that stay."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forerun_runtime import kernel

NAME = "FORERUN_TEST_VARIABLE"


@pytest.fixture(params=["in its place", "by os.putenv"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "by os.putenv":
        monkeypatch.setattr(kernel, "_line", None)
    yield
    os.environ.pop(NAME, None)


def set_variable(value: str) -> None:
    kernel.set_variable(NAME.encode(), value.encode())


def seen() -> list[str | None]:
    """Return what this process, and a child that inherits the environment, see of the variable."""
    child = subprocess.run(["/bin/sh", "-c", f'printf %s "${NAME}"'], check=True, stdout=subprocess.PIPE)
    return [os.environ.get(NAME), os.environ[NAME], child.stdout.decode()]


def test_variables_are_seen_by_all() -> None:
    for value in ("one", "", "two ä=b", "x" * 5000, "y" * 6000, "short"):
        set_variable(value)
        assert seen() == [value] * 3


def test_a_variable_that_the_function_changed_is_set_again() -> None:
    set_variable("first")
    os.environ[NAME] = "the function's"
    set_variable("second")
    assert seen() == ["second"] * 3
    del os.environ[NAME]
    set_variable("third")
    assert seen() == ["third"] * 3


def test_values_that_were_are_forgotten() -> None:
    code = f"""
from forerun_runtime import kernel
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4
before = resident()
for i in range(20_000):
    kernel.set_variable(b"{NAME}", b"%0100d" % i)
print(resident() - before)
"""
    folder = Path(__file__).parents[1]
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, cwd=folder)
    assert int(run.stdout) < 1000  # KiB; os.putenv takes 3 MiB


def test_children_that_ended_are_reaped() -> None:
    kernel.reap()
    child = os.fork()
    if child == 0:
        os._exit(3)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    kernel.reap()
    with pytest.raises(ChildProcessError):
        os.waitpid(child, 0)
