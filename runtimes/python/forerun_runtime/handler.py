"""The handler: the process that executes one activation and is gone with its result."""

from __future__ import annotations

# The C modules under signal and threading, as in the initializer.
import _signal
import _thread
import fcntl
import os
import sys

from . import hints, kernel, loader, text, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Callable, NoReturn

_OK = b'{"status":"ok"}'
_READY = wire.join(wire.READY, b"{}")
_SAMPLE = b'{"a":["b",1,{"c":"\\u00e9"}]}'
_SENTENCE = 8000  # characters


class Failure(Exception):
    """The activation has no result; the text is for the action's author."""


def hold_signals() -> set[int]:
    """Have what other handlers send change nothing here until the activation comes; return the mask for serve."""
    return _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())


def _release_signals(mask: set[int]) -> None:
    """Forget what was sent, by processes that are gone, and hear what is sent from now on."""
    while _signal.sigpending():
        _signal.sigtimedwait(_signal.sigpending(), 0)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def serve(
    fd: int,
    function: Callable[[dict[str, Any]], Any],
    keep: bool,
    mask: set[int],
    told: int,
    pages: Sequence[tuple[int, int]] | None,
) -> NoReturn:
    """Say that this process is ready, execute the activation that comes and answer; with keep, go on with the next.

    Between activations signals are held. The first activation hears the signals of mask.
    Its hints for others are written to told; pages are the learned ones, None if this process is to learn them.
    """
    modules = len(sys.modules)
    _touch(function)
    wire.write(fd, wire.join(wire.READY, b'{"pid":%d}' % os.getpid()))
    hints.rehearse(fd, pages or ())
    pid = os.getpid()
    wire.write(fd, _execute_next(fd, function, pid, mask))
    hints.tell(told, modules, pages is None)
    answer = b""
    while keep and _is_still():
        mask = hold_signals()
        kernel.set_dumpable(0)
        wire.write(fd, answer + _READY)  # at once: the server wakes up for each
        answer = _execute_next(fd, function, pid, mask)
    wire.write(fd, answer)
    os._exit(0)


def _execute_next(fd: int, function: Callable[[dict[str, Any]], Any], pid: int, mask: set[int]) -> bytes:
    """Execute the activation that comes, and return its Result, as a frame; hear the signals of mask from then on."""
    frame = wire.read(fd)
    if frame is None or frame.type != wire.RUN:
        os._exit(0)
    kernel.set_dumpable(1)  # the initializer and spares are not; this process may look at itself
    _have_output_wait()
    _release_signals(mask)
    _set_environment(frame.header.get("env", {}))
    _have_folder()
    result = _execute(function, frame)
    if os.getpid() != pid:  # the function forked, and this is the child that came back from it
        os._exit(0)
    return result


def _is_still() -> bool:
    """Tell whether nothing of an activation goes on by itself; of its children that ended nothing is left then."""
    kernel.reap()
    return _thread._count() == 0 and _signal.getitimer(_signal.ITIMER_REAL)[0] == 0


def _touch(function: Callable[[dict[str, Any]], Any]) -> None:
    """Take the copy-on-write faults of the path to come, before anyone waits."""
    wire.join(wire.RESULT, _OK, text.dumps(text.loads(_SAMPLE)))
    _set_environment({"__OW_ACTIVATION_ID": ""})
    kernel.set_dumpable(0)
    getattr(function, "__code__", None)
    flush()


def _set_environment(variables: dict[str, str]) -> None:
    for name, value in variables.items():
        kernel.set_variable(name.encode(), value.encode())


def _have_output_wait() -> None:
    """Have what is printed wait for room in the pipes, and send no signals, whatever an activation before has set."""
    for fd in (1, 2):  # all have the same
        try:
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            if flags & (os.O_NONBLOCK | os.O_ASYNC):
                fcntl.fcntl(fd, fcntl.F_SETFL, flags & ~(os.O_NONBLOCK | os.O_ASYNC))
        except OSError:  # an activation before has closed it
            continue


def _have_folder() -> None:
    """Be in the folder of the code if the one that an activation before, or the code, went to is gone."""
    try:
        os.getcwd()
    except OSError:
        os.chdir(loader.CODE_FOLDER)


def _execute(function: Callable[[dict[str, Any]], Any], frame: wire.Frame) -> bytes:
    """Call the function and return the Result, as a frame."""
    try:
        payload = _result(_call(function, frame.payload), frame.header.get("limit", wire.MAX_PAYLOAD_BYTES))
        return wire.join(wire.RESULT, _OK, payload)
    except Failure as failure:
        return wire.pack(wire.RESULT, {"status": "error", "error": str(failure)[:_SENTENCE]})
    finally:
        flush()


def _call(function: Callable[[dict[str, Any]], Any], payload: bytes) -> Any:
    try:
        arguments = text.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Failure(f"The input cannot be read by this Python: {error}.") from None
    try:
        value = function(arguments)
        return _await(value) if hasattr(value, "__await__") else value
    except SystemExit as error:
        raise Failure(f"The action called sys.exit({error.code!r}): it must return a dictionary.") from None
    except BaseException as error:
        report(error)
        foreign = loader.find_foreign() if isinstance(error, ImportError) else None
        reason = f"{describe(error)}. {foreign}" if foreign else describe(error)
        raise Failure(f"An error has occurred: {reason}. See the logs for details.") from None


def _await(value: Any) -> Any:
    import asyncio

    async def wait() -> Any:
        return await value

    return asyncio.run(wait())


def _result(value: Any, limit: int) -> bytes:
    if not isinstance(value, (dict, list)):
        raise Failure("The action did not return a dictionary or array.")
    try:
        payload = text.dumps(value)
    except (TypeError, ValueError, RecursionError, UnicodeError) as error:
        raise Failure(f"The action returned a dictionary that is not JSON: {error}.") from None
    except BaseException as error:
        raise Failure(f"The action's result cannot be written as JSON: {describe(error)}.") from None
    if len(payload) > limit:
        raise Failure(
            f"The action produced a response that exceeded the allowed length: {len(payload)} > {limit} bytes."
        )
    return payload


def describe(error: BaseException) -> str:
    """Name an exception with its text in one line, whatever its __str__ does."""
    try:
        words = " ".join(str(error).split())[:500]
    except BaseException:
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def report(error: BaseException) -> None:
    """Write a traceback to the log, without the runtime's own frames at its beginning."""
    import traceback

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
        trace = trace.tb_next
    try:
        traceback.print_exception(type(error), error, trace, file=sys.__stderr__)
    except BaseException as second:
        os.write(2, f"{describe(error)} (its traceback cannot be shown: {describe(second)})\n".encode())


def flush() -> None:
    """Write what is printed and waits for the end of its line."""
    out, err = sys.stdout, sys.stderr
    for stream in (out, err, *(s for s in (sys.__stdout__, sys.__stderr__) if s is not out and s is not err)):
        try:
            stream.flush()  # type: ignore[union-attr]
        except BaseException:  # noqa: S112 - closed, replaced, or broken by the function: nothing to save
            continue
