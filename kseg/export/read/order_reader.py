"""A reader of a work order's records as Arrow batches, from ranges of bytes, with optional redaction."""

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kseg import kernel
from kseg.arrow import HEADERS, Origin, as_record_batch, numbers
from kseg.cluster.copies import SegmentSource
from kseg.cluster.joined_log import joined_at
from kseg.errors import KsegError, OpenError, plural
from kseg.export.columns.header_maps import header_maps
from kseg.export.plan import ByteRange, WorkOrder
from kseg.export.read.offset_accounts import FOREVER, Accounts, EachOnce
from kseg.export.results import Result, SourceFile, Tally
from kseg.export.settings import (
    NOTHING,
    TOPIC_ID,
    DecodedColumns,
    Isolation,
    OffsetRange,
    ReadOptions,
    Tombstones,
)
from kseg.index.entries import OffsetIndex
from kseg.index.header_scan import checked_headers
from kseg.kernel.contract import ALL_CONTENTS, LEAST, MOST, ROW, SIZE, START, Columns, Contents
from kseg.log.committed import HeldBackOffsets, ReadCommitted, find_withheld, read_committed
from kseg.log.segments import entry_problem
from kseg.log.selected_records import RecordPicker
from kseg.reading.batch import BatchHeader, parse_header
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile, Run
from kseg.redaction import Redaction
from kseg.store import remote_files as remote
from kseg.store.location import is_remote
from kseg.system.new_directory import scratch_directory
from kseg.system.placed_path import StrPath, as_path


