"""A line on a terminal that is replaced by the next one, below what else is said on stderr."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from kseg.output.printable import printable

if TYPE_CHECKING:
    from rich.live import Live


class LiveLine:
    """Shows lines in one place; a context manager, which removes the last one. Shows nothing where no terminal is."""

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
        """Shows a line in place of the one before."""
        if not self._is_wanted or line == self._shown:
            return
        from rich.text import Text

        self._shown = line
        if self._live is None:
            self._live = _new_live()
        self._live.update(Text(printable(line), overflow="ellipsis", no_wrap=True), refresh=True)


def _new_live() -> "Live":
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
    live.start()
    return live
