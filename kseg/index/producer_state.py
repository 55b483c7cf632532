"""State of a partition's producers, by its log: last sequences, open transactions, aborted ones."""

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import NamedTuple, TypeGuard

from kseg import kernel
from kseg.formats.codes import ControlType
from kseg.formats.header_fields import CONTROL_KEY_TYPE, CONTROL_KEY_VERSION, MARKER_COORDINATOR_EPOCH, MARKER_VERSION
from kseg.reading.batch import Batch
from kseg.reading.header import BatchHeader
from kseg.reading.log_file import LogFile, Run

_LARGEST_MARKER = 1 << 12
"""The most bytes of a control batch that are read; Kafka's have less than a hundred."""


_MARKERS = (ControlType.ABORT, ControlType.COMMIT)


class ProducerState(NamedTuple):
    """State of a producer, as in a snapshot's entry; -1 for what isn't there.

    `last_sequence`, `last_offset`, `offset_delta` (last minus first offset) and `timestamp` are of its last data batch,
    `timestamp` also of a later marker (from 2.4 on); `coordinator_epoch` is its last marker's.
    Source: ProducerStateEntry.
    """

    producer_id: int
    epoch: int
    last_sequence: int = -1
    last_offset: int = -1
    offset_delta: int = 0
    timestamp: int = -1
    coordinator_epoch: int = -1
    current_txn_first_offset: int = -1


class EndMarker(NamedTuple):
    """The control record that ends a transaction."""

    control_type: ControlType
    coordinator_epoch: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    """A transaction of the partition that a marker at `last_offset` ended.

    `last_stable_offset` is the one right after it: the first offset of the oldest transaction still open, else the
    marker's next offset. Source: CompletedTxn, ProducerStateManager.lastStableOffset.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


def parse_end_marker(raw: bytes | memoryview) -> EndMarker | None:
    """The transaction's marker in the bytes of a control batch; None if there is none. Source: EndTransactionMarker."""
    usual = kernel.load().end_marker(raw)
    if usual is not None:
        kind, coordinator_epoch, timestamp = usual
        return EndMarker(_MARKERS[kind], coordinator_epoch, timestamp)
    record = next(Batch.parse(bytes(raw), 0, is_valid=True).records(on_damage="skip"), None)
    if record is None or not _has_size(record.key, CONTROL_KEY_TYPE.end):
        return None
    control_type = CONTROL_KEY_TYPE.read(record.key)
    if control_type not in _MARKERS or not _has_size(record.value, MARKER_COORDINATOR_EPOCH.end):
        return None
    return EndMarker(ControlType(control_type), MARKER_COORDINATOR_EPOCH.read(record.value), record.timestamp)


def is_control_record(key: bytes | None, value: bytes | None) -> bool:
    """Whether key and value can be those of a control record, of a known type or not.

    Source: ControlRecordType.parse, EndTransactionMarker.
    """
    if not _has_size(key, CONTROL_KEY_TYPE.end) or CONTROL_KEY_VERSION.read(key) < 0:
        return False
    if CONTROL_KEY_TYPE.read(key) not in _MARKERS:
        return True
    return _has_size(value, MARKER_COORDINATOR_EPOCH.end) and MARKER_VERSION.read(value) >= 0


def _has_size(content: bytes | None, least: int) -> TypeGuard[bytes]:
    return content is not None and len(content) >= least


def read_end_marker(log_file: LogFile, header: BatchHeader) -> EndMarker | None:
    """The same for the batch with a header; reads only as many bytes as a marker has, whatever size it claims."""
    return parse_end_marker(log_file.read(header.position, min(header.size, _LARGEST_MARKER)))


def end_marker_in(run: Run, log_file: LogFile, header: BatchHeader) -> EndMarker | None:
    """The same for a batch of a run, out of the run's bytes if it holds them."""
    start, size = header.position - run.position, min(header.size, _LARGEST_MARKER)
    if start + size <= len(run.buffer):
        return parse_end_marker(run.buffer[start : start + size])
    return read_end_marker(log_file, header)


