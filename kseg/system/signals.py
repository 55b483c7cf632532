"""Signals that end a run, and the deferred import of Python's `inspect`."""

import os
import signal
import sys
from importlib import import_module
from threading import Lock
from time import monotonic
from types import FrameType, ModuleType, TracebackType

INTERRUPTED = 130
"""The exit status that shells use after SIGINT."""
SAME_WISH_SECONDS = 1.0
"""The time in which another signal is a repetition: a closed terminal and a stopped service send several."""
_STATUS_OF_SIGNAL = 128
_COUNTING = Lock()
"""Threads have such sections too; the signal's handler only reads their number."""
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class _Ended:
    """The signal that ends this run, and its time; `waiting` is one that came while signals had to wait."""

    number: int | None = None
    since = 0.0
    waiting: int | None = None
    sections = 0


def leave_at_interrupt() -> None:
    """Let such a signal end the process at once and quietly from now on.

    A KeyboardInterrupt during an import can become any other exception, for instance while a class is being created.
    """
    for number in ENDING:
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL, _raise):
            signal.signal(number, _leave)


def raise_at_interrupt() -> None:
    """Let such a signal raise KeyboardInterrupt from now on, if `leave_at_interrupt` changed it."""
    for number in ENDING:
        if signal.getsignal(number) is _leave:
            signal.signal(number, _raise)


def interrupted_status() -> int:
    """Return the exit status after a KeyboardInterrupt: 128 plus the signal's number."""
    return INTERRUPTED if _Ended.number is None else _STATUS_OF_SIGNAL + _Ended.number


def was_asked_to_end() -> bool:
    """Return True if the signal was meant for kseg, unlike Ctrl-C, which a terminal sends to all its processes."""
    return _Ended.number not in (None, signal.SIGINT)


class Uninterrupted:
    """A context in which such a signal waits, so that its body runs completely."""

    def __enter__(self) -> None:
        with _COUNTING:
            _Ended.sections += 1

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        with _COUNTING:
            _Ended.sections -= 1
        number = _Ended.waiting
        if _Ended.sections == 0 and number is not None:
            _Ended.waiting = None
            if kind is None and _Ended.number is None:
                _raise(number, None)


def _raise(number: int, _: FrameType | None) -> None:
    if _Ended.sections:
        _Ended.waiting = number
        return
    now = monotonic()
    if _Ended.number is not None and now - _Ended.since < SAME_WISH_SECONDS:
        return
    _Ended.number, _Ended.since = number, now
    raise KeyboardInterrupt


def _leave(number: int, _: FrameType | None) -> None:
    os._exit(_STATUS_OF_SIGNAL + number)


NAME = "inspect"


class _Inspect(ModuleType):
    """A substitute for the module until more is needed than click and the compiled kernel always use."""

    CO_OPTIMIZED, CO_NEWLOCALS, CO_VARARGS, CO_VARKEYWORDS = 1, 2, 4, 8
    CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 32, 128, 512

    @staticmethod
    def cleandoc(text: str) -> str:
        """Return a text without its indentation, as the module's own function does."""
        if "\n" not in text:
            return text.expandtabs().lstrip()
        cleaned: str = _own().cleandoc(text)
        return cleaned

    def __getattr__(self, name: str) -> object:
        return getattr(_own(), name)


def put_off_inspect() -> None:
    """Make `import inspect` return the substitute from now on, unless it is imported already."""
    sys.modules.setdefault(NAME, _Inspect(NAME))


def _own() -> ModuleType:
    """Import the module itself, which later imports get, too."""
    if isinstance(sys.modules.get(NAME), _Inspect):
        del sys.modules[NAME]
    return import_module(NAME)
