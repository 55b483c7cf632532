"""Batches of the target's logs, read by Fetch."""

from collections.abc import Iterator

from kseg.client.brokers import PASSING, BrokerError, Brokers, Place
from kseg.client.connection import FETCH
from kseg.formats.messages import Fields
from kseg.index.header_scan import header_of
from kseg.protocol.error_codes import ErrorCode
from kseg.protocol.messages import record_slices
from kseg.reading.blocks import Damage
from kseg.restore.batches import StoredBatch

FETCH_SIZE = 8 << 20
"""Bytes of a partition that are read back at once."""
WAIT_MS = 1000


def fetch_batches(brokers: Brokers, place: Place, first: int, end: int) -> Iterator[StoredBatch]:
    """Yield the batches of a partition of the target between two offsets. Raises ClusterError."""
    offset = first
    while offset < end:
        for attempt in brokers.attempts():
            records = _fetch_records(brokers, place, offset)
            if records:
                break
            attempt.problem = f"{place[0]}-{place[1]} gives no record at offset {offset}"
        begins = offset
        for batch in _batches_in(records):
            yield batch
            offset = batch.header.last_offset + 1
        if offset == begins:
            return


def fetch_last_batch(brokers: Brokers, place: Place, end: int) -> StoredBatch | None:
    """Return the batch before an offset; None if the log ends before it now, or has deleted it. Raises ClusterError."""
    try:
        return next(_batches_in(_fetch_records(brokers, place, end - 1)), None)
    except BrokerError as error:
        if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        return None


def _fetch_records(brokers: Brokers, place: Place, offset: int) -> bytes:
    """Return the bytes of batches from an offset on, empty at the end of the log. Raises ClusterError."""
    for attempt in brokers.attempts():
        leader = brokers.leaders([place])[place]
        answer = brokers.ask(FETCH, _fetch_body(place, offset), leader)
        found = answer["responses"][0]["partitions"][0]
        code = answer.get("errorCode") or found["errorCode"]
        if not code:
            return found["records"] or b""
        failure = BrokerError(f"{place[0]}-{place[1]}", code, f"at offset {offset}")
        if code not in PASSING:
            break
        attempt.problem = failure.problem
    raise failure


def _batches_in(records: bytes) -> Iterator[StoredBatch]:
    for piece in record_slices(records, deep=False):
        if isinstance(piece, Damage):
            return  # the last batch is cut
        for row in range(piece.first, piece.last):
            yield StoredBatch(header_of(piece.run, row), piece.run, row)


def _fetch_body(place: Place, offset: int) -> Fields:
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
