"""kseg reads Apache Kafka's files on disk.

import kseg

with kseg.open_segment("orders-0/00000000000000203000.log") as segment:
    for batch in segment.batches():
        for record in batch.records():
            print(record.offset, record.key, record.value)
"""

TYPE_CHECKING = False  # typing's own is an import that every start would wait for, Ctrl-C included
if TYPE_CHECKING:
    from kseg.errors import DamagedError, KsegError, OpenError, UsageError
    from kseg.formats.codes import Codec
    from kseg.kernel.record import Header, Record
    from kseg.reading.batch import Batch
    from kseg.reading.damage import Damage
    from kseg.reading.segment import Segment, open_segment
    from kseg.writer.builder import create_records
    from kseg.writer.memory_records import MemoryRecords
    from kseg.writer.message import InvalidMessageError, Message

__all__ = [
    "Batch",
    "Codec",
    "Damage",
    "DamagedError",
    "Header",
    "InvalidMessageError",
    "KsegError",
    "MemoryRecords",
    "Message",
    "OpenError",
    "Record",
    "Segment",
    "UsageError",
    "create_records",
    "open_segment",
]

_HOMES = {
    "Batch": "kseg.reading.batch",
    "Codec": "kseg.formats.codes",
    "Damage": "kseg.reading.damage",
    "DamagedError": "kseg.errors",
    "Header": "kseg.kernel.record",
    "InvalidMessageError": "kseg.writer.message",
    "KsegError": "kseg.errors",
    "MemoryRecords": "kseg.writer.memory_records",
    "Message": "kseg.writer.message",
    "OpenError": "kseg.errors",
    "Record": "kseg.kernel.record",
    "Segment": "kseg.reading.segment",
    "UsageError": "kseg.errors",
    "create_records": "kseg.writer.builder",
    "open_segment": "kseg.reading.segment",
}


def __getattr__(name: str) -> object:
    """Imports what is asked for only then: starting up is a feature."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kseg' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """What there is, imported already or not."""
    return sorted({*globals(), *_HOMES})
