"""A reader of a work order's records as Arrow batches, from ranges of bytes, with optional redaction."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kseg import kernel
from kseg.arrow import HEADERS, Origin, as_record_batch, numbers
from kseg.cluster.joined_log import joined_at
from kseg.errors import OpenError, plural
from kseg.export.columns.header_maps import header_maps
from kseg.export.plan import WorkOrder
from kseg.export.read.header_offsets import HeaderOffsets, OffsetBatches, unchecked_runs, with_needed_bodies
from kseg.export.read.offset_accounts import FOREVER, Accounts, EachOnce
from kseg.export.read.ranges import RangeReader
from kseg.export.results import SourceFile, Tally
from kseg.export.settings import (
    NOTHING,
    TOPIC_ID,
    DecodedColumns,
    Isolation,
    ReadOptions,
    Tombstones,
)
from kseg.index.header_scan import checked_headers
from kseg.kernel.contract import LEAST, MOST, ROW, START
from kseg.kernel.entry_points import ALL_CONTENTS, Columns, Contents
from kseg.log.committed import HeldBackOffsets, ReadCommitted, find_withheld, read_committed
from kseg.log.selected_records import RecordPicker
from kseg.reading.batch import BatchHeader, parse_header
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile, Run
from kseg.redaction import Redaction
from kseg.store import remote_files as remote
from kseg.store.location import is_remote
from kseg.system.placed_path import as_path


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


READ_ON_SIZE = 256 << 10
"""Bytes of each further read after an end that an index gave too early."""
TRANSACTION_FILES = (".txnindex", ".snapshot", ".index", ".log", ".swap", ".cleaned")


class OrderReader:
    """The records of an order.

    sources: the bytes that were read, for the manifest; tally: the accounts. Both are complete when `batches` has
    ended. Without checksums, sources have no CRC and reading is faster. contents: whether keys, values and headers are
    wanted; unwanted ones are null. of_headers: the wanted columns, if all are OFFSET_COLUMNS; record batches may lack
    others. is_quick: whether CRCs stay unchecked where headers suffice for these.
    """

    def __init__(
        self,
        order: WorkOrder,
        options: ReadOptions,
        *,
        checksums: bool = True,
        contents: Contents = ALL_CONTENTS,
        of_headers: Collection[str] | None = None,
        is_quick: bool = False,
    ) -> None:
        self.order = order
        self._contents = contents
        self._offsets = None if of_headers is None else OffsetBatches(order.topic, order.partition, of_headers)
        self._is_quick = is_quick and of_headers is not None
        self._read_records_from: tuple[str, int] | None = None
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
        if self._is_quick and self._read_records_from is not None:
            path, position = self._read_records_from
            yield (
                f"{path}: from position {position} on, kseg reads and checks records despite --quick, since headers"
                " don't give the offsets in old formats, in compacted batches, in overlapping logs, and in partitions"
                " with aborted transactions"
            )
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
            read_runs = self._unchecked_runs if self._is_quick and self._headers_suffice else LogFile.runs
            limit = self.options.max_decompressed
            with RangeReader(part, limit, checksum=self._checksums, read_runs=read_runs) as reader:
                self._reading = reader
                yield from self._of_range(number, reader)
            self._reading = None
            self._finished += reader.end - reader.start

    def _unchecked_runs(self, log_file: LogFile, start: int) -> Iterator[Run | Damage]:
        return unchecked_runs(log_file, start, self._accounts.takes_whole)

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
        offsets = self._offsets if self._headers_suffice else None
        for item in reader.items(end, with_bodies if offsets is None else with_needed_bodies):
            if self._accounts.is_done:
                break
            if offsets is not None and isinstance(item, HeaderOffsets) and self._accounts.add_offsets(item):
                self.tally.control += item.control_count
                self.tally.written += item.record_count
                yield from offsets.of(item)
                continue
            if offsets is not None:
                yield from offsets.rest()
            if isinstance(item, Damage):
                self._accounts.add_damage(item)
            else:
                yield from self._of_item(item, origin)
        if offsets is not None:
            yield from offsets.rest()

    def _of_item(self, item: HeaderOffsets | Slice, origin: Origin) -> Iterator[pa.RecordBatch]:
        if isinstance(item, Slice):
            if self._read_records_from is None:
                position = item.run.position + item.run.rows[item.first * ROW + START]
                self._read_records_from = f"{self.order.place}/{origin.segment}", position
            yield from self._of_slice(item, origin)
            return
        for piece in with_bodies(iter([item.piece.run]), 0, self.options.max_decompressed):
            if isinstance(piece, Slice):
                yield from self._of_slice(piece, origin)

    @property
    def _headers_suffice(self) -> bool:
        """True if offsets of intact batches decide about all of their records."""
        has_aborted = self._transactions is not None and bool(self._transactions.aborted)
        return self.options.takes_all_contents and self._each_once is None and not has_aborted

    def _of_slice(self, piece: Slice, origin: Origin) -> Iterator[pa.RecordBatch]:
        run = piece.run
        columns = kernel.load().columns(
            run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, contents=self._contents
        )
        counted = self._accounts.add_slice(columns, piece)
        if not columns.count:
            return
        wanted = self._wanted_mask(columns, piece, counted)
        if wanted is None or wanted.true_count:
            batch = as_record_batch(columns, piece, origin, self.options.arrow())
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
