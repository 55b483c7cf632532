"""Ctrl-C: while kseg starts and ends nothing is to be cleaned up, so that the process just leaves."""

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""Exit status, as shells have it for what SIGINT ended."""


def leave_at_interrupt() -> None:
    """From now on Ctrl-C ends the process at once and quietly; where it is ignored, as in the background, it stays so.

    A KeyboardInterrupt in an import can become any other exception: a class that is being made turns it into one.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_at_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt again, if `leave_at_interrupt` changed it."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_: int, __: FrameType | None) -> None:
    os._exit(INTERRUPTED)
