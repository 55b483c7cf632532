"""Entries of indexes as values, and the versions that Kafka writes, without construct."""

from typing import NamedTuple


class OffsetIndexEntry(NamedTuple):
    """Entry of an .index: absolute offset, byte position in the .log."""

    offset: int
    position: int


class TimeIndexEntry(NamedTuple):
    """Entry of a .timeindex: milliseconds, absolute offset."""

    timestamp: int
    offset: int


class AbortedTransaction(NamedTuple):
    """Entry of a .txnindex: a transaction of this partition that ended with an abort marker at `last_offset`."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


TRANSACTION_INDEX_VERSION = 0
"""The version that Kafka writes into each entry of a .txnindex, and the newest that it reads."""
PRODUCER_SNAPSHOT_VERSION = 1
"""The version of a .snapshot that Kafka writes, and the only one that it reads."""