class Producers(Mapping[int, ProducerState]):
    """States by producer id, in the order in which they came; in a table that a kernel's fold can update."""

    def __init__(self) -> None:
        self.table = kernel.load().ProducerTable()

    def __getitem__(self, producer_id: int) -> ProducerState:
        state = self.known(producer_id)
        if state is None:
            raise KeyError(producer_id)
        return state

    def known(self, producer_id: int) -> ProducerState | None:
        """The state of a producer; None if it isn't there. Quicker than `get`."""
        values = self.table.get(producer_id)
        return None if values is None else ProducerState._make(values)

    def __iter__(self) -> Iterator[int]:
        return iter(self.table.ids())

    def __len__(self) -> int:
        return len(self.table)

    def put(self, state: ProducerState) -> None:
        """Sets the state of a producer."""
        self.table.put(state)


class ProducerStates:
    """The state of all producers of a partition, updated batch by batch in the order of offsets.

    producers: by producer id. open_transactions: first offsets by producer id, in the order they began. It accepts
    batches like a broker that reads its own log: with any epoch or sequence. Source: ProducerStateManager.
    """

    def __init__(self, entries: Iterable[ProducerState] = ()) -> None:
        """Starts with the entries of a snapshot that ends where the batches begin."""
        self.producers = Producers()
        self.open_transactions: dict[int, int] = {}
        self._begun: list[tuple[int, int]] = []
        self.start_with(entries)

    def start_with(self, entries: Iterable[ProducerState]) -> None:
        """Takes the entries of the snapshot that ends where the first batch begins."""
        for entry in entries:
            self.producers.put(entry)
        opened = [entry for entry in self.producers.values() if entry.current_txn_first_offset >= 0]
        opened.sort(key=lambda entry: entry.current_txn_first_offset)
        self.open_transactions = {entry.producer_id: entry.current_txn_first_offset for entry in opened}
        self._begun = [(first_offset, producer_id) for producer_id, first_offset in self.open_transactions.items()]

    def add(self, header: BatchHeader, marker: EndMarker | None = None) -> CompletedTransaction | None:
        """Adds a batch; returns the transaction that it ended, if it is a control batch with that marker."""
        if header.producer_id < 0:
            return None
        known = self.producers.known(header.producer_id) or ProducerState(header.producer_id, header.producer_epoch)
        if known.epoch != header.producer_epoch:  # sequences start again
            known = known._replace(epoch=header.producer_epoch, last_sequence=-1, last_offset=-1, offset_delta=0)
        if not header.is_control:
            self._add_records(header, known)
            return None
        if marker is None:
            return None
        self.producers.put(
            known._replace(
                timestamp=marker.timestamp, coordinator_epoch=marker.coordinator_epoch, current_txn_first_offset=-1
            )
        )
        return self._end_transaction(header, marker)

    def _add_records(self, header: BatchHeader, known: ProducerState) -> None:
        first_offset = header.first_offset
        opened = known.current_txn_first_offset
        if opened < 0 and header.is_transactional:
            opened = self.open_transactions[header.producer_id] = first_offset
            heappush(self._begun, (first_offset, header.producer_id))
        self.producers.put(
            known._replace(
                last_sequence=header.last_sequence,
                last_offset=header.last_offset,
                offset_delta=header.last_offset - first_offset,
                timestamp=header.max_timestamp,
                current_txn_first_offset=opened,
            )
        )

    def _end_transaction(self, header: BatchHeader, marker: EndMarker) -> CompletedTransaction | None:
        first_offset = self.open_transactions.pop(header.producer_id, None)
        if first_offset is None:
            return None  # a transaction without records here leaves no trace
        last_stable_offset = self._first_open_offset(header.last_offset + 1)
        is_aborted = marker.control_type is ControlType.ABORT
        return CompletedTransaction(
            header.producer_id, first_offset, header.last_offset, is_aborted, last_stable_offset
        )

    def _first_open_offset(self, default: int) -> int:
        """The first offset of all open transactions."""
        begun = self._begun
        while begun and self.open_transactions.get(begun[0][1]) != begun[0][0]:
            heappop(begun)
        return begun[0][0] if begun else default