class BatchRedactor:
    """A redactor of record batches, including wanted control records."""

    def __init__(self, redaction: Redaction) -> None:
        self._parts = redaction.parts
        self._redactor = redaction.redactor()

    def redact(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with redacted contents of the same length; of headers only the values change."""
        for part, name in (("keys", "key"), ("values", "value"), ("headers", "headers")):
            place = batch.schema.get_field_index(name)
            if part in self._parts and place >= 0:
                column = self._headers(batch.column(place)) if part == "headers" else self._binary(batch.column(place))
                batch = batch.set_column(place, batch.schema.field(place), column)
        return batch

    def _binary(self, column: pa.Array) -> pa.Array:
        """Return replacement bytes of the same length, computed once per distinct content."""
        contents = column.dictionary_encode()
        replaced = list(map(self._redactor.replace, contents.dictionary.to_pylist()))
        return pa.array(replaced, column.type).take(contents.indices)

    def _headers(self, column: pa.Array) -> pa.Array:
        """Redact headers as pairs, since their names stay."""
        pairs = column.values
        values = self._binary(pairs.field("value"))
        changed = pa.StructArray.from_arrays([pairs.field("key"), values], fields=list(HEADERS.value_type))
        buffers = column.buffers()[:2]
        return pa.Array.from_buffers(HEADERS, len(column), buffers, offset=column.offset, children=[changed])


class ChangedError(OpenError):
    """The error of a log that the cleaner or a new topic has replaced since it was listed."""


def has_gone(error: OpenError) -> bool:
    """Return True if the error means that a listed file is missing or replaced."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ChangedError | FileNotFoundError):
        cause = cause.__cause__
    return cause is not None


def _inode(path: StrPath) -> int | None:
    """Return a file's inode, or None if unavailable, in which case reading it reports the reason."""
    try:
        return os.stat(path).st_ino  # noqa: PTH116  faster
    except OSError:
        return None


class RangeReader:
    """A context manager that reads one range; of a remote file, only the range is copied to this machine.

    end: the position where reading ended. crc: CRC-32C of the bytes from `start` to there; None after damage, or if no
    checksum is wanted.
    """

    def __init__(self, part: ByteRange, max_decompressed: int, *, checksum: bool = True) -> None:
        self.part = part
        self.start = self.end = part.start
        self.crc: int | None = 0 if checksum else None
        self._max_decompressed = max_decompressed
        self._clean_up = ExitStack()
        self._scratch: Path | None = None
        self._copied = (0, 0)

    def __enter__(self) -> "RangeReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._clean_up.close()

    def check_start(self, offset: int) -> None:
        """Restart at the segment's start if the batch at the range's start doesn't match the offset."""
        with self.open(self.part.start, self.part.end, None) as log_file:
            if entry_problem(log_file, offset, self.part.start) is not None:
                self.start = self.end = 0

    def items(self, end: int | None = None) -> Iterator[Slice | Damage]:
        """Yield slices and damages from the last position up to `end`, or the range's end."""
        end = self.part.end if end is None else end
        if self.end >= end:
            return
        with self.open(self.end, end, end) as log_file:
            is_cut = log_file.file_size > end
            runs = self._up_to(end, log_file.runs(self.end), is_cut=is_cut)
            yield from with_bodies(runs, end - self.end, self._max_decompressed)
        if self.end < end and is_cut:
            # A batch that crosses the end, or can't be read up to it, is read again with all following bytes visible.
            with self.open(self.end, max(self.part.size, end), None) as log_file:
                yield from with_bodies(self._beginning_below(end, log_file), 0, self._max_decompressed)

    def source(self) -> SourceFile:
        """Return the bytes that were read, as the manifest's entry."""
        part = self.part
        start = self.start if self.crc is None else self._new_from
        return SourceFile(part.path, part.size, part.modified_ms, min(start, self.end), self.end, self.crc)

    @property
    def _new_from(self) -> int:
        """The position of the first bytes that no earlier run has read: an index points somewhat before it."""
        read_to = self.part.read_to
        return self.start if read_to is None else max(self.start, read_to)

    def open(self, start: int, end: int, limit: int | None) -> LogFile:
        """Open the log. Only the given range of a remote log is read.

        Raises OpenError if it is missing, ChangedError if it was replaced since it was listed.
        """
        if not is_remote(self.part.path):
            return self._require_listed(LogFile.of_directory(self.part.place, self.part.size, limit))
        if self._scratch is None:
            self._scratch = self._clean_up.enter_context(scratch_directory())
        target = self._scratch / self.part.path.rpartition("/")[2]
        if not self._copied[0] <= start <= end <= self._copied[1]:
            target.unlink(missing_ok=True)
            remote.copy_range(self.part.path, target, start, end, self.part.size)
            os.truncate(target, self.part.size)
            self._copied = start, end
        return LogFile(target, limit)

    def _require_listed(self, log_file: LogFile) -> LogFile:
        """Return the log if its name still belongs to the listed file, so that nothing can have come in between."""
        part = self.part
        if part.inode and (log_file.file_size < part.size or _inode(part.place) not in (part.inode, None)):
            log_file.close()
            raise ChangedError("has changed since it was listed", part.place)
        return log_file

    def _up_to(self, end: int, items: Iterator[Run | Damage], *, is_cut: bool) -> Iterator[Run | Damage]:
        for item in items:
            if is_cut and isinstance(item, Damage) and item.position + item.size >= end:
                return
            yield self._note_item(item)

    def _beginning_below(self, end: int, log_file: LogFile) -> Iterator[Run | Damage]:
        for item in log_file.runs(self.end):
            if isinstance(item, Run):
                rows = item.rows
                count = sum(item.position + rows[row * ROW + START] < end for row in range(item.row_count))
                item = item._replace(row_count=count)
            yield self._note_item(item)
            if self.end >= end:
                return

    def _note_item(self, item: Run | Damage) -> Run | Damage:
        if isinstance(item, Damage):
            self.crc = None
            self.end = item.position + item.size
            return item
        last = (item.row_count - 1) * ROW
        end = item.rows[last + START] + item.rows[last + SIZE]
        start = max(item.rows[START], self._new_from - item.position)
        if self.crc is not None and start < end:
            from crc32c import crc32c

            self.crc = crc32c(item.buffer[start:end], self.crc)
        self.end = item.position + end
        return item


def crc_of_range(segment: SegmentSource, start: int, end: int) -> int | None:
    """Return the CRC-32C of bytes of a segment's log, or None if they are missing or unreadable.

    Raises OpenError if the log is missing, ChangedError if it was replaced since it was listed.
    """
    from crc32c import crc32c

    part = ByteRange(
        segment.log, segment.base_offset, start, end, end, segment.modified_ms, None, segment.inode, segment.directory
    )
    with RangeReader(part, 0) as reader, reader.open(start, end, None) as log_file:
        if log_file.file_size < end:
            return None
        crc = 0
        for position in range(start, end, 1 << 20):
            crc = crc32c(log_file.read(position, min(1 << 20, end - position)), crc)
        return crc if log_file.is_readable(start, end - start) else None


READ_ON_SIZE = 256 << 10
"""Bytes of each further read after an end that an index gave too early."""
TRANSACTION_FILES = (".txnindex", ".snapshot", ".index", ".log", ".swap", ".cleaned")


class OrderReader:
    """The records of an order.

    sources: the bytes that were read, for the manifest; tally: the accounts. Both are complete when `batches` has
    ended. Without checksums, sources have no CRC and reading is faster. contents: whether keys, values and headers are
    wanted; unwanted ones are null.
    """

    def __init__(
        self,
        order: WorkOrder,
        options: ReadOptions,
        *,
        checksums: bool = True,
        contents: Contents = ALL_CONTENTS,
    ) -> None:
        self.order = order
        self._contents = contents
        self.options = options
        self._checksums = checksums
        self.sources: list[SourceFile] = []
        self._each_once = EachOnce() if order.is_disordered else None
        self._accounts = Accounts(
            order.offsets,
            options.mode,
            begins=order.begins,
            missed=order.missed,
            each_once=self._each_once,
            is_gapless=order.is_gapless,
        )
        self._transactions: ReadCommitted | None = None
        self._withheld: HeldBackOffsets | None = None
        self._latest: dict[bytes, int] | None = None
        self._picker: RecordPicker | None = None
        self._redactor = None if options.redaction is None else BatchRedactor(options.redaction)
        self._decoded = DecodedColumns(options.decode) if options.decode.fields() else None
        self._reading: RangeReader | None = None
        self._finished = 0

    @property
    def progress(self) -> float:
        """The part of the bytes of the order that was read so far, from 0 to 1."""
        reading = 0 if self._reading is None else self._reading.end - self._reading.start
        return min((self._finished + reading) / max(self.order.size, 1), 1.0)

    @property
    def tally(self) -> Tally:
        """The accounts."""
        return self._accounts.tally

    @property
    def is_useless(self) -> bool:
        """True if offsets don't rise although the order isn't marked as disordered: some may occur twice."""
        return self.tally.disordered > 0 and not self.order.is_disordered

    @property
    def needs_all(self) -> bool:
        """True if only the complete order is useful: later records decide about earlier ones."""
        return self._each_once is not None or self.options.latest_per_key is not None

    def notes(self) -> Iterator[str]:
        """Return the notes about an order after it has been read, for callers that don't write a report."""
        replica, tally = self.order.place, self.tally
        yield from tally.notes
        if tally.withheld is not None:
            yield f"{replica}: {tally.withheld.line()}"
        if tally.without_time:
            yield (
                f"{replica}: {plural(tally.without_time, 'timestamp is', 'timestamps are')} outside of the years 1 to"
                " 9999, so the column timestamp is null"
            )
        for counts in tally.decoded:
            if counts.undecoded:
                yield f"{replica}: {counts.line()}"
        if tally.passed_over:
            yield f"{replica}: kseg skipped {plural(tally.passed_over, 'record')}: another record has the same offset"

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the records in the log's order, as the kernel returns them: a few KiB to a few MiB at a time.

        Raises OpenError if a file can't be opened; the accounts then cover the records before. Raises KsegError at the
        first damage if the mode is failfast.
        """
        try:
            yield from self._batches()
        except OpenError:
            self._finish()
            raise
        self._finish()

    def _finish(self) -> None:
        self._accounts.finish()
        if self._decoded is not None:
            self.tally.notes += self._decoded.notes

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self.options.isolation is Isolation.READ_COMMITTED:
            self._take_transactions()
        if self.options.latest_per_key is not None:
            self._latest = self._find_latest()
        if self._each_once is not None:
            self._note_batches(self._each_once)
        if not self.options.selected.is_everything:
            self._picker = RecordPicker(self.options.selected.record_filter())
        for number, part in enumerate(self.order.ranges):
            if self._accounts.is_done:
                break
            self._accounts.begin_range(part.place, part.base_offset if part.start == 0 else None, part.read_to)
            with RangeReader(part, self.options.max_decompressed, checksum=self._checksums) as reader:
                self._reading = reader
                yield from self._of_range(number, reader)
            self._reading = None
            self._finished += reader.end - reader.start

    def _of_range(self, number: int, reader: RangeReader) -> Iterator[pa.RecordBatch]:
        order = self.order
        try:
            if number == 0 and order.starts_at_index and order.offsets.first is not None:
                reader.check_start(order.offsets.first)
            yield from self._records(reader, reader.part.end)
            if number == len(order.ranges) - 1 and order.ends_at_index:
                yield from self._read_on(reader)
        except OpenError:
            if reader.end > reader.start:
                self.sources.append(reader.source())
            raise
        self.sources.append(reader.source())

    def _note_batches(self, each_once: EachOnce) -> None:
        """Note all batches before any decision about their records."""
        for part in self.order.ranges:
            with (
                RangeReader(part, self.options.max_decompressed, checksum=False) as reader,
                reader.open(0, part.size, None) as log_file,
            ):
                for header in checked_headers(log_file):
                    if isinstance(header, BatchHeader) and header.is_valid and not header.is_legacy:
                        each_once.note(header.first_offset, header.last_offset, header.partition_leader_epoch)

    def _read_on(self, reader: RangeReader) -> Iterator[pa.RecordBatch]:
        """Continue after an end from an index, if the wanted offsets don't end there."""
        end = reader.part.end
        while end < reader.part.size and self._accounts.end < FOREVER and not self._accounts.has_reached_end:
            end = min(end + READ_ON_SIZE, reader.part.size)
            yield from self._records(reader, end)

    def _records(self, reader: RangeReader, end: int) -> Iterator[pa.RecordBatch]:
        origin = Origin(self.order.topic, self.order.partition, reader.part.path.rpartition("/")[2])
        for item in reader.items(end):
            if self._accounts.is_done:
                return
            if isinstance(item, Damage):
                self._accounts.add_damage(item)
                continue
            run = item.run
            columns = kernel.load().columns(
                run.buffer, run.rows, item.first, item.last, run.position, item.bodies, contents=self._contents
            )
            counted = self._accounts.add_slice(columns, item)
            if not columns.count:
                continue
            wanted = self._wanted_mask(columns, item, counted)
            if wanted is None or wanted.true_count:
                batch = as_record_batch(columns, item, origin, self.options.arrow())
                yield self._finish_batch(batch if wanted is None else batch.filter(wanted))

    def _finish_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._latest is not None:
            before = batch.num_rows
            batch = batch.filter(self._is_latest(batch))
            self.tally.superseded += before - batch.num_rows
        if self._redactor is not None:
            batch = self._redactor.redact(batch)
        if self.options.batch_columns:
            topic_ids = pa.repeat(pa.scalar(self.order.topic_id, TOPIC_ID.type), batch.num_rows)
            batch = batch.append_column(TOPIC_ID, topic_ids)
        if self._decoded is not None:
            batch = self._decode(batch, self._decoded)
        if self.options.has_header_maps and self.options.headers:  # decoders need lists
            place = batch.schema.get_field_index("headers")
            batch = batch.set_column(place, "headers", header_maps(batch.column(place)))
        self.tally.written += batch.num_rows
        self.tally.without_time += batch.column("timestamp").null_count
        return batch

    def _decode(self, batch: pa.RecordBatch, decoded: DecodedColumns) -> pa.RecordBatch:
        found = decoded.select_undecoded(batch) if self.options.undecoded_only else decoded.add_columns(batch)
        self.tally.unselected += batch.num_rows - found.num_rows
        self.tally.undecoded, self.tally.undecoded_records = decoded.failure_count, decoded.failed_records
        self.tally.decoded = list(decoded.parts.values())
        return found

    # --- choice of records --------------------------------------------------------------------------------------------

    def _wanted_mask(self, columns: Columns, piece: Slice, counted: pa.Array | None) -> Any:
        """Return a mask of the records to yield, or None for all of them. counted: the accounts' mask."""
        count = columns.count
        mask = counted
        if not self.options.control and b"\1" in bytes(columns.control):
            control = pc.equal(numbers(columns.control, pa.int8(), count), 1)
            mask, dropped = _without(mask, control)
            self.tally.control += dropped
        aborted = self._aborted_rows(piece)
        if aborted:
            rows = pc.subtract(numbers(columns.rows, pa.int32(), count), piece.first)
            mask, dropped = _without(mask, pa.array(aborted, pa.bool_()).take(rows))
            self.tally.aborted += dropped
        if self._picker is not None:
            selected = self._selection_mask(self._picker, columns, piece, is_whole=counted is None)
            mask, dropped = _without(mask, pc.invert(selected))
            self.tally.unselected += dropped
        return mask

    def _selection_mask(self, picker: RecordPicker, columns: Columns, piece: Slice, *, is_whole: bool) -> pa.Array:
        taken = picker.columns(piece)
        is_taken = self._is_of_wanted_batch(taken, piece)
        if is_whole:  # offsets rise: each identifies one record
            offsets = numbers(taken.offsets, pa.int64(), taken.count)
            wanted = offsets if is_taken is None else offsets.filter(is_taken)
            return pc.is_in(numbers(columns.offsets, pa.int64(), columns.count), value_set=wanted)
        places = numbers(taken.places, pa.int32(), taken.count)
        mask = [False] * columns.count
        for place in (places if is_taken is None else places.filter(is_taken)).to_pylist():
            mask[place] = True
        return pa.array(mask, pa.bool_())

    def _is_of_wanted_batch(self, taken: Columns, piece: Slice) -> pa.Array | None:
        """Return a mask of the records whose batch headers match the selection, or None for all of them."""
        wanted = self.options.selected
        if wanted.producer_id is None and not wanted.transactional_only and wanted.is_control is None:
            return None
        rows = []
        for row in range(piece.first, piece.last):
            start = piece.run.rows[row * ROW + START]
            header = parse_header(piece.run.buffer, start, piece.run.position + start)
            is_producers = wanted.producer_id is None or header.producer_id == wanted.producer_id
            is_kind = wanted.is_control is None or header.is_control == wanted.is_control
            if is_producers and is_kind and (header.is_transactional or not wanted.transactional_only):
                rows.append(row)
        return pc.is_in(numbers(taken.rows, pa.int32(), taken.count), value_set=pa.array(rows, pa.int32()))

    def _aborted_rows(self, piece: Slice) -> list[bool]:
        """Return, for each row, whether its transaction was aborted; empty if none was."""
        if self._transactions is None or not self._transactions.aborted:
            return []
        found = []
        for row in range(piece.first, piece.last):
            start = piece.run.rows[row * ROW + START]
            header = parse_header(piece.run.buffer, start, piece.run.position + start)
            found.append(
                header.is_transactional and self._transactions.is_aborted(header.producer_id, header.first_offset)
            )
        return found if any(found) else []

    def _take_transactions(self) -> None:
        replica = self.order.replica
        if is_remote(replica):
            with remote.local_directory(replica, TRANSACTION_FILES) as directory:
                self._transactions = self._read_transactions(directory)
                self.tally.notes = [note.replace(str(directory), replica) for note in self._transactions.notes]
        else:
            self._transactions = self._read_transactions(as_path(self.order.place))
            self.tally.notes = list(self._transactions.notes)
        stable = self._transactions.last_stable_offset
        if stable is not None and stable < self._accounts.end:
            self._accounts.end = stable
            self.tally.open_from = stable
            self.tally.withheld = self._withheld

    def _read_transactions(self, directory: Path) -> ReadCommitted:
        place, offsets = joined_at(directory, self.order.others), self.order.offsets
        first = LEAST if offsets.first is None else offsets.first
        end = MOST if offsets.end is None else offsets.end
        found = read_committed(place.segments, place, first, end)
        if found.last_stable_offset is not None and self.order.begins:
            # A broker that has deleted a transaction's first records holds back everything after its log's start.
            start = max(found.last_stable_offset, first, place.base_offsets[0])
            withheld = find_withheld(place.segments, found, end)
            if withheld is not None and start < withheld.end_offset:
                self._withheld = withheld._replace(first_offset=start)
        return found

    def _find_latest(self) -> dict[bytes, int]:
        """Return the last offset of each key, for an order of a complete partition."""
        latest: dict[bytes, int] = {}
        options = replace(
            self.options, latest_per_key=None, headers=False, batch_columns=False, redaction=None, decode=NOTHING
        )
        for batch in OrderReader(self.order, options, checksums=False).batches():
            for key, offset in zip(batch.column("key").to_pylist(), batch.column("offset").to_pylist(), strict=True):
                if key is not None:
                    digest = _digest(key)
                    latest[digest] = max(offset, latest.get(digest, offset))
        return latest

    def _is_latest(self, batch: pa.RecordBatch) -> pa.Array:
        """Return a mask of each key's latest record and of records without a key; tombstones count if wanted."""
        assert self._latest is not None
        keys, offsets = batch.column("key").to_pylist(), batch.column("offset").to_pylist()
        mask = pa.array(
            [key is None or self._latest[_digest(key)] == offset for key, offset in zip(keys, offsets, strict=True)],
            pa.bool_(),
        )
        if self.options.latest_per_key is Tombstones.DROP:
            is_tombstone = pc.and_(pc.is_null(batch.column("value")), pc.is_valid(batch.column("key")))
            mask = pc.and_(mask, pc.invert(is_tombstone))
        return mask


def _without(mask: Any, dropped: Any) -> tuple[Any, int]:
    """Return a mask without the dropped records, and the number of records that it loses."""
    before = dropped.true_count if mask is None else pc.and_(mask, dropped).true_count
    kept = pc.invert(dropped)
    return (kept if mask is None else pc.and_(mask, kept)), before


def _digest(key: bytes) -> bytes:
    return key if len(key) <= 16 else blake2b(key, digest_size=16).digest() + b"\0"


def is_cleaned(result: Result, segment: SegmentSource) -> bool:
    """Return True if an inactive segment holds the compacted remains of the records of a result.

    Its log belongs to the same topic. Returns False if the log was truncated and rewritten since, if that is unknown,
    or if damage was met, which may have been repaired. Raises OpenError if the log is missing.
    """
    tally = result.tally
    if not tally.epochs or tally.disordered or any(not loss.is_harmless for loss in tally.losses):
        return False
    first, end = tally.epochs[0][1], tally.next_offset or 0
    last = _last_below(end, segment)
    if last is None:
        return True
    if last.last_offset < first:
        return last.partition_leader_epoch <= tally.epochs[0][0]
    return _has_read(last, tally)


def is_decayed(result: Result, source: SourceFile, segment: SegmentSource) -> bool:
    """Return True if a log is now damaged where a result read it, and nothing else has changed there.

    Its log belongs to the same topic. Leader epochs tell whether it was truncated and rewritten since. Returns False
    then, if earlier damage was repaired, or if either is unknown. Raises OpenError if the log is missing.
    """
    tally, has_damage = result.tally, False
    if not tally.epochs or tally.disordered or segment.size < source.end:
        return False
    with _open_whole(segment) as log_file:
        for item in checked_headers(log_file, source.start):
            if item.position >= source.end:
                break
            if isinstance(item, Damage) or not item.is_valid:
                has_damage = True
            elif not _has_read(item, tally):
                return False
    return has_damage


def _has_read(header: BatchHeader, tally: Tally) -> bool:
    """Return True if a batch can be one that an order read, by its offsets and its leader epoch."""
    first, end = tally.epochs[0][1], tally.next_offset or 0
    if header.last_offset < first:
        return True  # the order began after it
    if header.first_offset >= end:
        return tally.open_from is not None  # the order ended before it, at an open transaction
    if tally.lost_offsets.meets(OffsetRange(header.first_offset, header.last_offset + 1)):
        return False
    epochs = {_epoch_of(max(header.first_offset, first), tally), _epoch_of(min(header.last_offset, end - 1), tally)}
    return epochs == {header.partition_leader_epoch}


def _epoch_of(offset: int, tally: Tally) -> int:
    place = bisect_right(tally.epochs, offset, key=lambda entry: entry[1]) - 1
    return tally.epochs[place][0]


def _last_below(end: int, segment: SegmentSource) -> BatchHeader | None:
    """Return the header of the last intact batch that begins below an offset, or None if it doesn't exist."""
    with _open_whole(segment) as log_file:
        for start in (_position_below(end, segment), 0):
            found = None
            for item in checked_headers(log_file, start):
                if isinstance(item, Damage) or not item.is_valid:
                    continue
                if item.first_offset >= end:
                    break
                found = item
            if found is not None:
                return found
    return None


@contextmanager
def _open_whole(segment: SegmentSource) -> Iterator[LogFile]:
    whole = ByteRange(
        segment.log, segment.base_offset, 0, segment.size, segment.size, segment.modified_ms, None, 0, segment.directory
    )
    with RangeReader(whole, 0, checksum=False) as reader, reader.open(0, segment.size, None) as log_file:
        yield log_file


def _position_below(end: int, segment: SegmentSource) -> int:
    """Return a position to search from, according to the offset index; 0 without a readable index."""
    if segment.offset_index is None or is_remote(segment.offset_index):
        return 0
    with suppress(KsegError), OffsetIndex(segment.offset_index, segment.base_offset) as index:
        position = index.lookup(min(end, MOST) - 1).position
        return position if position < segment.size else 0
    return 0
