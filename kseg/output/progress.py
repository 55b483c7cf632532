"""A bar on stderr for what takes longer than a second, on a terminal."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from kseg.output.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0
"""Seconds without a bar."""


class ProgressBar:
    """Shows how much of a file is read; a context manager.

    wanted: None lets the terminals decide: a bar only where stderr is one and stdout isn't, so that they don't mix.
    """

    def __init__(self, wanted: bool | None = None) -> None:
        self._is_wanted = sys.stderr.isatty() and not sys.stdout.isatty() if wanted is None else wanted
        self._start = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._label = ""

    @classmethod
    def before_output(cls, wanted: bool | None = None) -> "ProgressBar":
        """The bar of what prints only when it has ended: nothing mixes with it, even if both go to one terminal."""
        return cls(sys.stderr.isatty() if wanted is None else wanted)

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, label: str, done: int, total: int) -> None:
        """Shows that `done` of `total` bytes of `label` are read."""
        if not self._is_wanted or (self._bar is None and time.monotonic() - self._start < PATIENCE):
            return
        if self._bar is None:
            self._bar = _new_bar()
        if self._task is None or label != self._label:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task, self._label = self._bar.add_task(printable(label), total=total), label
        self._bar.update(self._task, completed=done)

    def counting(self, label: str, total: int = 0) -> "Count":
        """A function to call with each piece's bytes when it is done; the bar shows their sum."""
        return Count(self, label, total)


class Count:
    """Sums of bytes that a bar shows: those that are done, of those that are known of."""

    def __init__(self, bar: ProgressBar, label: str, total: int) -> None:
        self._bar = bar
        self._label = label
        self._done, self._total = 0, total

    def expect(self, size: int) -> None:
        """Takes how many more bytes there are to do."""
        self._total += size

    def __call__(self, size: int) -> None:
        """Takes how many more bytes are done."""
        self._done += size
        self._bar.show(self._label, self._done, self._total)


def _new_bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.start()
    return bar
