"""Transactions: those of a partition's own log, and what `__transaction_state` says of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from kseg.decode.transaction_text import STATES
from kseg.errors import KsegError
from kseg.formats.codes import DELETE_HORIZON_MASK, NO_TIMESTAMP, ControlType, DamageKind
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.positions import VERSION
from kseg.formats.schemas.schema import version_range
from kseg.formats.schemas.transaction_state import TRANSACTION_LOG_KEY, TRANSACTION_LOG_VALUE
from kseg.index.headers import checked_headers, is_intact, walk_headers
from kseg.index.producer_state import EndMarker, read_end_marker
from kseg.kernel.record import Record
from kseg.log.partition.partition_log import PartitionLog, SegmentFiles
from kseg.log.verify.checks_of_producers import MAXIMUM_TRANSACTION_MS
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import LogFile
from kseg.views.replay import LatestRecords, Unreadable

TOPIC = "__transaction_state"
OPEN_STATES = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
"""States of a coordinator in which markers are still to be written."""


class Outcome(StrEnum):
    """What became of a transaction in a partition."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A producer's transaction as far as one partition tells.

    `first_offset` and `last_offset` are of its records, None where only the marker is left, or was ever there;
    `first_timestamp` None too if it began before the log does. `batches` and `records` count what the log still has of
    it. `end_offset` and `end_timestamp` are its marker's, None while it is open; `coordinator_epoch` is that of the
    producer's last marker, None before the first. Timestamps are milliseconds since 1970; those of records are as their
    producer set them unless `has_broker_times`.
    """

    topic: str | None
    partition: int | None
    producer_id: int
    producer_epoch: int
    outcome: Outcome = Outcome.OPEN
    first_offset: int | None = None
    last_offset: int | None = None
    end_offset: int | None = None
    batches: int = 0
    records: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    end_timestamp: int | None = None
    coordinator_epoch: int | None = None
    has_broker_times: bool = False

    @property
    def is_open(self) -> bool:
        """Whether no marker ends it: it holds the last stable offset back."""
        return self.outcome is Outcome.OPEN

    @property
    def duration_ms(self) -> int | None:
        """How long it took; None while it is open, or if its records' times aren't the broker's as its marker's is."""
        if self.end_timestamp is None or self.first_timestamp is None or not self.has_broker_times:
            return None
        return max(0, self.end_timestamp - self.first_timestamp)

    def is_older_than(self, now_ms: int, timeout_ms: int = MAXIMUM_TRANSACTION_MS) -> bool:
        """Whether its last record is longer ago than that. Source: FindHangingTransactionsCommand, and its default."""
        return self.last_timestamp is not None and now_ms - self.last_timestamp > timeout_ms


class PartitionTransactions:
    """The transactions of a partition; its properties are right once `transactions` came to its end.

    log_end_offset: the next one. last_timestamp: the largest of all batches, -1 if there is none. unreadable:
    damage. Only headers and markers are read, and CRCs of single batches that leave a transaction open.
    """

    def __init__(self, partition: PartitionLog) -> None:
        """Takes the partition; nothing is read yet."""
        self.partition = partition
        self.log_end_offset = partition.base_offsets[0] if partition.segments else 0
        self.last_timestamp = NO_TIMESTAMP
        self.unreadable: list[Unreadable] = []
        self._open: dict[int, Transaction] = {}
        self._coordinator_epochs: dict[int, int] = {}
        self._alone: dict[int, tuple[SegmentFiles, BatchHeader]] = {}

    @property
    def open_transactions(self) -> tuple[Transaction, ...]:
        """Those that no marker ends, by first offset."""
        return tuple(sorted(self._open.values(), key=lambda transaction: transaction.first_offset or 0))

    @property
    def last_stable_offset(self) -> int:
        """Up to where read_committed consumers may read: the first offset of the oldest open one, or the log's end."""
        return min((found.first_offset or 0 for found in self._open.values()), default=self.log_end_offset)

    def transactions(self) -> Iterator[Transaction]:
        """Those that ended, in the order of their markers; then the open ones.

        Raises OpenError if a segment can't be opened.
        """
        self._open = dict(self._begun_before())
        for files in self.partition.segments:
            with files.open_log() as log_file:
                yield from self._ended_in(files, log_file)
        self._forget_damaged()
        yield from self.open_transactions

    def _forget_damaged(self) -> None:
        """Takes those for none that only a damaged batch begins: its producer id may be any number."""
        for producer_id, (files, header) in self._alone.items():
            opened = self._open.get(producer_id)
            if opened is None or opened.batches != 1:
                continue
            with files.open_log() as log_file:
                if not is_intact(log_file, header):
                    del self._open[producer_id]
                    reason = "the crc of its batch is wrong: no transaction is taken to begin there"
                    self.unreadable.append(Unreadable(self.partition.directory_name, header.last_offset, reason))

    def _begun_before(self) -> Iterator[tuple[int, Transaction]]:
        """Those open where the log begins, of the producer snapshot that ends there."""
        if not self.partition.segments:
            return
        base_offset = self.partition.base_offsets[0]
        try:
            states = self.partition.read_producer_states(base_offset)
        except KsegError as error:
            self.unreadable.append(Unreadable(self.partition.directory_name, None, error.message))
            return
        for producer_id, first_offset in ({} if states is None else states.open_transactions).items():
            state = states.producers[producer_id] if states is not None else None
            if state is not None:
                bare = Transaction(self.partition.topic, self.partition.partition, producer_id, state.epoch)
                yield (
                    producer_id,
                    replace(
                        bare,
                        first_offset=first_offset,
                        last_offset=state.last_offset,
                        last_timestamp=state.timestamp,
                        coordinator_epoch=None if state.coordinator_epoch < 0 else state.coordinator_epoch,
                    ),
                )

    def _ended_in(self, files: SegmentFiles, log_file: LogFile) -> Iterator[Transaction]:
        for item in walk_headers(log_file):
            if isinstance(item, Damage) and item.kind is DamageKind.ZERO_TAIL:
                continue
            if isinstance(item, Damage):
                place = f"{log_file.path.name} at position {item.position}"
                reason = f"{place}: {item.kind}: {item.size} bytes, {item.detail}"
                self.unreadable.append(Unreadable(self.partition.directory_name, None, reason))
                continue
            self.log_end_offset = item.last_offset + 1
            self.last_timestamp = max(self.last_timestamp, item.max_timestamp)
            if not item.is_transactional:
                continue
            if not item.is_control:
                self._add_records(files, item)
            elif marker := read_end_marker(log_file, item):
                yield self._ended(item, marker)

    def _new(self, header: BatchHeader) -> Transaction:
        return Transaction(
            self.partition.topic,
            self.partition.partition,
            header.producer_id,
            header.producer_epoch,
            coordinator_epoch=self._coordinator_epochs.get(header.producer_id),
            has_broker_times=header.is_log_append_time,
        )

    def _add_records(self, files: SegmentFiles, header: BatchHeader) -> None:
        known = self._open.get(header.producer_id)
        if known is None:
            self._alone[header.producer_id] = files, header
            known = replace(
                self._new(header), first_offset=header.base_offset, first_timestamp=_first_timestamp(header)
            )
        self._open[header.producer_id] = replace(
            known,
            producer_epoch=header.producer_epoch,
            last_offset=header.last_offset,
            batches=known.batches + 1,
            records=known.records + (header.records_count or 0),
            last_timestamp=header.max_timestamp,
        )

    def _ended(self, header: BatchHeader, marker: EndMarker) -> Transaction:
        self._alone.pop(header.producer_id, None)
        known = self._open.pop(header.producer_id, None) or self._new(header)
        self._coordinator_epochs[header.producer_id] = marker.coordinator_epoch
        return replace(
            known,
            outcome=Outcome.ABORTED if marker.control_type is ControlType.ABORT else Outcome.COMMITTED,
            end_offset=header.last_offset,
            end_timestamp=marker.timestamp,
            coordinator_epoch=marker.coordinator_epoch,
        )


