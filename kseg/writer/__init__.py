"""Records to bytes: messages, batches, and sets of them, as Kafka's own classes write them."""

from kseg.codecs.body import compress
from kseg.writer.builder import RecordsBuilder, create_records
from kseg.writer.memory_records import MemoryRecords
from kseg.writer.message import InvalidMessageError, Message, MessageAndOffset

__all__ = [
    "InvalidMessageError",
    "MemoryRecords",
    "Message",
    "MessageAndOffset",
    "RecordsBuilder",
    "compress",
    "create_records",
]
