"""How a node was stopped: that decides what its next start trusts."""

from enum import StrEnum
from pathlib import Path

from kseg.cluster.directories import META_PROPERTIES
from kseg.formats.file_names import FileKind
from kseg.log.partition import METADATA_TOPIC, PartitionLog

CLEAN_SHUTDOWN = str(FileKind.CLEAN_SHUTDOWN)


class Stop(StrEnum):
    """How a node was stopped. Source: LogManager.loadLogs."""

    CLEAN = "clean"
    KILLED = "killed"
    "Or it runs."
    UNKNOWN = "unknown"
    "The directory isn't in a node's log directory."


def stop_of(partition: PartitionLog) -> Stop:
    """How the node of a partition's log directory was stopped; that decides nothing for the metadata's own log."""
    return Stop.UNKNOWN if partition.topic == METADATA_TOPIC else stop_at(partition.log_dir)


def stop_at(log_dir: Path) -> Stop:
    """How the node of a log directory was stopped."""
    if (log_dir / CLEAN_SHUTDOWN).exists():
        return Stop.CLEAN
    return Stop.KILLED if (log_dir / META_PROPERTIES).exists() else Stop.UNKNOWN
