"""Processes that are ended by signals, and those that they started."""

import os
import select
import signal
from contextlib import suppress
from pathlib import Path

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a run."""


def interruptible() -> None:
    """Reset the handling of signals, which nohup and a shell's background ignore."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL)


def members(group: int) -> list[int]:
    """Return the living processes of a group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, own_group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # it has just ended
        if int(own_group) == group and state != "Z":
            found.append(int(path.parent.name))
    return found


def wait_for_end(group: int) -> None:
    """Wait until no process of a group lives."""
    while living := members(group):
        with suppress(ProcessLookupError):  # it has just ended
            descriptor = os.pidfd_open(living[0])
            select.select([descriptor], [], [])
            os.close(descriptor)
