"""Producer snapshots (.snapshot): the state of idempotent and transactional producers up to an offset."""

from construct import Array, Default, GreedyBytes, Struct, len_, this

from kseg.formats.grammar import grammars
from kseg.formats.header_fields import PRODUCER_ENTRY_FIELDS, PRODUCER_SNAPSHOT_HEADER_FIELDS

PRODUCER_ENTRY = Struct(*grammars(PRODUCER_ENTRY_FIELDS))
"""46 bytes."""

PRODUCER_SNAPSHOT = Struct(
    *grammars(PRODUCER_SNAPSHOT_HEADER_FIELDS, entries_count=len_(this.entries)),
    "entries" / Array(this.entries_count, PRODUCER_ENTRY) * "one per producer",
    "trailing" / Default(GreedyBytes, b"") * "bytes after the last entry; Kafka never writes any, and ignores them",
)
"""The whole file; the CRC is built as given. Source: ProducerStateManager."""