class LogTail(NamedTuple):
    """What the intact batches of a log's last segments say.

    damage_offset: the offset after which the last damage stands, -1 if there is none. clock_ms: the newest time of the
    broker's clock, in markers or LogAppendTime, -1 if there is none.
    """

    damage_offset: int = -1
    clock_ms: int = NO_TIMESTAMP


def read_tail(partition: PartitionLog, from_offset: int) -> LogTail:
    """The segments from an offset's on, every byte of them; the page cache is left as it was.

    A damaged batch's own offsets may be anything: it stands after the batch before it. Raises OpenError if a segment
    can't be opened.
    """
    segments = partition.segments[partition.floor_slot(from_offset) or 0 :]
    next_offset, damage_offset = segments[0].base_offset if segments else 0, -1
    clock_ms = NO_TIMESTAMP
    for files in segments:
        with files.open_log(keep_cache=False) as log_file:
            for item in checked_headers(log_file):
                if isinstance(item, BatchHeader) and item.is_valid:
                    next_offset = item.last_offset + 1
                    if item.is_control or item.is_log_append_time:
                        clock_ms = max(clock_ms, item.max_timestamp)
                elif isinstance(item, BatchHeader) or item.kind is not DamageKind.ZERO_TAIL:
                    damage_offset = next_offset
    return LogTail(damage_offset, clock_ms)


