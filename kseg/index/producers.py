"""The state of a partition's producers: from its log, from snapshots, and the comparison of both."""

import os
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import NamedTuple, TypeGuard

from kseg import kernel
from kseg.errors import FileError, KsegError, plural
from kseg.formats.codes import ControlType
from kseg.formats.file_names import parse_file_name
from kseg.formats.header_fields import (
    CONTROL_KEY_TYPE,
    CONTROL_KEY_VERSION,
    MARKER_COORDINATOR_EPOCH,
    MARKER_VERSION,
    PRODUCER_ENTRY_FIELDS,
    PRODUCER_SNAPSHOT_HEADER_FIELDS,
    PRODUCER_SNAPSHOT_VERSION,
    SNAPSHOT_CRC,
)
from kseg.index.entries import EntryFile
from kseg.reading.batch import Batch, BatchHeader
from kseg.reading.log_file import LogFile, Run
from kseg.system.placed_path import as_path

_LARGEST_MARKER = 1 << 12
"""The most bytes of a control batch that are read; Kafka's have less than a hundred."""


_MARKERS = (ControlType.ABORT, ControlType.COMMIT)


class ProducerState(NamedTuple):
    """The state of a producer, as in a snapshot's entry, or -1 for missing values.

    `last_sequence`, `last_offset`, `offset_delta` (last minus first offset) and `timestamp` belong to its last data
    batch, `timestamp` also to a later marker (from 2.4 on). `coordinator_epoch` belongs to its last marker. Source:
    ProducerStateEntry.
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

    `last_stable_offset` is the value right after it: the first offset of the oldest open transaction, else the
    marker's next offset. Source: CompletedTxn, ProducerStateManager.lastStableOffset.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


def parse_end_marker(raw: bytes | memoryview) -> EndMarker | None:
    """Parse the transaction's marker in a control batch; return None if there is none. Source: EndTransactionMarker."""
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
    """Return True if key and value can belong to a control record of any type.

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
    """Parse the marker of the batch with a header; reads only a marker's size, whatever the batch claims."""
    return parse_end_marker(log_file.read(header.position, min(header.size, _LARGEST_MARKER)))


def end_marker_in(run: Run, log_file: LogFile, header: BatchHeader) -> EndMarker | None:
    """Parse the marker of a run's batch, from the bytes of the run if it holds them."""
    start, size = header.position - run.position, min(header.size, _LARGEST_MARKER)
    if start + size <= len(run.buffer):
        return parse_end_marker(run.buffer[start : start + size])
    return read_end_marker(log_file, header)


class Producers(Mapping[int, ProducerState]):
    """States by producer id, in order of appearance, in a table that a kernel's fold can update."""

    def __init__(self) -> None:
        self.table = kernel.load().ProducerTable()

    def __getitem__(self, producer_id: int) -> ProducerState:
        state = self.known(producer_id)
        if state is None:
            raise KeyError(producer_id)
        return state

    def known(self, producer_id: int) -> ProducerState | None:
        """Return the state of a producer, or None if it is unknown. Faster than `get`."""
        values = self.table.get(producer_id)
        return None if values is None else ProducerState._make(values)

    def __iter__(self) -> Iterator[int]:
        return iter(self.table.ids())

    def __len__(self) -> int:
        return len(self.table)

    def put(self, state: ProducerState) -> None:
        """Set the state of a producer."""
        self.table.put(state)


