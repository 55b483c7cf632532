"""Signals that end a run."""

import os
from threading import Lock
from time import monotonic
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # the C part of `signal`, whose enums cost each start 3 M instructions

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
