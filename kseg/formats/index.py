"""Entries of .index, .timeindex and .txnindex, as grammars and as values.

The values stand in `entries`, so that code on hot paths gets them without construct.
"""

from construct import Int16sb, Int32sb, Int64sb, Struct

from kseg.formats.entries import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry

__all__ = [
    "ABORTED_TRANSACTION",
    "OFFSET_INDEX_ENTRY",
    "TIME_INDEX_ENTRY",
    "AbortedTransaction",
    "OffsetIndexEntry",
    "TimeIndexEntry",
]

OFFSET_INDEX_ENTRY = Struct(
    "relative_offset" / Int32sb * "offset minus the segment's base offset",
    "position" / Int32sb * "byte position in the .log of the batch to scan from",
)
"""8 bytes. Source: OffsetIndex."""

TIME_INDEX_ENTRY = Struct(
    "timestamp" / Int64sb * "milliseconds; no record up to the offset has a later time",
    "relative_offset" / Int32sb * "offset minus the segment's base offset",
)
"""12 bytes. Source: TimeIndex."""

ABORTED_TRANSACTION = Struct(
    "version" / Int16sb * "version of the entry: 0",
    "producer_id" / Int64sb * "producer whose transaction was aborted",
    "first_offset" / Int64sb * "first offset of the transaction in this partition",
    "last_offset" / Int64sb * "offset of the abort marker",
    "last_stable_offset" / Int64sb * "last stable offset when the entry was written",
)
"""34 bytes. Source: AbortedTxn."""