class ProducerStates:
    """The state of all producers of a partition, updated batch by batch in the order of offsets.

    producers: by producer id. open_transactions: first offsets by producer id, in the order they began. It accepts
    batches like a broker that reads its own log: with any epoch or sequence. Source: ProducerStateManager.
    """

    def __init__(self, entries: Iterable[ProducerState] = ()) -> None:
        """Start with the entries of a snapshot that ends where the batches begin."""
        self.producers = Producers()
        self.open_transactions: dict[int, int] = {}
        self._begin_heap: list[tuple[int, int]] = []
        self.start_with(entries)

    def start_with(self, entries: Iterable[ProducerState]) -> None:
        """Take the entries of the snapshot that ends where the first batch begins."""
        for entry in entries:
            self.producers.put(entry)
        opened = [entry for entry in self.producers.values() if entry.current_txn_first_offset >= 0]
        opened.sort(key=lambda entry: entry.current_txn_first_offset)
        self.open_transactions = {entry.producer_id: entry.current_txn_first_offset for entry in opened}
        self._begin_heap = [(first_offset, producer_id) for producer_id, first_offset in self.open_transactions.items()]

    def add(self, header: BatchHeader, marker: EndMarker | None = None) -> CompletedTransaction | None:
        """Add a batch; return the transaction that it ended, if it is a control batch with that marker."""
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
            heappush(self._begin_heap, (first_offset, header.producer_id))
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
        """Return the first offset of all open transactions."""
        begun = self._begin_heap
        while begun and self.open_transactions.get(begun[0][1]) != begun[0][0]:
            heappop(begun)
        return begun[0][0] if begun else default


LARGEST_READ = 2**31 - 1
"""The largest file, in bytes, that a broker can read at once: Java's arrays can't be larger."""


class ProducerSnapshot:
    """A .snapshot, open for reading; a context manager.

    end_offset: the end (exclusive) of the offsets that it covers, from the file's name; None if it has none.
    header_size: bytes of the header that are there; if it is cut, missing values of version, crc and count are 0.
    count: the number of entries by the file's header; `whole_count`: the complete ones. Source: ProducerStateManager.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file. Raises OpenError if it can't be opened or its header not be read."""
        header = PRODUCER_SNAPSHOT_HEADER_FIELDS.struct
        self.file = EntryFile(path, PRODUCER_ENTRY_FIELDS, header.size)
        self.path = as_path(path)
        self.end_offset = parse_file_name(path).base_offset
        self.size = self.file.size
        try:
            fields = self.file.read(0, header.size)
        except KsegError:  # raised again
            self.close()
            raise
        self.header_size = len(fields)
        self.version, self.crc, self.count = header.unpack(fields.ljust(header.size, b"\0"))
        self.whole_count = max(min(self.count, self.file.capacity), 0)

    @property
    def is_cut(self) -> bool:
        """True if the file is too short for its header."""
        return self.header_size < PRODUCER_SNAPSHOT_HEADER_FIELDS.struct.size

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def __enter__(self) -> "ProducerSnapshot":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> Iterator[ProducerState]:
        """Yield the producers in file order; of a cut file only the complete ones."""
        for piece in self.pieces():
            yield from piece

    def pieces(self) -> Iterator[list[ProducerState]]:
        """Yield the same in lists, as they are read."""
        for piece in self.file.pieces(self.whole_count):
            yield list(map(ProducerState._make, piece))

    def compute_crc(self) -> int:
        """Return the CRC-32C computed from the bytes of the file."""
        return self.file.crc32c(SNAPSHOT_CRC.end)

    def problem(self) -> str | None:
        """Return the reason why a broker would refuse it, or None if it wouldn't.

        Source: ProducerStateManager.readSnapshot.
        """
        if self.is_cut:
            least = PRODUCER_SNAPSHOT_HEADER_FIELDS.struct.size
            return f"the size is {plural(self.header_size, 'byte')}, but a producer snapshot has at least {least}"
        if self.version != PRODUCER_SNAPSHOT_VERSION:
            return f"version is {self.version}, expected {PRODUCER_SNAPSHOT_VERSION}"
        if self.size > LARGEST_READ:
            return f"the size is {plural(self.size, 'byte')}, but a broker reads at most {LARGEST_READ}"
        if (computed := self.compute_crc()) != self.crc:
            return f"CRC is {self.crc:#010x}, expected {computed:#010x}"
        if self.count != self.whole_count:
            return f"its header counts {plural(self.count, 'producer')}, but {self.whole_count} are in the file"
        return None


