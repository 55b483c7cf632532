"""Checks of a restore: the target's records are read back, and compared with those on the disks."""

from kseg import kernel
from kseg.client.brokers import BrokerError, Brokers
from kseg.errors import ClusterError
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.formats.varint_bytes import LONGEST_VARINT, from_zigzag, read_uvarint
from kseg.kernel.contract import RecordFilter
from kseg.kernel.merge_contract import MergedRecords
from kseg.protocol.error_codes import ErrorCode
from kseg.reading.batch import BatchHeader
from kseg.restore.batches import Part, StoredBatch, parts_from
from kseg.restore.send import OnSent, Prepared
from kseg.restore.target_log import fetch_batches


class DifferentError(ClusterError):
    """An error: a restored record isn't the one on the disks."""

    status = 1

    def __init__(self, prepared: Prepared, offset: int) -> None:
        super().__init__(
            f"{prepared.name}: the record at offset {offset} of the target differs from the one on the disks;"
            f" {prepared.remedy}"
        )


def check_partition(brokers: Brokers, prepared: Prepared, on_checked: OnSent, *, may_be_shortened: bool) -> bool:
    """Read a partition back, and compare each record with its source; return whether all were there.

    may_be_shortened: the restore has ended, so that retention and the cleaner may have removed records. Then only the
    records before the first missing one are compared.

    Raises:
        DifferentError: a record is missing, or another one.
        ClusterError: the brokers don't answer, or have lost the last records.
        OpenError: a source's log can't be read.
    """
    expected = _Expected(prepared)
    try:
        for batch in fetch_batches(brokers, prepared.place, prepared.base, prepared.end):
            if may_be_shortened and expected.is_before(batch.header):
                return False
            if not expected.takes(batch):
                raise DifferentError(prepared, expected.offset)
            on_checked(batch.header.records_count or 0, batch.header.size)
            if expected.offset >= prepared.end:
                return True
    except BrokerError as error:
        if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        is_lost = brokers.end_offsets([prepared.place])[prepared.place] < expected.offset
        if not (may_be_shortened or is_lost):
            raise DifferentError(prepared, expected.offset) from error
    is_whole = expected.offset >= prepared.end
    if not is_whole and not may_be_shortened:
        raise ClusterError(
            f"{prepared.name}: the target's log ends at offset {expected.offset}, since its brokers have lost records;"
            " check the brokers, then run the command again"
        )
    return is_whole


class _Expected:
    """The records that a partition should have, from its source. offset: of the next one in the target."""

    def __init__(self, prepared: Prepared) -> None:
        self.offset = prepared.base
        self._end = prepared.end
        self._parts = parts_from(prepared.source, prepared.survey, None)
        self._records = memoryview(b"")
        """The next records, comparable, if they don't begin with a part."""

    def is_before(self, header: BatchHeader) -> bool:
        """Return whether records are missing before a batch, or in it."""
        span = header.last_offset - header.first_offset + 1
        return header.first_offset > self.offset or header.records_count != span

    def takes(self, batch: StoredBatch) -> bool:
        """Compare the next records with a batch of the target; one may have more records at the restore's end."""
        if batch.header.first_offset != self.offset or batch.header.is_legacy:
            return False
        part = next(self._parts, None) if not self._records else None
        if isinstance(part, StoredBatch) and _is_same(part, batch):
            self.offset += part.record_count
            return True
        if part is not None:
            self._records = memoryview(_comparable(part).records)
        wanted = RecordFilter(last_offset=self._end - 1) if batch.header.last_offset >= self._end else None
        found = _comparable(batch, wanted)
        records = memoryview(found.records)
        same = self._match(records)
        self.offset += len(found) if same == len(records) else _count_records(records, same)
        return same == len(records)

    def _match(self, found: memoryview) -> int:
        """Compare the next records with some of the target, and drop them; return the number of equal bytes."""
        at = 0
        while at < len(found):
            if not self._records:
                part = next(self._parts, None)
                if part is None:
                    return at
                self._records = memoryview(_comparable(part).records)
            size = min(len(found) - at, len(self._records))
            ours, theirs = bytes(self._records[:size]), bytes(found[at : at + size])
            if ours != theirs:
                return at + next(same for same, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
            at, self._records = at + size, self._records[size:]
        return at


def _count_records(records: memoryview, end: int) -> int:
    """Return the number of encoded records that end by a position."""
    content, count, at = bytes(records), 0, 0
    while True:
        size, start = read_uvarint(content, at, LONGEST_VARINT)
        at = start + from_zigzag(size)
        if at > end:
            return count
        count += 1


def _comparable(part: Part, wanted: RecordFilter | None = None) -> MergedRecords:
    """Return records with bytes that are equal for equal records, whatever their batches."""
    records = part.unpack(wanted) if isinstance(part, StoredBatch) else part
    merged = kernel.load().MergedRecords(is_comparable=True)
    records.add_to(merged, records.piece.first)
    return merged


def _is_equal(content: memoryview, other: memoryview) -> bool:
    return bytes(content) == bytes(other)  # views would be compared byte by byte


def _is_same(stored: StoredBatch, batch: StoredBatch) -> bool:
    """Return whether a batch of the target has a stored batch's records, byte for byte."""
    theirs, ours = batch.header, stored.header
    return _facts(theirs) == _facts(ours) and _is_equal(batch.raw[BATCH_HEADER_SIZE:], stored.raw[BATCH_HEADER_SIZE:])


def _facts(header: BatchHeader) -> tuple[int | None, int, int, int, int]:
    span = header.last_offset - header.first_offset
    return header.records_count, header.codec, span, header.base_timestamp, int(header.is_log_append_time)
