"""kseg reads Apache Kafka's files on disk.

import kseg

for record in kseg.open("kafka-logs").records(from_time="2026-11-01", key="customer-7"):
    print(record.offset, record.key, record.value)

docs/python/index.md describes what there is.
"""

TYPE_CHECKING = False  # typing's own is an import that every start would wait for, Ctrl-C included
if TYPE_CHECKING:
    from kseg.api.connecting import connect
    from kseg.api.decoded_record import DecodedRecord
    from kseg.api.kseg_warning import KsegWarning
    from kseg.api.log_directory import LogDirectory
    from kseg.api.opening import open, open_segment  # noqa: A004
    from kseg.api.partition import Partition
    from kseg.api.segment import Segment
    from kseg.api.verification import Verification
    from kseg.errors import DamagedError, KsegError, OpenError, UsageError
    from kseg.findings.findings import Finding
    from kseg.formats.codes import Codec, TimestampType
    from kseg.kernel.record import Header, Record
    from kseg.log.diff.differences import PartitionDiff
    from kseg.log.lookup.lookup import Lookup
    from kseg.reading.batch import Batch
    from kseg.reading.damage import Damage
    from kseg.selection import Selection
    from kseg.views.cluster import ClusterMetadata
    from kseg.views.groups import GroupsView
    from kseg.views.salvaged import Salvaged
    from kseg.views.transaction_rows import CoordinatorRow, TransactionRow
    from kseg.writer.builder import RecordsBuilder, create_records
    from kseg.writer.memory_records import MemoryRecords
    from kseg.writer.message import InvalidMessageError, Message

__all__ = [
    "Batch",
    "ClusterMetadata",
    "Codec",
    "CoordinatorRow",
    "Damage",
    "DamagedError",
    "DecodedRecord",
    "Finding",
    "GroupsView",
    "Header",
    "InvalidMessageError",
    "KsegError",
    "KsegWarning",
    "LogDirectory",
    "Lookup",
    "MemoryRecords",
    "Message",
    "OpenError",
    "Partition",
    "PartitionDiff",
    "Record",
    "RecordsBuilder",
    "Salvaged",
    "Segment",
    "Selection",
    "TimestampType",
    "TransactionRow",
    "UsageError",
    "Verification",
    "connect",
    "create_records",
    "open",
    "open_segment",
]

_HOMES = {
    "Batch": "kseg.reading.batch",
    "ClusterMetadata": "kseg.views.cluster",
    "Codec": "kseg.formats.codes",
    "CoordinatorRow": "kseg.views.transaction_rows",
    "Damage": "kseg.reading.damage",
    "DamagedError": "kseg.errors",
    "DecodedRecord": "kseg.api.decoded_record",
    "Finding": "kseg.findings.findings",
    "GroupsView": "kseg.views.groups",
    "Header": "kseg.kernel.record",
    "InvalidMessageError": "kseg.writer.message",
    "KsegError": "kseg.errors",
    "KsegWarning": "kseg.api.kseg_warning",
    "LogDirectory": "kseg.api.log_directory",
    "Lookup": "kseg.log.lookup.lookup",
    "MemoryRecords": "kseg.writer.memory_records",
    "Message": "kseg.writer.message",
    "OpenError": "kseg.errors",
    "Partition": "kseg.api.partition",
    "PartitionDiff": "kseg.log.diff.differences",
    "Record": "kseg.kernel.record",
    "RecordsBuilder": "kseg.writer.builder",
    "Salvaged": "kseg.views.salvaged",
    "Segment": "kseg.api.segment",
    "Selection": "kseg.selection",
    "TimestampType": "kseg.formats.codes",
    "TransactionRow": "kseg.views.transaction_rows",
    "UsageError": "kseg.errors",
    "Verification": "kseg.api.verification",
    "connect": "kseg.api.connecting",
    "create_records": "kseg.writer.builder",
    "open": "kseg.api.opening",
    "open_segment": "kseg.api.opening",
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
