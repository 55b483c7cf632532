"""`retain`: what retention would delete in a partition, and when; can write a copy without it."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kseg.index.producer_snapshot import build_producer_snapshot
from kseg.log.partition.listing import ListingSettings, PartitionListing, list_partition
from kseg.log.partition.partition_log import METADATA_TOPIC, PartitionLog
from kseg.log.partition.roll import Retention, RetentionSettings
from kseg.log.partition.segment_listing import SegmentListing
from kseg.log.partition.side_files import states_at
from kseg.system.new_directory import copy_file, new_directory


@dataclass(frozen=True, slots=True)
class Retained:
    """A segment, what retention does with it, and when (milliseconds) it expires by its age; None if never."""

    segment: SegmentListing
    expires_ms: int | None

    @property
    def is_kept(self) -> bool:
        """Whether retention keeps it."""
        return self.segment.retention is None or not self.segment.retention.is_deletion


def retain_partition(partition: PartitionLog, settings: RetentionSettings) -> list[Retained]:
    """Every segment of a partition, oldest first, and what `cleanup.policy=delete` would do with it.

    A segment expires when it is older than retention.ms and all before it are gone. Source:
    UnifiedLog.deleteOldSegments.
    """
    return retained_of(list_partition(partition, ListingSettings(settings)), settings)


def retained_of(listing: PartitionListing, settings: RetentionSettings) -> list[Retained]:
    """The same of a partition that was listed by these settings."""
    retained, latest = [], 0
    for segment in listing.segments:
        latest = max(latest, segment.age_timestamp + settings.retention_ms + 1)
        has_age = listing.partition.topic != METADATA_TOPIC and segment.retention not in (None, Retention.COMPACTED)
        has_end = settings.retention_ms >= 0 and has_age and segment.size > 0
        expires = latest if has_end else None
        retained.append(Retained(segment, expires))
    return retained


class RetainedCopy(NamedTuple):
    """A copy: base offsets of its segments; `rolled` is that of a new empty one, None if there is none."""

    base_offsets: tuple[int, ...]
    rolled: int | None


def copy_retained(partition: PartitionLog, retained: list[Retained], directory: Path) -> RetainedCopy:
    """Copies a partition without its deleted segments into a new directory.

    If all are deleted, there is an empty segment at the log end offset, with the producers there: a broker rolls before
    it deletes the others. Leaves out producer snapshots below the first remaining segment, which a broker deletes too;
    copies other files unchanged. Raises UsageError if the directory is there and not empty, OSError if the system can't
    read or write. Source: UnifiedLog.deleteSegments.
    """
    with new_directory(directory) as unfinished:
        return _copy(partition, retained, unfinished)


def _copy(partition: PartitionLog, retained: list[Retained], directory: Path) -> RetainedCopy:
    gone = {each.segment.base_offset for each in retained if not each.is_kept}
    kept = [segment for segment in partition.segments if segment.base_offset not in gone]
    rolled = partition.read_log_end_offset() if gone and not kept else None
    first = kept[0].base_offset if kept else rolled
    files = [file for segment in kept for file in segment.files]
    files += [file for offset, file in partition.snapshots.items() if first is None or offset >= first]
    files += [*partition.metadata_snapshots, *partition.others]
    for file in files:
        copy_file(file.path, directory / file.name)
    if rolled is None:
        return RetainedCopy(tuple(segment.base_offset for segment in kept), None)
    _roll(partition, rolled, directory)
    return RetainedCopy((rolled,), rolled)


def _roll(partition: PartitionLog, offset: int, directory: Path) -> None:
    """Writes an empty segment and the producers at its start, if there are any or snapshots were kept."""
    for extension in (".log", ".index", ".timeindex"):
        (directory / f"{offset:020}{extension}").touch()
    if offset in partition.snapshots:
        return
    states = states_at(partition, offset)
    if partition.snapshots or states.producers:
        (directory / f"{offset:020}.snapshot").write_bytes(build_producer_snapshot(states))
