"""Transactions: those of a partition's own log, and their states in `__transaction_state`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from kseg import kernel
from kseg.decode.kafka_text import STATES
from kseg.errors import plural
from kseg.formats.codes import (
    DELETE_HORIZON_MASK,
    MAXIMUM_TRANSACTION_MS,
    NO_TIMESTAMP,
    VERSION,
    DamageKind,
)
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.schemas import message_schema, version_range
from kseg.index.header_scan import events
from kseg.index.producers import ProducerState
from kseg.kernel.contract import VALID
from kseg.kernel.fold_contract import Event
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog
from kseg.log.replay import LatestRecords, Unreadable, partition_batches
from kseg.log.transaction_walk import Begun, Ended, Evidence, Lost, TransactionWalk
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage

TOPIC = "__transaction_state"
OPEN_STATES = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
"""States of a coordinator with markers still to be written."""


class Outcome(StrEnum):
    """The outcome of a transaction in a partition; UNKNOWN: its marker is or may be lost, without other evidence."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


OUTCOMES = {True: Outcome.ABORTED, False: Outcome.COMMITTED, None: Outcome.UNKNOWN}
"""Outcomes of ended transactions, by whether they were aborted."""


class Transaction(NamedTuple):
    """A producer's transaction as one partition shows it.

    `first_offset` and `last_offset` are of its records, None if only the marker is left, or ever existed;
    `first_timestamp` is None too if it began before the log does. `batches` and `records` count its remaining part in
    the log. `evidence` decided its end. `end_offset` and `end_timestamp` are its marker's, None while it is open or if
    the marker is lost; `coordinator_epoch` is from the producer's last marker, None before the first. Timestamps are
    milliseconds since 1970; the producer set those of records unless `has_broker_times`.
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
    evidence: Evidence | None = None

    @property
    def is_open(self) -> bool:
        """True without evidence of its end: it holds the last stable offset back."""
        return self.evidence is None

    @property
    def duration_ms(self) -> int | None:
        """Its duration; None while it is open, or if its records' timestamps aren't the broker's like its marker's."""
        if self.end_timestamp is None or self.first_timestamp is None or not self.has_broker_times:
            return None
        return max(0, self.end_timestamp - self.first_timestamp)

    def is_older_than(self, now_ms: int, timeout_ms: int = MAXIMUM_TRANSACTION_MS) -> bool:
        """Return True if its last record is older than that.

        Source: FindHangingTransactionsCommand, and its default.
        """
        return self.last_timestamp is not None and now_ms - self.last_timestamp > timeout_ms


class PartitionTransactions:
    """The transactions of a partition; its properties are correct after `transactions` came to its end.

    log_end_offset: the next one. last_timestamp: the largest of all batches, -1 if there is none. unreadable: damage.
    Reads only headers and markers, and checks CRCs of single batches that leave a transaction open.
    """

    def __init__(self, partition: PartitionLog) -> None:
        """Take the partition; nothing is read yet."""
        self.partition = partition
        self.unreadable: list[Unreadable] = []
        self._walk = TransactionWalk(partition)
        self._open_by_producer: dict[int, Transaction] = {}
        self._coordinator_epochs: dict[int, int] = {}

    @cached_property
    def log_end_offset(self) -> int:
        """The next offset, like `PartitionLog.read_end`. Raises OpenError if the last log was deleted."""
        return self.partition.read_log_end_offset()

    @property
    def last_timestamp(self) -> int:
        """The largest timestamp of all batches, -1 if there is none."""
        return self._walk.max_timestamp

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on files that contradict the log, and on the evidence taken from them."""
        return tuple(dict.fromkeys(self._walk.notes))

    @property
    def open_transactions(self) -> tuple[Transaction, ...]:
        """Transactions that no marker ends, by first offset."""
        return tuple(sorted(self._open_by_producer.values(), key=lambda transaction: transaction.first_offset or 0))

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, or the log's end: read_committed consumers stop there."""
        first = min(self._walk.begun.values(), default=self.log_end_offset)
        return max(first, self.partition.log_start_offset())

    def transactions(self) -> Iterator[Transaction]:
        """Yield ended transactions in the order of their ends; then the open ones.

        Raises OpenError if a segment can't be opened.
        """
        self._walk, self._open_by_producer = TransactionWalk(self.partition), {}
        for event in self._walk.walk(self.partition.segments):
            if isinstance(event, Lost):
                self._add_damage(event.segment.path.name, event.damage)
            elif isinstance(event, Begun):
                self._add_records(event.header)
            else:
                yield self._end_transaction(event)
        for header in self._walk.alone:
            reason = "the CRC of its batch is wrong, so kseg ignores this start of a transaction"
            self.unreadable.append(Unreadable(self.partition.directory_name, header.last_offset, reason))
        unknown = self._walk.maybe_ended
        self._open_by_producer = {
            producer_id: self._catch_up(
                self._open_by_producer.get(producer_id) or self._carry_transaction(producer_id, first)
            )._replace(
                first_offset=first,
                outcome=Outcome.UNKNOWN if producer_id in unknown else Outcome.OPEN,
            )
            for producer_id, first in self._walk.begun.items()
        }
        yield from self.open_transactions

    def _add_damage(self, name: str, damage: Damage) -> None:
        if damage.kind is not DamageKind.ZERO_TAIL:
            place = f"{name} at position {damage.position}"
            reason = f"{place}: {damage.kind}: {plural(damage.size, 'byte')}, {damage.detail}"
            self.unreadable.append(Unreadable(self.partition.directory_name, None, reason))

    def _bare(self, producer_id: int, epoch: int) -> Transaction:
        return Transaction(self.partition.topic, self.partition.partition, producer_id, epoch)

    def _carry_transaction(self, producer_id: int, first_offset: int | None) -> Transaction:
        """Return a transaction that was open where the log begins, from the first producer snapshot."""
        state = self._carried_states.get(producer_id)
        if state is None:
            return self._bare(producer_id, -1)._replace(first_offset=first_offset)
        return self._bare(producer_id, state.epoch)._replace(
            first_offset=first_offset,
            last_offset=state.last_offset,
            last_timestamp=state.timestamp,
            coordinator_epoch=None if state.coordinator_epoch < 0 else state.coordinator_epoch,
        )

    @cached_property
    def _carried_states(self) -> Mapping[int, ProducerState]:
        base = self.partition.base_offsets[0] if self.partition.segments else 0
        first = min((offset for offset in self.partition.snapshots if offset >= base), default=None)
        states = None if first is None else self.partition.read_producer_states(first)
        return {} if states is None else states.producers

    def _catch_up(self, opened: Transaction) -> Transaction:
        """Return the transaction with the records of batches that the walk has passed too."""
        batches, records = self._walk.producers.count_passed(opened.producer_id)
        values = self._walk.producers.get(opened.producer_id)
        if not batches or values is None:
            return opened
        state = ProducerState._make(values)
        return opened._replace(
            last_offset=state.last_offset,
            batches=opened.batches + batches,
            records=opened.records + records,
            last_timestamp=state.timestamp,
        )

    def _add_records(self, header: BatchHeader) -> None:
        first = self._walk.begun[header.producer_id]
        known = self._open_by_producer.get(header.producer_id)
        if known is None and first == header.first_offset:
            self._open_by_producer[header.producer_id] = self._begin_transaction(header)
            return
        known = self._carry_transaction(header.producer_id, first) if known is None else self._catch_up(known)
        self._open_by_producer[header.producer_id] = known._replace(
            producer_epoch=header.producer_epoch,
            last_offset=header.last_offset,
            batches=known.batches + 1,
            records=known.records + (header.records_count or 0),
            last_timestamp=header.max_timestamp,
        )

    def _begin_transaction(self, header: BatchHeader) -> Transaction:
        return Transaction(
            self.partition.topic,
            self.partition.partition,
            header.producer_id,
            header.producer_epoch,
            first_offset=header.base_offset,
            last_offset=header.last_offset,
            batches=1,
            records=header.records_count or 0,
            first_timestamp=_first_timestamp(header),
            last_timestamp=header.max_timestamp,
            coordinator_epoch=self._coordinator_epochs.get(header.producer_id),
            has_broker_times=header.is_log_append_time,
        )

    def _end_transaction(self, event: Ended) -> Transaction:
        known = self._open_by_producer.pop(event.producer_id, None)
        if known is None and event.header is not None and event.first_offset is None:
            known = self._bare(event.producer_id, event.header.producer_epoch)._replace(
                has_broker_times=event.header.is_log_append_time,
            )
        known = (
            self._carry_transaction(event.producer_id, event.first_offset) if known is None else self._catch_up(known)
        )
        marker = event.marker
        if marker is not None:
            self._coordinator_epochs[event.producer_id] = marker.coordinator_epoch
        return known._replace(
            outcome=OUTCOMES[event.is_aborted],
            first_offset=event.first_offset,
            end_offset=event.end_offset,
            end_timestamp=None if marker is None else marker.timestamp,
            coordinator_epoch=known.coordinator_epoch if marker is None else marker.coordinator_epoch,
            evidence=event.evidence,
        )