def snapshot_problem(path: str | os.PathLike[str]) -> str | None:
    """Return the reason why a broker wouldn't take a .snapshot, even an unreadable one, or None if it would.

    Raises ClusterError if a store fails to return the file.
    """
    try:
        with ProducerSnapshot(path) as snapshot:
            return snapshot.problem()
    except FileError as error:
        return error.message


def build_producer_snapshot(states: ProducerStates) -> bytes:
    """Build a .snapshot's bytes. Source: ProducerStateManager.writeSnapshot."""
    entries = b"".join(PRODUCER_ENTRY_FIELDS.struct.pack(*state) for state in states.producers.values())
    header = PRODUCER_SNAPSHOT_HEADER_FIELDS.struct
    count = len(states.producers)
    covered = header.pack(PRODUCER_SNAPSHOT_VERSION, 0, count)[SNAPSHOT_CRC.end :] + entries
    crc = kernel.load().crc32c(memoryview(covered))
    return header.pack(PRODUCER_SNAPSHOT_VERSION, crc, count) + entries


_FIELDS = ("epoch", "last_sequence", "last_offset", "current_txn_first_offset")


class KnownProducers:
    """The producers of a partition, updated batch by batch.

    states: their states, to find contradictions in a snapshot's entries. Below the log start offset, or the first
    available offset, the broker's knowledge is uncertain. Source: ProducerStateManager.
    """

    def __init__(self, first_offset: int, log_start_offset: int) -> None:
        self.states = ProducerStates()
        self._first_offset = first_offset
        self._log_start = log_start_offset
        self._markers: dict[int, int] = {}

    def add(self, header: BatchHeader, marker: EndMarker | None) -> CompletedTransaction | None:
        """Add the next batch; return the transaction that it ended."""
        if marker is not None:
            self._markers[header.producer_id] = header.last_offset
        return self.states.add(header, marker)

    def contradictions(self, entries: Iterable[ProducerState], end_offset: int) -> Iterator[str]:
        """Yield the contradictions in a snapshot taken at an offset, up to which all batches were added."""
        left = {each: first for each, first in self.states.open_transactions.items() if first >= self._log_start}
        for entry in entries:
            left.pop(entry.producer_id, None)
            problem = self._contradiction(entry, end_offset)
            if problem is not None:
                yield f"producer {entry.producer_id}: {problem}"
        for producer_id, first_offset in left.items():  # a broker never forgets a producer with an open transaction
            yield f"producer {producer_id}: is missing, but its transaction is open since offset {first_offset}"

    def _contradiction(self, entry: ProducerState, end_offset: int) -> str | None:
        last = max(entry.last_offset, entry.current_txn_first_offset)
        if last >= end_offset:
            return f"its last offset is {last}, but the snapshot was taken at {end_offset}"
        known = self.states.producers.get(entry.producer_id)
        if known is None:
            if entry.last_offset >= self._first_offset:
                return f"its last offset is {entry.last_offset}, but the log has no batch of this producer"
            return None
        if known.last_offset < 0 and entry.last_offset < self._first_offset:
            return None  # only its marker is still in the log
        for name in _FIELDS:
            stored, found = getattr(entry, name), getattr(known, name)
            if stored != found and not self._explains(entry, known, name):
                return f"{name.replace('_', ' ')} is {stored}, but the log has {found}"
        return None

    def _explains(self, entry: ProducerState, known: ProducerState, name: str) -> bool:
        """Return True if a release's own behaviour makes a field differ from the log.

        A broker that recovers its log knows nothing below the log start offset; before 2.4 it forgot deleted parts at
        once. 0.11 counted a marker as a batch of one record.
        """
        if name == "epoch":
            return False
        if name == "current_txn_first_offset":
            stored, found = entry.current_txn_first_offset, known.current_txn_first_offset
            first = max(self._first_offset, self._log_start)
            began_before = 0 <= stored < first <= found  # retention has deleted the start from the log
            return began_before or (0 <= found < self._log_start and not 0 <= stored < self._log_start)
        is_forgotten = known.last_offset < self._log_start and entry.last_offset < 0
        return is_forgotten or (name == "last_offset" and entry.last_offset == self._markers.get(entry.producer_id))
