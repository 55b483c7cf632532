"""Empty records before a log that begins later than at 0: the others keep their offsets, and these are deleted.

They have the job's producer and their offsets as sequences, as all other records of a restore.
"""

from collections.abc import Iterator, Sequence
from functools import cache

from kseg.client.brokers import PASSING, BrokerError, Brokers
from kseg.client.connection import DELETE_RECORDS
from kseg.formats.codes import BATCH_HEADER_SIZE, NO_TIMESTAMP, Codec
from kseg.formats.messages import Fields
from kseg.kernel.entry_points import Appended
from kseg.protocol.error_codes import ErrorCode
from kseg.reading.batch import Batch
from kseg.restore.batches import Producer, TargetBatch, with_header
from kseg.restore.plan import PlannedPartition
from kseg.writer.batches import RecordsBuilder

FILLER_COUNT = 200_000
"""Records of a batch: 7 bytes each, before they are compressed."""
EMPTY: Appended = (NO_TIMESTAMP, None, None, ())
TIMEOUT_MS = 30_000


def filler_batches(first: int, end: int, producer: Producer) -> Iterator[TargetBatch]:
    """Yield batches of empty records from one offset of the target to another; each has some kilobytes."""
    while first < end:
        count = min(FILLER_COUNT - first % FILLER_COUNT, end - first)
        batch = _empty_records(count)
        records = batch.raw[BATCH_HEADER_SIZE:]
        yield TargetBatch(first, count, with_header(records, Codec.ZSTD, count, batch.header, producer, first))
        first += count


@cache
def _empty_records(count: int) -> Batch:
    """Return a batch of empty records, which gets another header for each place in the target."""
    builder = RecordsBuilder(0, codec=Codec.ZSTD)
    builder.extend([EMPTY] * count)
    (batch,) = builder.build().shallow()
    return batch


def delete_filler(brokers: Brokers, partitions: Sequence[PlannedPartition], *, may_be_compacted: bool = False) -> None:
    """Delete the empty records of partitions: their logs begin at the first restored record. Raises ClusterError.

    may_be_compacted: the topics have their final settings. A broker deletes nothing in a compacted topic, but its
    cleaner removes records without a key.
    """
    for each in partitions:
        code = ErrorCode.NONE
        for attempt in brokers.attempts():
            leader = brokers.leaders([each.place])[each.place]
            answer = brokers.ask(DELETE_RECORDS, delete_body([each]), leader)
            code = answer["topics"][0]["partitions"][0]["errorCode"]
            if code == ErrorCode.POLICY_VIOLATION and may_be_compacted:
                code = ErrorCode.NONE
            if code not in PASSING:
                break
            attempt.problem = BrokerError(each.name, code).problem
        if code:
            raise BrokerError(each.name, code)


def delete_body(partitions: Sequence[PlannedPartition]) -> Fields:
    """Return the request that deletes the empty records of partitions."""
    topics = [
        {"name": each.place[0], "partitions": [{"partitionIndex": each.place[1], "offset": each.base}]}
        for each in partitions
    ]
    return {"topics": topics, "timeoutMs": TIMEOUT_MS}
