"""Progress of a share-partition: the batches of records that it delivered, and the first unfinished one."""

from collections.abc import Collection
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple

from kseg.formats.messages import Fields


class DeliveryState(IntEnum):
    """The state of records in a share group, as stored. Source: RecordState (KIP-932)."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


FINISHED = (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)
"""States of records that a share group never delivers again."""


class ShareBatch(NamedTuple):
    """Records of one state. state: may be unknown to this release."""

    first_offset: int
    last_offset: int
    state: int
    deliveries: int

    @classmethod
    def of(cls, fields: Fields) -> "ShareBatch":
        """Return the batch of a stored state's fields."""
        return cls(fields["firstOffset"], fields["lastOffset"], fields["deliveryState"], fields["deliveryCount"])


def first_unfinished(start_offset: int, batches: Collection[ShareBatch]) -> int:
    """Return the first offset from a start offset on whose record isn't finished.

    Of batches with the same record the one of more deliveries is newer. Source: PersisterStateBatchCombiner, and
    SharePartition, which skips finished records when it loads a state.
    """
    waiting = sorted(batches, reverse=True)
    covering: list[tuple[int, int, int]] = []  # negative deliveries and state, so that the newest is first; last offset
    offset = start_offset
    while True:
        while waiting and waiting[-1].first_offset <= offset:
            batch = waiting.pop()
            heappush(covering, (-batch.deliveries, -batch.state, batch.last_offset))
        while covering and covering[0][2] < offset:
            heappop(covering)
        if not covering or -covering[0][1] not in FINISHED:
            return offset
        offset = covering[0][2] + 1
        if waiting:
            offset = min(offset, waiting[-1].first_offset)
