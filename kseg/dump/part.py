"""What of a directory's logs is printed, if not all of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kseg.log.selector import Selector


@dataclass(slots=True)
class Part:
    """What of logs is selected, while they are printed one after another.

    start: where to begin in the next log; None lets its index tell. skip: how many of what is selected to leave out,
    since only the last are wanted; left: how many are wanted yet. end: up to where the last log was read.
    last_path: its path. is_followed: a log's torn or zero tail is what isn't written yet.
    """

    selector: "Selector"
    start: int | None = None
    skip: int = 0
    left: int | None = None
    end: int = 0
    last_path: str | None = None
    is_followed: bool = False

    @property
    def is_full(self) -> bool:
        """Whether nothing is wanted any more."""
        return self.left == 0 or self.selector.is_done
