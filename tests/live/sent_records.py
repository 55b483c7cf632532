"""Records sent to a broker, and those that an export must have, by acknowledgements and the broker's answers alone."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from threading import Lock
from typing import NamedTuple


class Incarnation(NamedTuple):
    """A partition of a topic; `made` counts how often the topic was recreated."""

    topic: str
    made: int
    partition: int


class Sent(NamedTuple):
    """A record that the broker took. `timestamp`: milliseconds; `transaction`: its number, None outside of any."""

    number: int
    log: Incarnation
    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    transaction: int | None


class Bounds(NamedTuple):
    """The broker's offsets of a partition: log start offset, last stable offset, high watermark."""

    start: int
    stable: int
    end: int


class SentRecords:
    """All records that a broker took, by their numbers; safe for several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sent: dict[int, Sent] = {}
        self._latest: dict[tuple[Incarnation, bytes], int] = {}
        self._outcomes: dict[int, bool] = {}
        self._next = 0

    def next_number(self, log: Incarnation, key: bytes) -> int:
        """Return a number for a record to be sent, which may supersede others of its key from now on."""
        with self._lock:
            self._next += 1
            self._latest[log, key] = self._next
            return self._next

    def took(self, record: Sent) -> None:
        """Note an acknowledged record."""
        with self._lock:
            self._sent[record.number] = record

    def note_end(self, transaction: int, *, is_committed: bool) -> None:
        """Note the end of a transaction."""
        with self._lock:
            self._outcomes[transaction] = is_committed

    def all(self) -> dict[int, Sent]:
        """Return the records taken so far."""
        with self._lock:
            return dict(self._sent)

    def latest(self, topics: Collection[str]) -> list[Sent]:
        """Return the last record of each key in the given topics: no cleaner may remove them."""
        with self._lock:
            numbers = [number for (log, _), number in self._latest.items() if log.topic in topics]
            return [self._sent[number] for number in numbers if number in self._sent]

    def is_committed(self, record: Sent) -> bool | None:
        """Return True if a record counts for readers of committed records, or None while its transaction is open."""
        with self._lock:
            return True if record.transaction is None else self._outcomes.get(record.transaction)


class Owed:
    """The records that an export must have, after some runs of it; `compacted`: topics that are cleaned."""

    def __init__(self, sent: SentRecords, compacted: Collection[str], *, is_committed_only: bool) -> None:
        self._sent = sent
        self._compacted = compacted
        self.is_committed_only = is_committed_only
        self._ranges: dict[Incarnation, list[tuple[int, int]]] = defaultdict(list)
        self._latest: set[int] = set()

    def add_run(self, before: Mapping[Incarnation, Bounds], after: Mapping[Incarnation, Bounds]) -> None:
        """Note a successful run: it owes the records that were in the logs both before its start and after its end."""
        for log in before.keys() & after.keys():
            end = before[log].stable if self.is_committed_only else before[log].end
            if after[log].start < end:
                self._ranges[log].append((after[log].start, end))
        for record in self._sent.latest(self._compacted):
            if record.log not in before or record.log not in after or not self._sent.is_committed(record):
                continue
            if after[record.log].start <= record.offset < before[record.log].stable:
                self._latest.add(record.number)

    def numbers(self) -> set[int]:
        """Return the owed records by number."""
        joined = {log: _join(ranges) for log, ranges in self._ranges.items()}
        owed = set(self._latest)
        for number, record in self._sent.all().items():
            if record.log.topic not in self._compacted and self.is_wanted(record):
                owed.update({number} if _holds(joined.get(record.log, ()), record.offset) else ())
        return owed

    def is_wanted(self, record: Sent) -> bool:
        """Return True if a record may be in the table at all."""
        return not self.is_committed_only or self._sent.is_committed(record) is True


def superseded_numbers(records: Iterable[Sent]) -> set[int]:
    """Return the numbers of records that others of the same key in the same log superseded."""
    latest: dict[tuple[Incarnation, bytes], Sent] = {}
    found = set()
    for record in sorted(records, key=lambda record: (record.log, record.offset)):
        earlier = latest.get((record.log, record.key))
        if earlier is not None:
            found.add(earlier.number)
        latest[record.log, record.key] = record
    return found


def _join(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((first, end))
    return found


def _holds(ranges: Iterable[tuple[int, int]], offset: int) -> bool:
    return any(first <= offset < end for first, end in ranges)