class LogTail(NamedTuple):
    """The facts that the intact batches of a log's last segments show.

    damage_offset: the offset after which the last damage is, -1 if there is none. clock_ms: the newest time of the
    broker's clock, in markers or LogAppendTime, -1 if there is none.
    """

    damage_offset: int = -1
    clock_ms: int = NO_TIMESTAMP


def read_tail(partition: PartitionLog, from_offset: int) -> LogTail:
    """Read the segments from an offset's on, every byte of them; the page cache stays unchanged.

    A damaged batch's own offsets may be anything: it counts as after the batch before it. Raises OpenError if a
    segment can't be opened.
    """
    segments = partition.segments[partition.floor_slot(from_offset) or 0 :]
    next_offset, damage_offset = segments[0].base_offset if segments else 0, -1
    clock_ms = NO_TIMESTAMP
    fold = kernel.load().HeaderFold(Event.CONTROL)
    fold.passes_legacy = True
    for files in segments:
        with partition.open_log(files, keep_cache=False) as log_file:
            for item in log_file.runs():
                if isinstance(item, Damage):
                    damage_offset = damage_offset if item.kind is DamageKind.ZERO_TAIL else next_offset
                elif not item.rows[VALID]:  # a damaged batch has its own run
                    damage_offset = next_offset
                else:
                    controls = (header for header, _ in events(fold, item) if header.is_control)
                    clock_ms = max(clock_ms, *(header.max_timestamp for header in controls), fold.append_time)
                    next_offset = fold.last_offset + 1
    return LogTail(damage_offset, clock_ms)


