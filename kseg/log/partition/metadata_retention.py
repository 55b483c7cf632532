"""Retention of `__cluster_metadata`: by its snapshots, never by topics' settings. Source: KafkaRaftLog.maybeClean."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.formats.messages import parse_message
from kseg.formats.names import parse_file_name
from kseg.formats.schemas import message_schema
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.roll import RetainedSegment
from kseg.log.partition.segment_files import FoundFile
from kseg.reading.batch import Batch
from kseg.reading.log_file import LogFile
from kseg.reading.scan import scan_log

METADATA_RETENTION_BYTES = 100 << 20
"""`metadata.max.retention.bytes`."""
METADATA_RETENTION_MS = 604_800_000
"""`metadata.max.retention.ms`."""


class _Snapshot(NamedTuple):
    """A snapshot: the offset where it ends, its bytes, the time of the last record in it; None if it can't be read."""

    end_offset: int
    size: int
    timestamp: int | None


def metadata_log_start(
    partition: PartitionLog, segments: Sequence[RetainedSegment], log_start_offset: int, now_ms: int
) -> int:
    """The log start offset of `__cluster_metadata` after a pass of its broker, by Kafka's default settings.

    Deletes a snapshot, and the log before the next one, while snapshots and log together have too many bytes, or the
    snapshot is too old; the newest one stays.
    """
    cleaning = _SnapshotCleaning(_snapshots(partition), list(segments), log_start_offset)
    cleaning.clean(lambda _: cleaning.size > METADATA_RETENTION_BYTES)
    cleaning.clean(lambda each: each.timestamp is not None and now_ms - each.timestamp > METADATA_RETENTION_MS)
    return cleaning.log_start_offset


class _SnapshotCleaning:
    def __init__(self, snapshots: list[_Snapshot], segments: list[RetainedSegment], log_start_offset: int) -> None:
        self._snapshots = snapshots
        self._segments = segments
        self.log_start_offset = log_start_offset

    @property
    def size(self) -> int:
        """Bytes of snapshots and segments that are left."""
        return sum(each.size for each in self._snapshots) + sum(each.size for each in self._segments)

    def clean(self, is_to_go: Callable[[_Snapshot], bool]) -> None:
        """Deletes the oldest snapshots while this is true for them."""
        while len(self._snapshots) > 1 and is_to_go(self._snapshots[0]):
            following = self._snapshots[1]
            if following.end_offset <= self.log_start_offset:
                return
            del self._snapshots[0]
            self.log_start_offset = following.end_offset
            while len(self._segments) > 1 and self._segments[0].end_offset <= self.log_start_offset:
                del self._segments[0]


def _snapshots(partition: PartitionLog) -> list[_Snapshot]:
    found = []
    for file in partition.metadata_snapshots:
        end_offset = parse_file_name(file.path).base_offset
        if end_offset is not None:
            found.append(_Snapshot(end_offset, file.size, _timestamp(file)))
    return sorted(found, key=lambda each: each.end_offset)


def _timestamp(file: FoundFile) -> int | None:
    """The time of the last record in a snapshot, from its header."""
    try:
        with LogFile(file.path) as log_file:
            first = next((item for item in scan_log(log_file) if isinstance(item, Batch)), None)
            record = None if first is None else next(first.records(), None)
        if record is None or record.value is None:
            return None
        return int(
            parse_message(message_schema("SnapshotHeaderRecord"), 0, record.value).value["lastContainedLogTimestamp"]
        )
    except KsegError:
        return None
