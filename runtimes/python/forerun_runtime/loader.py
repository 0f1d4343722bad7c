"""Loads an action's code into the module that its functions live in."""

from __future__ import annotations

import builtins
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

MODULE = "main__"  # not "__main__": what stands under `if __name__ == "__main__"` is for the command line
CODE_FOLDER = os.environ.get("FORERUN_CODE", "/action")
PACKAGES_FOLDER = os.environ.get("FORERUN_PACKAGES", "/forerun/packages")
_COROUTINE = 0x80  # inspect.CO_COROUTINE


class LoadError(Exception):
    """The code has no usable entry point; the text is for its author."""


class SourceLoader:
    """What linecache and inspect ask for the source of code that is in no file."""

    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, _name: str) -> str:
        """Return the module's source (PEP 302)."""
        return self._source

    def create_module(self, _spec: ModuleSpec) -> None:
        """Leave the making of the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code in it."""
        code = compile(self._source, str(module.__file__), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - executing the action's code is what this program is for


def load(code: bytes, binary: bool, main: str) -> Callable[[dict[str, Any]], Any]:
    """Load source text, or a zip archive with a __main__.py when binary, and return its function main."""
    _prepare_path()
    if binary:
        from . import archive

        archive.extract(code, CODE_FOLDER)
        _add_virtualenv()
        code = _entry_file()
    module = _execute(_decode(code))
    function = getattr(module, main, None)
    if function is None:
        raise LoadError(f"the code has no function named {main!r}")
    if not callable(function):
        raise LoadError(f"{main!r} is a {type(function).__name__}, not a function")
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & _COROUTINE:
        import asyncio  # noqa: F401 - so that handlers find it loaded
    return function


def _prepare_path() -> None:
    sys.path[:0] = [folder for folder in (CODE_FOLDER, PACKAGES_FOLDER) if os.path.isdir(folder)]
    if os.path.isdir(CODE_FOLDER):
        os.chdir(CODE_FOLDER)
    for name in ("exit", "quit"):  # the site module, which is not loaded, would define them
        setattr(builtins, name, sys.exit)


def _add_virtualenv() -> None:
    """Let an archive bring its packages in the folder "virtualenv", as in OpenWhisk."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = os.path.join(CODE_FOLDER, "virtualenv", "lib", version, "site-packages")
    if os.path.isdir(folder):
        sys.path.insert(1, folder)


def _entry_file() -> bytes:
    try:
        with open(os.path.join(CODE_FOLDER, "__main__.py"), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise LoadError("the archive has no file __main__.py at its top") from None


def _decode(code: bytes) -> str:
    text: str | None = None
    first_lines = b"".join(code.splitlines(keepends=True)[:2])
    if code.isascii() or b"coding" not in first_lines:
        text = code.decode("utf-8-sig")
    else:
        from importlib.util import decode_source

        text = decode_source(code)
    return text


def _execute(source: str) -> ModuleType:
    loader = SourceLoader(source)
    path = os.path.join(CODE_FOLDER, "__main__.py")
    module = ModuleType(MODULE)
    spec = ModuleSpec(MODULE, loader, origin=path)  # type: ignore[arg-type]
    module.__spec__, module.__loader__, module.__file__ = spec, loader, path  # type: ignore[assignment]
    sys.modules[MODULE] = module
    loader.exec_module(module)
    return module
