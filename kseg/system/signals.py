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
"""Another signal within this time means nothing new: a closed terminal and a stopped service send several."""
_STATUS_OF_SIGNAL = 128
_COUNTING = Lock()
"""Threads have such sections too; the signal's handler only reads how many there are."""
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class _Ended:
    """The signal that ends this run, and when it came; `waiting` is one that came while signals had to wait."""

    number: int | None = None
    since = 0.0
    waiting: int | None = None
    sections = 0


def leave_at_interrupt() -> None:
    """From now on, such a signal ends the process at once and quietly.

    A KeyboardInterrupt during an import can become any other exception, for instance while a class is being created.
    """
    for number in ENDING:
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL, _raise):
            signal.signal(number, _leave)


def raise_at_interrupt() -> None:
    """From now on, such a signal raises KeyboardInterrupt, if `leave_at_interrupt` changed it."""
    for number in ENDING:
        if signal.getsignal(number) is _leave:
            signal.signal(number, _raise)


def interrupted_status() -> int:
    """The exit status after a KeyboardInterrupt: 128 and the signal's number."""
    return INTERRUPTED if _Ended.number is None else _STATUS_OF_SIGNAL + _Ended.number


def was_asked_to_end() -> bool:
    """Whether the signal was meant for kseg, unlike Ctrl-C, which a terminal sends to whatever runs there."""
    return _Ended.number not in (None, signal.SIGINT)


class Uninterrupted:
    """A context in which such a signal waits, so that what happens inside happens completely."""

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
    """Stands for the module until something is asked for other than what click and the compiled kernel always ask."""

    CO_OPTIMIZED, CO_NEWLOCALS, CO_VARARGS, CO_VARKEYWORDS = 1, 2, 4, 8
    CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 32, 128, 512

    @staticmethod
    def cleandoc(text: str) -> str:
        """As the module's own: a text without its indentation."""
        if "\n" not in text:
            return text.expandtabs().lstrip()
        cleaned: str = _own().cleandoc(text)
        return cleaned

    def __getattr__(self, name: str) -> object:
        return getattr(_own(), name)


def put_off_inspect() -> None:
    """From now on, `import inspect` gives what stands for it, if it isn't there already."""
    sys.modules.setdefault(NAME, _Inspect(NAME))


def _own() -> ModuleType:
    """The module itself, which everyone gets that imports it later."""
    if isinstance(sys.modules.get(NAME), _Inspect):
        del sys.modules[NAME]
    return import_module(NAME)
