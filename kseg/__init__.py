"""kseg reads Apache Kafka's files on disk.

import kseg

for record in kseg.open("kafka-logs").records(from_time="2026-11-01", key="customer-7"):
    print(record.offset, record.key, record.value)

docs/python/index.md describes what there is.
"""

TYPE_CHECKING = False  # importing it from typing would delay every start, Ctrl-C included
if TYPE_CHECKING:
    from kseg.api.cluster import Cluster, Topic
    from kseg.api.open import LogDirectory, open, open_cluster, open_segment  # noqa: A004
    from kseg.api.partition import Partition, Segment, Verification
    from kseg.api.tables import DecodedRecord, KsegWarning, connect
    from kseg.cluster.model import ClusterMetadata
    from kseg.coordinators.groups import GroupsView
    from kseg.diff.differences import PartitionDiff
    from kseg.errors import ClusterError, DamagedError, KsegError, OpenError, UsageError
    from kseg.findings.findings import Finding
    from kseg.formats.codes import Codec, TimestampType
    from kseg.kernel.record import Header, Record
    from kseg.log.lookup import Lookup
    from kseg.log.selection import Selection
    from kseg.reading.batch import Batch
    from kseg.reading.blocks import Damage
    from kseg.restore.run import RestoreReport
    from kseg.rewrite.salvage import Salvaged
    from kseg.text.transactions import CoordinatorRow, TransactionRow
    from kseg.writer.batches import MemoryRecords, RecordsBuilder, create_records
    from kseg.writer.messages import InvalidMessageError, Message


__all__ = [
    "Batch",
    "Cluster",
    "ClusterError",
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
    "RestoreReport",
    "Salvaged",
    "Segment",
    "Selection",
    "TimestampType",
    "Topic",
    "TransactionRow",
    "UsageError",
    "Verification",
    "connect",
    "create_records",
    "open",
    "open_cluster",
    "open_segment",
]

_HOMES = {
    "Batch": "kseg.reading.batch",
    "Cluster": "kseg.api.cluster",
    "ClusterError": "kseg.errors",
    "ClusterMetadata": "kseg.cluster.model",
    "Codec": "kseg.formats.codes",
    "CoordinatorRow": "kseg.text.transactions",
    "Damage": "kseg.reading.blocks",
    "DamagedError": "kseg.errors",
    "DecodedRecord": "kseg.api.tables",
    "Finding": "kseg.findings.findings",
    "GroupsView": "kseg.coordinators.groups",
    "Header": "kseg.kernel.record",
    "InvalidMessageError": "kseg.writer.messages",
    "KsegError": "kseg.errors",
    "KsegWarning": "kseg.api.tables",
    "LogDirectory": "kseg.api.open",
    "Lookup": "kseg.log.lookup",
    "MemoryRecords": "kseg.writer.batches",
    "Message": "kseg.writer.messages",
    "OpenError": "kseg.errors",
    "Partition": "kseg.api.partition",
    "PartitionDiff": "kseg.diff.differences",
    "Record": "kseg.kernel.record",
    "RecordsBuilder": "kseg.writer.batches",
    "RestoreReport": "kseg.restore.run",
    "Salvaged": "kseg.rewrite.salvage",
    "Segment": "kseg.api.partition",
    "Selection": "kseg.log.selection",
    "TimestampType": "kseg.formats.codes",
    "Topic": "kseg.api.cluster",
    "TransactionRow": "kseg.text.transactions",
    "UsageError": "kseg.errors",
    "Verification": "kseg.api.partition",
    "connect": "kseg.api.tables",
    "create_records": "kseg.writer.batches",
    "open": "kseg.api.open",
    "open_cluster": "kseg.api.open",
    "open_segment": "kseg.api.open",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use, so kseg starts quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kseg' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return all public names, including names that haven't been imported yet."""
    return sorted({*globals(), *_HOMES})
