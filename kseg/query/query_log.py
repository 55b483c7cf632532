"""What queries read, and what was wrong with it: DuckDB knows nothing of damage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kseg.errors import KsegError
from kseg.export.plan import WorkOrder
from kseg.log.partition.log_dir import Refuse

Key = tuple[str, int | None]
"""A partition: topic and number."""


@dataclass(slots=True)
class Scan:
    """A table that a query reads.

    columns: those that it needs. partitions, size: how many partitions, and bytes of logs, it reads; those_in_all,
    size_in_all: of how many; None for tables that aren't read by pieces. orders: where exactly.
    """

    table: str
    columns: Sequence[str]
    condition: str | None = None
    partitions: int | None = None
    those_in_all: int | None = None
    size: int | None = None
    size_in_all: int | None = None
    orders: list[WorkOrder] = field(default_factory=list)


class QueryLog:
    """What the queries of a session have met.

    is_dry: nothing is read, only planned. scans: the tables that were asked for, in order. damages: lines on what is
    missing in the answers; notes: on what else a user should know; both are said once. failure: what ended a scan, for
    DuckDB tells only its text. disordered: partitions whose offsets don't rise, found out while they were read.
    """

    def __init__(self, refuse: Refuse, tell: Callable[[str], None] | None = None) -> None:
        """Takes what reports files that can't be read while others can; and what tells damages and notes at once."""
        self._refuse = refuse
        self._tell = tell
        self.is_dry = False
        self.scans: list[Scan] = []
        self.damages: dict[str, None] = {}
        self.notes: dict[str, None] = {}
        self.failure: BaseException | None = None
        self.disordered: set[Key] = set()
        self._refused: set[str] = set()

    def note(self, text: str) -> None:
        """Takes what a user should know."""
        self._take(self.notes, text)

    def damage(self, text: str) -> None:
        """Takes what is missing in the answer."""
        self._take(self.damages, text)

    def _take(self, known: dict[str, None], text: str) -> None:
        if text not in known:
            known[text] = None
            if self._tell is not None:
                self._tell(text)

    def refuse_once(self, error: KsegError) -> None:
        """Reports a file that can't be read, however many scans meet it."""
        if str(error) not in self._refused:
            self._refused.add(str(error))
            self._refuse(error)  # type: ignore[arg-type]


class DisorderedError(KsegError):
    """A partition's offsets don't rise, so that it must be read in another way; some of it has been read already."""

    status = 1

    def __init__(self, key: Key, path: str) -> None:
        super().__init__(
            "offsets don't rise, so that rows may have come twice: with ORDER BY a query gets each once", path
        )
        self.key = key


def condition_text(condition: object) -> str | None:
    """A condition as Arrow shows it, in a line; None for none."""
    return None if condition is None else " ".join(str(condition).split())
