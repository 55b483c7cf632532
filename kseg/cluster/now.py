"""The current time for judgements: a given one, the clock's, or the newest broker time on an unused disk."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import tzinfo
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import pass_over
from kseg.errors import FileError, OpenError
from kseg.formats.codes import NO_TIMESTAMP
from kseg.formats.file_names import parse_partition_directory
from kseg.index.header_scan import first_header
from kseg.log.partition import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, PartitionLog
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.reading.batch import BatchHeader
from kseg.system.directory_names import list_names
from kseg.system.file_locks import is_locked
from kseg.system.placed_path import is_far
from kseg.times import is_age, iso_time, now_ms, time_text

FRESH_MS = 600_000
"""The largest age of a running broker's newest time: a copy's is older."""
LOCK_FILE = ".lock"
"""The file that a running broker locks in each log directory."""
_BROKERS_OWN = (METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
"""Topics whose records have the time of a controller or coordinator."""


class NowSource(Enum):
    """The source of the current time."""

    GIVEN = "given"
    CLOCK = "clock"
    DISK = "disk"
    FILES = "files"
    "The newest time of a log's file, where no broker wrote a time: a copy may have set it."


_SOURCES = MappingProxyType(
    {
        NowSource.GIVEN: "the time of --now",
        NowSource.CLOCK: "the current time",
        NowSource.DISK: "the newest timestamp that a broker wrote",
        NowSource.FILES: "the newest modification time of a log file",
    }
)


class Now(NamedTuple):
    """The current time for judgements, in milliseconds since 1970, and its source."""

    ms: int
    source: NowSource

    @property
    def given_ms(self) -> int | None:
        """The time if it was given, else None."""
        return self.ms if self.source is NowSource.GIVEN else None

    def origin(self, zone: tzinfo) -> str:
        """Return a sentence about the time that ages in options count back from."""
        return f'"now" is {time_text(self.ms, zone)}, {_SOURCES[self.source]}'

    def sentences(self) -> Iterator[str]:
        """Yield a sentence about the time, if it is neither given nor the clock's."""
        time = iso_time(self.ms)
        if self.source is NowSource.DISK:
            yield (
                f'no broker is using this disk, so "now" is {time}, the newest timestamp that a broker wrote; specify'
                " --now to set another time"
            )
        elif self.source is NowSource.FILES:
            yield (
                f'no broker is using this disk, so "now" is {time}, the newest modification time of a log file; copying'
                " may have set it, so check it, or specify --now"
            )


def settle_now(given_ms: int | None, cluster: Cluster) -> Now:
    """Return the given time, or else the clock's while a broker uses the disk or has just written to it.

    On an unused disk it is the newest time that a broker wrote, else of its files, never a producer's.
    """
    if given_ms is not None:
        return Now(given_ms, NowSource.GIVEN)
    clock_ms = now_ms()
    log_dirs = {path.absolute() for path in cluster.metadata_dirs() if not is_far(path)}
    if any(is_locked(path / LOCK_FILE) for path in log_dirs):
        return Now(clock_ms, NowSource.CLOCK)
    newest = newest_written(cluster)
    return Now(clock_ms, NowSource.CLOCK) if newest.ms < 0 or clock_ms - newest.ms <= FRESH_MS else newest


def origin_of_ages(texts: Iterable[str | None], given_ms: int | None, paths: Sequence[Path]) -> Now | None:
    """Return the time that ages among the given times count back from, or None if there is no age."""
    return settle_now(given_ms, Cluster(paths, pass_over)) if any(map(is_age, texts)) else None


def nothing_written(partitions: Iterable[PartitionLog], zone: tzinfo) -> str:
    """Return a sentence for a state before the first record of some partitions."""
    firsts = [each for each in map(_first_batch, partitions) if each is not None]
    if not firsts:
        return "nothing had been written by then"
    time = time_text(min(each.base_timestamp for each in firsts), zone)
    if any(each.first_offset for each in firsts):
        return f"earlier records were deleted; the first remaining record is from {time}"
    return f"nothing had been written by then; the first record is from {time}"


def newest_written(cluster: Cluster) -> Now:
    """Return the newest time that brokers wrote, -1 without any.

    It is from the metadata and from coordinators. Without them, it is from batches with LogAppendTime, else from the
    logs' files. Partitions next to one that was given by its own path count too.
    """
    own = _partitions(cluster, PartitionChoice(_BROKERS_OWN))
    newest_ms = max((_last_ms(each, has_own_clock=True) for each in own), default=NO_TIMESTAMP)
    if newest_ms >= 0:
        return Now(newest_ms, NowSource.DISK)
    others = list(_partitions(cluster, EVERY_PARTITION))
    newest_ms = max((_last_ms(each, has_own_clock=False) for each in others), default=NO_TIMESTAMP)
    if newest_ms >= 0:
        return Now(newest_ms, NowSource.DISK)
    return Now(max(map(_modified_ms, others), default=NO_TIMESTAMP), NowSource.FILES)


def _partitions(cluster: Cluster, choice: PartitionChoice) -> Iterator[PartitionLog]:
    """Yield the chosen partitions of the listed log directories, and those around given partitions."""
    for log_dir in cluster.log_dirs:
        yield from log_dir.partitions(pass_over, choice)
    given = [path.absolute() for path in cluster.given_partitions]
    for path in filter(choice.takes_directory, dict.fromkeys((*given, *_next_to(given, cluster)))):
        with suppress(OpenError):
            yield PartitionLog(path)


def _next_to(given: Iterable[Path], cluster: Cluster) -> Iterator[Path]:
    """Yield the partition directories next to given ones, by their names; none in a store, where a listing costs."""
    listed = {each.path.absolute() for each in cluster.log_dirs}
    for directory in dict.fromkeys(path.parent for path in given if not is_far(path)):
        if directory in listed:
            continue
        with suppress(OpenError):
            names = list_names(directory).directories
            yield from (directory / name for name in names if parse_partition_directory(name))


def _last_ms(partition: PartitionLog, *, has_own_clock: bool) -> int:
    """Return the timestamp of a partition's last batch, if a broker's clock has set it."""
    try:
        last = partition.read_end().last
    except FileError:
        return NO_TIMESTAMP
    return last.max_timestamp if last is not None and (has_own_clock or last.is_log_append_time) else NO_TIMESTAMP


def _first_batch(partition: PartitionLog) -> BatchHeader | None:
    """Return the header of a partition's first batch, or None if there isn't any."""
    with suppress(FileError):
        for segment in partition.segments:
            with segment.open_log() as log_file:
                first = first_header(log_file)
            if first is not None:
                return first
    return None


def _modified_ms(partition: PartitionLog) -> int:
    return max((segment.log.modified_ms for segment in partition.segments if segment.log), default=NO_TIMESTAMP)
