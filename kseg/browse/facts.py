"""Facts about directories and files for the screen: sums, ends, settings."""

from collections.abc import Callable
from pathlib import Path

from kseg.browse.bytes import FileBytes
from kseg.browse.place import Clock, ShownRow, fact, facts
from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import (
    LogDir,
    read_identity,
)
from kseg.cluster.metadata_copy import CHEAP_METADATA, AdjacentMetadata, TopicIds, TopicIdSource
from kseg.cluster.remote_tier import find_tier
from kseg.errors import KsegError, OpenError
from kseg.explain.field import ExplainedField
from kseg.formats.file_names import LOG_KINDS, SUFFIXES, FileKind, parse_file_name
from kseg.index.header_scan import intact_header
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles, Tail, read_index_end, tail_of
from kseg.reading.log_file import LogFile
from kseg.sizes import human_size
from kseg.system.terminal_text import escaped_text

_READ_AT_ONCE = 16 << 20
"""The most bytes of a log without index that are read to find its end while the user waits."""


def partition_at(directory: Path) -> PartitionLog | None:
    """Return the log in a directory, or None if the directory can't be listed."""
    try:
        return PartitionLog(directory)
    except OpenError:
        return None


def facts_of_log_dir(log_dir: LogDir) -> ShownRow:
    """Return information about a log directory."""
    return facts(
        f"log directory {log_dir.path}",
        fact("path", escaped_text(str(log_dir.path))),
        fact("partitions", len(log_dir.directories)),
        *_read_or_problem("cluster.id", lambda: read_identity(log_dir.path).cluster_id),
        *_read_or_problem("broker.id", lambda: read_identity(log_dir.path).broker),
    )


def facts_of_partition(partition: PartitionLog, cluster: Cluster, beside: AdjacentMetadata, clock: Clock) -> ShownRow:
    """Return information about a partition, such as its offsets, checkpoints and state in the metadata."""
    checkpoints = partition.checkpoints()
    known = {
        "high_watermark": (checkpoints.high_watermark, "replicated up to"),
        "recovery_point": (checkpoints.recovery_point, "flushed up to"),
        "clean_offset": (checkpoints.clean_offset, "cleaned up to"),
    }
    return facts(
        f"partition {partition.path.name}",
        fact("partition", escaped_text(partition.path.name)),
        fact("segments", len(partition.segments)),
        fact("size", human_size(partition.size), "of all logs"),
        *_end_of_partition(partition, clock),
        *(fact(name, value, meaning) for name, (value, meaning) in known.items() if value is not None),
        *_read_or_problem("topic_id", partition.read_topic_id),
        *_read_or_problem("leader_epochs", partition.read_leader_epochs),
        read_more=lambda: _by_metadata(partition, cluster, beside),
    )


def _by_metadata(partition: PartitionLog, cluster: Cluster, beside: AdjacentMetadata) -> list[ExplainedField]:
    """Return the information about a partition that requires the cluster metadata, which may be large."""
    tier = find_tier(partition, AdjacentMetadata(cluster=cluster))
    told = TopicIds(cluster).find_evidence(partition) if partition.state is None else None
    is_lost = told is not None and told[1] is not TopicIdSource.FILE
    return [
        fact("log_start_offset", partition.log_start_offset(tier)),
        *([] if tier is None else [fact("local_start_offset", tier.local_start_offset, "on this disk")]),
        *([fact("topic_id", told[0], f"by {told[1]}")] if told is not None and is_lost else []),
        *settings_of(partition, beside),
    ]


def cheap_metadata(cluster: Cluster) -> AdjacentMetadata:
    """Return the metadata if it is small enough to be read while the user is waiting."""
    return AdjacentMetadata(CHEAP_METADATA, log_dirs=cluster.metadata_dirs())


def _end_of_partition(partition: PartitionLog, clock: Clock) -> list[ExplainedField]:
    """Return the end offset and the latest timestamp of a partition."""
    if not partition.segments:
        return []
    try:
        tail = _tail(partition.segments[-1].path)
    except OpenError as error:
        return [fact("log_end_offset", "unreadable", problem=escaped_text(error.message))]
    if tail is None or tail.last is None:
        return []
    return [
        fact("log_end_offset", tail.last.last_offset + 1, "offset of the next record"),
        fact("largest_time", clock.with_age(tail.max_timestamp), "of the last segment"),
    ]


def _read_or_problem(name: str, read: Callable[[], object]) -> list[ExplainedField]:
    """Return an entry from a small file, or a description of the problem if the file can't be read."""
    try:
        value = read()
    except KsegError as error:
        return [fact(name, "unreadable", problem=escaped_text(error.message))]
    return [] if value is None else [fact(name, escaped_text(str(value)))]


def facts_of_file(path: Path, clock: Clock, next_base: int | None = None) -> ShownRow:
    """Return information about a file. `next_base` is the base offset of the next segment."""
    name, source = parse_file_name(path), FileBytes(path)
    suffix = None if name.suffix is None else fact("suffix", name.suffix, SUFFIXES[name.suffix])
    is_log = name.kind is FileKind.LOG and name.base_offset is not None
    return facts(
        path.name,
        fact("file", escaped_text(path.name)),
        fact("kind", str(name.kind)),
        suffix,
        fact("size", f"{source.size} ({human_size(source.size)})"),
        None if name.base_offset is None else fact("base_offset", name.base_offset, "in the file's name"),
        fact("next_segment", next_base, "base offset of the next log") if is_log and next_base is not None else None,
        *(_ends_of_log(path, clock) if name.kind in LOG_KINDS else ()),
        source=source,
    )


def _ends_of_log(path: Path, clock: Clock) -> list[ExplainedField]:
    """Return information about the first and last batch of a log."""
    try:
        with LogFile(path) as log_file:
            header = intact_header(log_file, 0) if log_file.size else None
        last = _tail(path)
    except OpenError as error:
        return [fact("log", "unreadable", problem=escaped_text(error.message))]
    found = []
    if header is not None:
        found += [
            fact("first_offset", header.first_offset, "of the first batch"),
            fact("magic", header.magic, "of the first batch"),
            fact("first_time", clock.text(header.max_timestamp), "largest timestamp of the first batch"),
        ]
    if last is not None and last.last is not None:
        found += [
            fact("last_offset", last.last.last_offset, "of the last batch"),
            fact("largest_time", clock.with_age(last.max_timestamp), "from the last index entry on"),
        ]
    return found


def _tail(path: Path) -> Tail | None:
    """Return the end of a log, or None if its partition isn't in use, or the end would take long to find."""
    segment = next((each for each in _segments_in(path.parent) if each.path.name == path.name), None)
    if segment is None:
        return None
    index = read_index_end(segment)
    if index.last is None and segment.size > _READ_AT_ONCE:
        return None
    with LogFile(path) as log_file:
        return tail_of(log_file, index)


def _segments_in(directory: Path) -> list[SegmentFiles]:
    partition = partition_at(directory)
    return [] if partition is None else [each for each in partition.segments if each.log is not None]


def settings_of(partition: PartitionLog | None, beside: AdjacentMetadata) -> list[ExplainedField]:
    """Return the settings of a partition's topic: its own, and those inherited from its broker."""
    if partition is None:
        return []
    try:
        found = beside.topic_settings(partition)
    except KsegError as error:
        return [fact("settings", "unreadable", problem=escaped_text(error.message))]
    return [fact("setting", f"{escaped_text(name)} = {escaped_text(value)}") for name, value in sorted(found.items())]
