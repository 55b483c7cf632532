"""The latest record of each key, as a coordinator loads its partition; of transactions, committed records."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from kseg.errors import plural
from kseg.formats.codes import NO_TIMESTAMP, TAIL_KINDS, DamageKind
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog
from kseg.log.transaction_walk import Ended, TransactionWalk
from kseg.reading.batch import Batch, OnDamage, scan_log
from kseg.reading.blocks import Damage


class Unreadable(NamedTuple):
    """A part of a partition that a view couldn't use: a record, by its offset, or damage; `reason` is one line.

    is_tail: it is at the log's end and normal there, while a broker writes or after it died.
    """

    directory: str
    offset: int | None
    reason: str
    is_tail: bool = False

    def line(self) -> str:
        """Return offset and reason in a line."""
        return f"{self.directory}: {'' if self.offset is None else f'offset {self.offset}: '}{self.reason}"


def unreadable_batch(directory: str, batch: Batch, damage: Damage) -> Unreadable:
    """Return a batch of a partition that has unreadable records."""
    return Unreadable(directory, batch.last_offset, f"{damage.kind} in the batch that ends there: {damage.detail}")


KeyOf = Callable[[bytes], bytes]
TimeOf = Callable[[Record], int]


def record_time(record: Record) -> int:
    """Return the record's own timestamp."""
    return record.timestamp


class LatestRecords:
    """The latest records of the batches added in order; records later than a time are ignored.

    latest: by key; a tombstone stays, as a record without value. pending: the same by producer id, of unfinished
    transactions. unreadable: unreadable parts of the partition. Source: GroupMetadataManager (up to 3.9),
    OffsetMetadataManager.replayEndTransactionMarker.
    """

    def __init__(
        self,
        at_ms: int | None = None,
        key_of: KeyOf = bytes,
        time_of: TimeOf = record_time,
        see: Callable[[Record], None] | None = None,
    ) -> None:
        """Take a time limit, and functions that give a record key and time.

        The limit is in milliseconds since 1970; None for no limit. A record without timestamp (-1) counts as early
        enough. see: called with each record up to the limit, in order.
        """
        self._see = see
        self._at_ms = at_ms
        self._key_of = key_of
        self._time_of = time_of
        self._later_keys: set[bytes] = set()
        self.latest: dict[bytes, Record] = {}
        self.pending: dict[int, dict[bytes, Record]] = {}
        self.unreadable: list[Unreadable] = []

    @property
    def later_count(self) -> int:
        """The number of keys with only later records: compaction removed any earlier ones."""
        return len(self._later_keys - self.latest.keys())

    def add_partition(self, partition: PartitionLog) -> None:
        """Add all batches of a partition whose CRC matches. Raises OpenError if a segment was deleted meanwhile."""
        events = TransactionWalk(partition).walk(partition.segments)
        ends = deque(sorted((each for each in events if isinstance(each, Ended)), key=lambda end: end.place))
        for item in partition_batches(partition):
            if isinstance(item, Unreadable):
                self.unreadable.append(item)
                continue
            while ends and ends[0].place < item.base_offset:
                self._end_transaction(ends.popleft())
            if not item.is_control:
                self._add(item, partial(self._note_damage, partition.path.name, item))
        for end in ends:
            self._end_transaction(end)

    def _note_damage(self, directory: str, batch: Batch, damage: Damage) -> None:
        self.unreadable.append(unreadable_batch(directory, batch, damage))

    def _add(self, batch: Batch, on_damage: OnDamage) -> None:
        records = self.pending.setdefault(batch.producer_id, {}) if batch.is_transactional else self.latest
        for record in batch.records(on_damage=on_damage):
            if record.key is None:
                continue
            key = self._key_of(record.key)
            if self._is_later(self._time_of(record)):
                self._later_keys.add(key)
                continue
            records[key] = record
            if self._see is not None:
                self._see(record)

    def _is_later(self, time: int) -> bool:
        return self._at_ms is not None and time != NO_TIMESTAMP and time > self._at_ms

    def _end_transaction(self, end: Ended) -> None:
        if end.marker is not None and self._is_later(end.marker.timestamp):
            return
        committed = self.pending.pop(end.producer_id, {})
        if end.is_aborted is not False:
            return
        for key, record in committed.items():
            known = self.latest.get(key)
            # A later commit outside of transactions stays.
            if known is None or known.value is None or known.offset < record.offset:
                self.latest[key] = record


def partition_batches(partition: PartitionLog) -> Iterator[Batch | Unreadable]:
    """Yield the batches of the segments of a partition whose CRC matches, in order, and its unreadable parts."""
    name = partition.directory_name
    for files in partition.segments:
        with partition.open_log(files) as log_file:
            for item in scan_log(log_file):
                if isinstance(item, Damage) and item.kind is DamageKind.ZERO_TAIL:
                    continue
                if isinstance(item, Damage):
                    place = f"{files.path.name} at position {item.position}"
                    reason = f"{place}: {item.kind}: {plural(item.size, 'byte')}, {item.detail}"
                    yield Unreadable(name, None, reason, item.kind in TAIL_KINDS and files is partition.active_segment)
                elif not item.is_valid:
                    yield Unreadable(name, item.last_offset, "the CRC of its batch is wrong")
                else:
                    yield item
