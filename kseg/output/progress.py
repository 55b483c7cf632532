"""Messages, input errors and the progress bar on stderr."""

import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from kseg.errors import KsegError
from kseg.output.streams import takes_colors
from kseg.system.terminal_text import escaped_text

if TYPE_CHECKING:
    from rich.live import Live
    from rich.progress import Progress, TaskID


PATIENCE = 1.0
"""Seconds before a bar appears."""


class ProgressBar:
    """Shows the progress through a file; a context manager."""

    def __init__(self, *, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._start = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._label = ""

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, label: str, done: int, total: int) -> None:
        """Show that `done` of `total` bytes of `label` are read."""
        if not self._is_wanted or (self._bar is None and time.monotonic() - self._start < PATIENCE):
            return
        if self._bar is None:
            self._bar = _new_bar()
        if self._task is None or label != self._label:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task, self._label = self._bar.add_task(escaped_text(label), total=total), label
        self._bar.update(self._task, completed=done)

    def counting(self, label: str, total: int = 0) -> "Count":
        """Return a function that takes each piece's bytes when it is done; the bar shows their sum."""
        return Count(self, label, total)


class Count:
    """Sums of bytes that a bar shows: done bytes and expected bytes."""

    def __init__(self, bar: ProgressBar, label: str, total: int) -> None:
        self._bar = bar
        self._label = label
        self._done, self._total = 0, total

    def expect(self, size: int) -> None:
        """Add bytes to the expected total."""
        self._total += size

    def __call__(self, size: int) -> None:
        """Add bytes to the done total."""
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


class LiveLine:
    """Shows changing lines in one place; a context manager, which removes the last line. Needs a terminal."""

    def __init__(self, *, wanted: bool) -> None:
        self._is_wanted = wanted and sys.stderr.isatty()
        self._live: Live | None = None
        self._shown = ""

    def __enter__(self) -> "LiveLine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, line: str) -> None:
        """Replace the shown line."""
        if not self._is_wanted or line == self._shown:
            return
        from rich.text import Text

        self._shown = line
        if self._live is None:
            self._live = _new_live()
        self._live.update(Text(escaped_text(line), overflow="ellipsis", no_wrap=True), refresh=True)


def _new_live() -> "Live":
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
    live.start()
    return live


def talk(*lines: str) -> None:
    """Print some lines, escaped for a terminal. Does nothing without a readable stderr."""
    if not lines:
        return
    try:
        sys.stderr.write("".join(f"{escaped_text(line)}\n" for line in lines))
        sys.stderr.flush()
    except (OSError, AttributeError):
        return  # stderr is full or closed


def talk_error(line: str, *, color: bool | None = None) -> None:
    """Print the error that ends a command, its `kseg:` in red; `color` None lets the terminal and NO_COLOR decide."""
    if not takes_colors(sys.stderr, wanted=color):
        talk(line)
        return
    name, _, text = line.partition(" ")
    with suppress(OSError):
        sys.stderr.write(f"\x1b[31m{name}\x1b[0m {escaped_text(text)}\n")
        sys.stderr.flush()


class Talk:
    """Messages of a command on stderr while it works: notes, errors of single paths, progress.

    is_quiet: print only problems. progress: show a bar; None lets the terminals decide. status: the exit status that
    follows from the messages, 0 without a problem.
    """

    def __init__(self, *, is_quiet: bool = False, progress: bool | None = None) -> None:
        self.is_quiet, self.progress, self.status = is_quiet, progress, 0

    def note(self, *texts: str) -> None:
        """Print notes of kseg, unless the user wants only problems."""
        for text in () if self.is_quiet else texts:
            self.warn(text)

    def say(self, *lines: str) -> None:
        """Print some lines."""
        talk(*lines)

    def warn(self, text: str) -> None:
        """Print a line of kseg."""
        talk(f"kseg: {text}")

    def refuse(self, error: KsegError) -> None:
        """Report an error, and keep its status."""
        self.warn(str(error))
        self.end_with(error.status)

    def end_with(self, status: int) -> None:
        """Raise the exit status to this value, unless it is higher already."""
        self.status = max(self.status, int(status))

    def bar(self, *, mixes: bool = True) -> ProgressBar:
        """Return the bar, shown only if output doesn't mix with it.

        mixes: False for output that comes later.
        """
        wanted = False if self.is_quiet else self.progress
        if wanted is None:
            wanted = sys.stderr.isatty() and not (mixes and sys.stdout.isatty())
        return ProgressBar(is_wanted=wanted)