def _first_timestamp(header: BatchHeader) -> int:
    """The time of a batch's first record, as far as the header tells it: compaction puts the delete horizon there."""
    is_base_timestamp = not header.is_log_append_time and not header.attributes & DELETE_HORIZON_MASK
    return header.base_timestamp if is_base_timestamp else header.max_timestamp


@dataclass(frozen=True, slots=True)
class CoordinatorTransaction:
    """What a transaction coordinator knew last of a transactional id.

    `state` as in Kafka: Empty, Ongoing, PrepareCommit, …. `previous_producer_id` and `next_producer_id` -1 for none.
    Timestamps are milliseconds since 1970, -1 for none. `record_offset` is the record's in its partition.
    """

    transactional_id: str
    coordinator_partition: int | None
    producer_id: int
    producer_epoch: int
    state: str
    partitions: tuple[tuple[str, int], ...]
    timeout_ms: int
    start_timestamp: int
    last_update_timestamp: int
    previous_producer_id: int
    next_producer_id: int
    client_transaction_version: int
    record_offset: int

    @property
    def is_open(self) -> bool:
        """Whether markers are still to be written."""
        return self.state in OPEN_STATES

    def duration_ms(self, now_ms: int | None) -> int | None:
        """How long it took up to its last change, or has been open by now; None if that isn't known."""
        end = now_ms if self.is_open else self.last_update_timestamp
        if self.start_timestamp == NO_TIMESTAMP or end is None:
            return None
        return max(0, end - self.start_timestamp)

    def is_overdue(self, now_ms: int | None) -> bool | None:
        """Whether it is open for longer than its producer allowed, so that its coordinator is to abort it.

        None if that isn't known.
        """
        if not self.is_open:
            return False
        duration = self.duration_ms(now_ms)
        return None if duration is None else duration > self.timeout_ms


@dataclass(frozen=True, slots=True)
class CoordinatorView:
    """Transactional ids by name; `last_timestamp` is the largest of the records that were taken, -1 if none."""

    transactions: tuple[CoordinatorTransaction, ...]
    last_timestamp: int
    later_count: int
    unreadable: tuple[Unreadable, ...]


def coordinator_transactions(partition: PartitionLog, at_ms: int | None = None) -> CoordinatorView:
    """The latest state of each transactional id in one partition."""
    replay = LatestRecords(at_ms)
    replay.add_partition(partition)
    unreadable = list(replay.unreadable)
    found = []
    for record in replay.latest.values():
        if record.value is None:
            continue
        try:
            found.append(_coordinator_transaction(record, partition.partition))
        except MessageError as error:
            unreadable.append(Unreadable(partition.directory_name, record.offset, error.message))
    found.sort(key=lambda transaction: transaction.transactional_id)
    times = [record.timestamp for record in replay.latest.values()]
    return CoordinatorView(tuple(found), max(times, default=NO_TIMESTAMP), replay.later_count, tuple(unreadable))


def _coordinator_transaction(record: Record, partition: int | None) -> CoordinatorTransaction:
    key, value = record.key or b"", record.value or b""
    if not key.startswith(b"\0\0") or len(value) < VERSION.size:
        raise MessageError(f"key of unknown type {key[: VERSION.size].hex()}, or a value without version")
    version = VERSION.read(value)
    if version not in version_range(TRANSACTION_LOG_VALUE.versions):
        raise MessageError(f"{TRANSACTION_LOG_VALUE.name} of unknown version {version}")
    fields = parse_message(TRANSACTION_LOG_VALUE, version, value, 2).value
    status = fields["transactionStatus"]
    if not 0 <= status < len(STATES):
        raise MessageError(f"unknown transaction status {status}")
    return CoordinatorTransaction(
        parse_message(TRANSACTION_LOG_KEY, 0, key, 2).value["transactionalId"],
        partition,
        fields["producerId"],
        fields["producerEpoch"],
        STATES[status],
        _partitions(fields),
        fields["transactionTimeoutMs"],
        fields["transactionStartTimestampMs"],
        fields["transactionLastUpdateTimestampMs"],
        fields.get("previousProducerId", -1),
        fields.get("nextProducerId", -1),
        fields.get("clientTransactionVersion", 0),
        record.offset,
    )


def _partitions(fields: Fields) -> tuple[tuple[str, int], ...]:
    topics = fields["transactionPartitions"] or []
    return tuple(sorted((topic["topic"], partition) for topic in topics for partition in topic["partitionIds"]))
