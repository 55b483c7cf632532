"""Progress through a selection while its logs are printed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kseg.log.select.selector import Selector


class Part:
    """What of logs is selected, while they are printed one after another.

    start: where to begin in the next log; None lets its index tell. skip: how many of what is selected to leave out,
    since only the last are wanted; left: how many are wanted yet. end: up to where the last log was read.
    last_path: its path. is_followed: a log's torn or zero tail is what isn't written yet.
    """

    def __init__(self, selector: "Selector", left: int | None = None) -> None:
        self.selector = selector
        self.start: int | None = None
        self.skip = 0
        self.left = left
        self.end = 0
        self.last_path: str | None = None
        self.is_followed = False

    @property
    def is_full(self) -> bool:
        """Whether nothing is wanted any more."""
        return self.left == 0 or self.selector.is_done
