"""Checks of a restore: the target's records are read back, and compared with those on the disks."""

from collections.abc import Iterator, Sequence

from kseg.client.brokers import PASSING, BrokerError, Brokers, Place, attempts
from kseg.client.connection import FETCH
from kseg.errors import ClusterError
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.index.header_scan import header_of
from kseg.kernel.contract import ROW, SIZE, START, Appended
from kseg.protocol.error_codes import ErrorCode
from kseg.protocol.messages import record_slices
from kseg.reading.batch import Batch, BatchHeader
from kseg.reading.blocks import Damage
from kseg.restore.batches import StoredPart, parts_of, records_of
from kseg.restore.contents import contents_of_batch
from kseg.restore.send import OnSent, Prepared

FETCH_SIZE = 8 << 20
"""Bytes of a partition that are read back at once."""
WAIT_MS = 1000


class DifferentError(ClusterError):
    """An error: a restored record isn't the one on the disks."""

    status = 1

    def __init__(self, prepared: Prepared, offset: int) -> None:
        super().__init__(
            f"{prepared.name}: the record at offset {offset} of the target differs from the one on the disks; delete"
            " the topic, then run the command again"
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
        for batch in _fetch_batches(brokers, prepared.place, prepared.survey.records):
            if may_be_shortened and expected.is_before(batch):
                return False
            if not expected.takes(batch):
                raise DifferentError(prepared, expected.offset)
            on_checked(batch.header.records_count or 0, batch.size)
            if expected.offset >= prepared.survey.records:
                return True
    except BrokerError as error:
        if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        if not may_be_shortened:
            raise DifferentError(prepared, expected.offset) from error
    is_whole = expected.offset >= prepared.survey.records
    if not is_whole and not may_be_shortened:
        raise ClusterError(
            f"{prepared.name}: the target's log ends at offset {expected.offset}, since its brokers have lost records;"
            " check the brokers, then run the command again"
        )
    return is_whole


class _Expected:
    """The records that a partition should have, from its source. offset: of the next one in the target."""

    def __init__(self, prepared: Prepared) -> None:
        self.offset = 0
        self._left = prepared.survey.records
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
        wanted = min(len(found), self._left - self.offset)
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


def _fetch_batches(brokers: Brokers, place: Place, end: int) -> Iterator[Batch]:
    """Yield the batches of a partition of the target up to an offset. Raises ClusterError."""
    offset, code = 0, 0
    while offset < end:
        for _ in attempts():
            leader = brokers.leaders([place])[place]
            answer = brokers.ask(FETCH, _fetch_body(place, offset), leader)
            found = answer["responses"][0]["partitions"][0]
            code = answer.get("errorCode") or found["errorCode"]
            if code not in PASSING and (code or found["records"]):
                break
        if code:
            raise BrokerError(f"{place[0]}-{place[1]}", code, f"at offset {offset}")
        first = offset
        for batch in _batches_in(found["records"] or b""):
            yield batch
            offset = batch.next_offset
        if offset == first:
            return


def _batches_in(records: bytes) -> Iterator[Batch]:
    for piece in record_slices(records, deep=False):
        if isinstance(piece, Damage):
            return  # the last batch is cut
        for row in range(piece.first, piece.last):
            run = piece.run
            start = run.rows[row * ROW + START]
            header = header_of(run, row)
            yield Batch(header, bytes(run.buffer[start : start + run.rows[row * ROW + SIZE]]))


def _fetch_body(place: Place, offset: int) -> dict[str, object]:
    part = {
        "partition": place[1],
        "currentLeaderEpoch": -1,
        "fetchOffset": offset,
        "lastFetchedEpoch": -1,
        "logStartOffset": -1,
        "partitionMaxBytes": FETCH_SIZE,
    }
    return {
        "replicaId": -1,
        "maxWaitMs": WAIT_MS,
        "minBytes": 1,
        "maxBytes": FETCH_SIZE,
        "isolationLevel": 0,
        "sessionId": 0,
        "sessionEpoch": -1,
        "topics": [{"topic": place[0], "partitions": [part]}],
        "forgottenTopicsData": [],
        "rackId": "",
    }
