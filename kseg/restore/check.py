"""Checks of a restore: the target's records are read back, and compared with those on the disks."""

from collections.abc import Sequence

from kseg.client.brokers import BrokerError, Brokers
from kseg.errors import ClusterError
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.kernel.contract import Appended
from kseg.protocol.error_codes import ErrorCode
from kseg.reading.batch import Batch, BatchHeader
from kseg.restore.batches import StoredPart, parts_of, records_of
from kseg.restore.contents import contents_of_batch
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
            if may_be_shortened and expected.is_before(batch):
                return False
            if not expected.takes(batch):
                raise DifferentError(prepared, expected.offset)
            on_checked(batch.header.records_count or 0, batch.size)
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
        self._parts = parts_of(prepared.source, prepared.survey, 0)
        self._records: list[Appended] = []
        """Contents of the next records, if they don't begin with a part."""

    def is_before(self, batch: Batch) -> bool:
        """Return whether records are missing before a batch, or in it."""
        header = batch.header
        span = header.last_offset - header.first_offset + 1
        return header.first_offset > self.offset or header.records_count != span

    def takes(self, batch: Batch) -> bool:
        """Compare the next records with a batch of the target; one may have more records at the restore's end."""
        if batch.header.first_offset != self.offset or batch.is_legacy:
            return False
        if not self._records:
            part = next(self._parts, None)
            if part is None:
                return False
            if isinstance(part, StoredPart) and _is_same(part, batch):
                self.offset += part.record_count
                return True
            self._records = [*records_of(part)]
        return self._takes_records(contents_of_batch(batch))

    def _takes_records(self, found: Sequence[Appended]) -> bool:
        wanted = min(len(found), self._end - self.offset)
        at = 0
        while at < wanted:
            if not self._records:
                part = next(self._parts, None)
                if part is None:
                    return False
                self._records = [*records_of(part)]
            count = min(len(self._records), wanted - at)
            if self._records[:count] != found[at : at + count]:
                return False
            del self._records[:count]
            self.offset += count
            at += count
        return True


def _is_same(part: StoredPart, batch: Batch) -> bool:
    """Return whether a batch of the target has a stored batch's records, byte for byte."""
    theirs, ours = batch.header, part.header
    return _facts(theirs) == _facts(ours) and memoryview(batch.raw)[BATCH_HEADER_SIZE:] == part.raw[BATCH_HEADER_SIZE:]


def _facts(header: BatchHeader) -> tuple[int | None, int, int, int, int]:
    span = header.last_offset - header.first_offset
    return header.records_count, header.codec, span, header.base_timestamp, int(header.is_log_append_time)
