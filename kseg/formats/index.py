"""Entries of .index, .timeindex and .txnindex, as grammars and as values.

The values stand in `entries`, so that code on hot paths gets them without construct.
"""

from construct import Struct

from kseg.formats.entries import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry
from kseg.formats.grammar import grammars
from kseg.formats.header_fields import (
    OFFSET_INDEX_ENTRY_FIELDS,
    TIME_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_ENTRY_FIELDS,
)

__all__ = [
    "ABORTED_TRANSACTION",
    "OFFSET_INDEX_ENTRY",
    "TIME_INDEX_ENTRY",
    "AbortedTransaction",
    "OffsetIndexEntry",
    "TimeIndexEntry",
]

OFFSET_INDEX_ENTRY = Struct(*grammars(OFFSET_INDEX_ENTRY_FIELDS))
"""8 bytes. Source: OffsetIndex."""

TIME_INDEX_ENTRY = Struct(*grammars(TIME_INDEX_ENTRY_FIELDS))
"""12 bytes. Source: TimeIndex."""

ABORTED_TRANSACTION = Struct(*grammars(TRANSACTION_INDEX_ENTRY_FIELDS))
"""34 bytes. Source: AbortedTxn."""
