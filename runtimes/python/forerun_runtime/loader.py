"""Loads an action's code into the module that its functions live in."""

from __future__ import annotations

import builtins
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import FunctionType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

MODULE = "main__"  # not "__main__": what stands under `if __name__ == "__main__"` is for the command line
CODE_FOLDER = os.environ.get("FORERUN_CODE", "/action")
PACKAGES_FOLDER = os.environ.get("FORERUN_PACKAGES", "/forerun/packages")
_ENTRY = os.path.join(CODE_FOLDER, "__main__.py")
_VARARGS, _VARKEYWORDS, _COROUTINE = 0x04, 0x08, 0x80  # the flags CO_... of inspect
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class LoadError(Exception):
    """The code has no usable entry point; the text is for its author."""


def load(code: bytes, binary: bool, main: str) -> Callable[[dict[str, Any]], Any]:
    """Load source text, or an archive when binary, and return its function main; "" is the default."""
    _prepare_path()
    if binary:
        from . import archive

        archive.extract(code, CODE_FOLDER)
        _add_virtualenv(os.path.join(CODE_FOLDER, "virtualenv"))
        if not os.path.isfile(_ENTRY):
            raise LoadError("the archive has no file __main__.py at its top")
    else:
        with open(_ENTRY, "wb") as file:
            file.write(code)
    try:
        module = _execute()
    except ImportError as error:
        foreign = find_foreign() if binary else None
        if foreign is None:
            raise
        raise LoadError(f"{error}. {foreign}") from error
    return _find(module, main)


def find_foreign() -> str | None:
    """Return what is wrong if the archive has a package that is compiled for another Python, and none for this one."""
    own = f".cpython-{sys.version_info.major}{sys.version_info.minor}-"
    for folder, _, names in os.walk(CODE_FOLDER):
        for name in names:
            stem, tag, rest = name.partition(".cpython-3")
            minor = rest.partition("-")[0].rstrip("m")  # of Python 3.7 and older, which has cpython-37m
            if tag and minor.isdigit() and name.endswith(".so") and not any(n.startswith(stem + own) for n in names):
                path = os.path.relpath(os.path.join(folder, name), CODE_FOLDER)
                return (
                    f"The archive's {path} is compiled for Python 3.{minor}, and Python {_PYTHON} runs the action: "
                    f"install the packages with Python {_PYTHON}, or name a kind of the other version"
                )
    return None


def _prepare_path() -> None:
    sys.path[:0] = [folder for folder in (CODE_FOLDER, PACKAGES_FOLDER) if os.path.isdir(folder)]
    if os.path.isdir(CODE_FOLDER):
        os.chdir(CODE_FOLDER)
    for name in ("exit", "quit"):  # the site module, which is not loaded, would define them
        setattr(builtins, name, sys.exit)


def _add_virtualenv(folder: str) -> None:
    """Let an archive bring its packages in the folder "virtualenv", as in OpenWhisk."""
    own, others = _find_packages(os.path.join(folder, "lib"))
    if own is None and others:
        raise LoadError(
            f"the packages in virtualenv are for Python {', '.join(others)}, and Python {_PYTHON} runs the action: "
            f"make the virtualenv with Python {_PYTHON}, or name a kind of the other version"
        )
    activate = os.path.join(folder, "bin", "activate_this.py")
    if os.path.isfile(activate):
        _activate(activate)
    if own is not None and own not in sys.path:
        _add_packages(own)


def _find_packages(lib: str) -> tuple[str | None, list[str]]:
    """Return the folder of packages for this Python, if there is one, and the versions that others are for."""
    try:
        versions = {name[len("python") :]: name for name in os.listdir(lib) if name.startswith("python")}
    except OSError:
        return None, []
    folders = {version: os.path.join(lib, name, "site-packages") for version, name in versions.items()}
    found = {version: folder for version, folder in folders.items() if os.path.isdir(folder)}
    return found.get(_PYTHON), sorted(found.keys() - {_PYTHON})