def _first_timestamp(header: BatchHeader) -> int:
    """Return the timestamp of a batch's first record, unless compaction stored the delete horizon there."""
    is_base_timestamp = not header.is_log_append_time and not header.attributes & DELETE_HORIZON_MASK
    return header.base_timestamp if is_base_timestamp else header.max_timestamp


@dataclass(frozen=True, slots=True)
class CoordinatorTransaction:
    """A transaction coordinator's last state of a transactional id.

    `state` is Kafka's: Empty, Ongoing, PrepareCommit, …. `previous_producer_id` and `next_producer_id`: -1 for none.
    Timestamps are milliseconds since 1970, -1 for none. `record_offset`: the record's offset in its partition.
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
        """True if markers are still to be written."""
        return self.state in OPEN_STATES

    @property
    def timeout_timestamp(self) -> int | None:
        """The time when its coordinator aborts it, or None if it won't: its markers are being written."""
        is_counted = self.state == "Ongoing" and self.start_timestamp != NO_TIMESTAMP
        return self.start_timestamp + self.timeout_ms if is_counted else None

    def duration_ms(self, now_ms: int | None) -> int | None:
        """Return the duration of the transaction up to its last change, or up to now if it is still open."""
        end = now_ms if self.is_open else self.last_update_timestamp
        if self.start_timestamp == NO_TIMESTAMP or end is None:
            return None
        return max(0, end - self.start_timestamp)

    def is_overdue(self, now_ms: int | None) -> bool | None:
        """Return True if it is open longer than its producer allowed, so that its coordinator must abort it.

        None if that isn't known.
        """
        if not self.is_open:
            return False
        duration = self.duration_ms(now_ms)
        return None if duration is None else duration > self.timeout_ms


@dataclass(frozen=True, slots=True)
class CoordinatorView:
    """Transactional ids by name; `last_timestamp` is the largest of the records taken, -1 if none."""

    transactions: tuple[CoordinatorTransaction, ...]
    last_timestamp: int
    later_count: int
    unreadable: tuple[Unreadable, ...]


def coordinator_history(
    partition: PartitionLog, is_wanted: Callable[[CoordinatorTransaction], bool]
) -> Iterator[CoordinatorTransaction]:
    """Yield the states of the requested transactional ids in log order.

    Unreadable records are skipped. Raises OpenError if a log can't be opened.
    """
    for item in partition_batches(partition):
        for record in () if isinstance(item, Unreadable) or item.is_control else item.records(on_damage="skip"):
            with suppress(MessageError):
                state = None if record.value is None else _coordinator_transaction(record, partition.partition)
                if state is not None and is_wanted(state):
                    yield state


def coordinator_transactions(partition: PartitionLog, at_ms: int | None = None) -> CoordinatorView:
    """Return the latest state of each transactional id in one partition."""
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
    schema = message_schema("TransactionLogValue")
    if version not in version_range(schema.versions):
        raise MessageError(f"{schema.name} of unknown version {version}")
    fields = parse_message(schema, version, value, 2).value
    status = fields["transactionStatus"]
    if not 0 <= status < len(STATES):
        raise MessageError(f"unknown transaction status {status}")
    return CoordinatorTransaction(
        transactional_id=parse_message(message_schema("TransactionLogKey"), 0, key, 2).value["transactionalId"],
        coordinator_partition=partition,
        producer_id=fields["producerId"],
        producer_epoch=fields["producerEpoch"],
        state=STATES[status],
        partitions=_partitions(fields),
        timeout_ms=fields["transactionTimeoutMs"],
        start_timestamp=fields["transactionStartTimestampMs"],
        last_update_timestamp=fields["transactionLastUpdateTimestampMs"],
        previous_producer_id=fields.get("previousProducerId", -1),
        next_producer_id=fields.get("nextProducerId", -1),
        client_transaction_version=fields.get("clientTransactionVersion", 0),
        record_offset=record.offset,
    )


def _partitions(fields: Fields) -> tuple[tuple[str, int], ...]:
    topics = fields["transactionPartitions"] or []
    return tuple(sorted((topic["topic"], partition) for topic in topics for partition in topic["partitionIds"]))
