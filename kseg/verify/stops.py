"""The kind of a node's last stop, which decides about the files that its next start trusts."""

from enum import StrEnum
from pathlib import Path

from kseg.cluster.directories import META_PROPERTIES
from kseg.formats.file_names import FileKind
from kseg.log.partition import METADATA_TOPIC, PartitionLog

CLEAN_SHUTDOWN = str(FileKind.CLEAN_SHUTDOWN)


class Stop(StrEnum):
    """The way a node was last stopped. Source: LogManager.loadLogs."""

    CLEAN = "clean"
    KILLED = "killed"
    """Killed, or still running."""
    UNKNOWN = "unknown"
    """The directory isn't in a node's log directory."""


def stop_of(partition: PartitionLog) -> Stop:
    """Return how the node that owns the log directory was last stopped."""
    return Stop.UNKNOWN if partition.topic == METADATA_TOPIC else stop_at(partition.log_dir)


def stop_at(log_dir: Path) -> Stop:
    """Return the last stop of the node of a log directory."""
    if (log_dir / CLEAN_SHUTDOWN).exists():
        return Stop.CLEAN
    return Stop.KILLED if (log_dir / META_PROPERTIES).exists() else Stop.UNKNOWN