def _activate(script: str) -> None:
    """Execute a virtualenv's script for programs that use it without its interpreter."""
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec", dont_inherit=True)
    exec(code, {"__file__": script, "__name__": "__main__"})  # noqa: S102 - it is a part of the action's code


def _add_packages(folder: str) -> None:
    """Put a folder of packages behind the code's, with what its .pth files name."""
    if not any(name.endswith(".pth") for name in os.listdir(folder)):
        sys.path.insert(1, folder)
        return
    import site

    count = len(sys.path)
    site.addsitedir(folder)
    sys.path[1:] = sys.path[count:] + sys.path[1:count]


def _execute() -> ModuleType:
    """Execute the code's file as a module, which child processes (multiprocessing) can import, too."""
    own = os.path.join(CODE_FOLDER, MODULE + ".py")
    if not os.path.lexists(own):
        os.symlink(os.path.basename(_ENTRY), own)
    with open(_ENTRY, "rb") as file:
        code = compile(file.read(), _ENTRY, "exec", dont_inherit=True)
    loader = SourceFileLoader(MODULE, _ENTRY)
    module = ModuleType(MODULE)
    # Its name has multiprocessing not execute the file once more, in each child, as the main module.
    module.__spec__ = ModuleSpec("__main__", loader, origin=_ENTRY)
    module.__spec__.has_location = True
    module.__loader__, module.__file__ = loader, _ENTRY
    sys.modules[MODULE] = sys.modules["__main__"] = module
    exec(code, module.__dict__)  # noqa: S102 - executing the action's code is what this program is for
    return module


def _find(module: ModuleType, main: str) -> Callable[[dict[str, Any]], Any]:
    name = main or _default_name(module)
    function = getattr(module, name, None)
    if function is None:
        raise LoadError(f"the code has no function named {name!r}{_hint(module)}")
    if not callable(function):
        raise LoadError(f"{name!r} is a {type(function).__name__}, not a function")
    needed = _needed(function)
    if len(needed) > 1:
        raise LoadError(
            f"the function {name}({', '.join(needed)}) needs {len(needed)} arguments, and an action has one, "
            f"the dictionary of parameters: leave the others out, or give them default values"
        )
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & _COROUTINE:
        import asyncio  # noqa: F401 - so that handlers find it loaded
    return function if _takes_one(name, function) else _without_parameters(function)


def _takes_one(name: str, function: Any) -> bool:
    """Tell whether a function can be given the dictionary; if not, it has no parameters at all."""
    if type(function) is not FunctionType:
        return True
    code = function.__code__
    if code.co_argcount > 0 or code.co_flags & _VARARGS:
        return True
    if code.co_kwonlyargcount > 0 or code.co_flags & _VARKEYWORDS:
        raise LoadError(
            f"the function {name} takes its parameters by keyword only, and an action has one argument, "
            f"the dictionary of parameters: write def {name}(args)"
        )
    return False


def _without_parameters(function: Callable[[], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda _: function()


_HANDLERS = ("handler", "lambda_handler")  # what functions are called elsewhere


def _handlers(module: ModuleType) -> list[str]:
    return [name for name in _HANDLERS if callable(getattr(module, name, None))]


def _default_name(module: ModuleType) -> str:
    """Return the name of the entry point that the action does not name: main, or the only handler."""
    handlers = _handlers(module)
    return handlers[0] if len(handlers) == 1 and not hasattr(module, "main") else "main"


def _hint(module: ModuleType) -> str:
    handlers = _handlers(module)
    if handlers:
        return f": name one of {' and '.join(handlers)} as the action's main function"
    return ": write def main(args), which returns the result as a dictionary; what the code prints goes to the log"


def _needed(function: Any) -> list[str]:
    """Return the positional parameters of a Python function that have no default value."""
    if type(function) is not FunctionType:
        return []
    code = function.__code__
    return list(code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())])
