"""Which copies of a cluster's partitions are at hand, and whether they are enough to bring all of it back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from kseg.counted import counted
from kseg.errors import KsegError, OpenError
from kseg.findings.findings import Finding
from kseg.log.diff.truncation import latest_epoch
from kseg.log.partition.log_dir import LogDir, Refuse, find_log_dirs
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.log.partition.partition_log import METADATA_TOPIC, PartitionLog
from kseg.log.partition.replicas import topic_id_of
from kseg.log.partition.segment_tail import read_tail
from kseg.log.verify.verify import Verified
from kseg.views.cluster import ClusterMetadata, ClusterPartition

NO_COPY, NO_IN_SYNC_COPY, OFFSETS_IN_NO_COPY = "no-copy", "no-in-sync-copy", "offsets-in-no-copy"
OTHER_TOPIC_ID, NOT_IN_METADATA, COPY_ABSENT = "other-topic-id", "not-in-metadata", "copy-absent"


class CopiesVerdict(StrEnum):
    """Whether a partition's copies are enough to bring it back."""

    ENOUGH = "enough"
    "One of an in-sync replica is here, and no offsets are missing in all of them."
    GAPS = "gaps"
    "There are offsets that no copy has."
    BEHIND = "behind"
    "None of an in-sync replica is here: acknowledged records may be missing."
    MISSING = "missing"
    "None is here."


class ClusterCopy(NamedTuple):
    """A copy of a partition, and what it reaches to.

    broker: whose log directory it is in; None if its `meta.properties` doesn't say. extents: where its segments begin
    and end, the end not included; one if the cleaner was at work, which leaves gaps.
    """

    path: Path
    broker: int | None
    topic_id: str | None
    log_start_offset: int
    log_end_offset: int
    last_epoch: int
    extents: tuple[tuple[int, int], ...]

    def text(self) -> str:
        """Whose it is, and what it reaches to, for people."""
        broker = "a broker that isn't known" if self.broker is None else f"broker {self.broker}"
        offsets = f"offsets {self.log_start_offset} to {self.log_end_offset - 1}"
        if self.log_end_offset == self.log_start_offset:
            offsets = f"no offsets from {self.log_start_offset} on"
        return f"{broker}, {offsets}, last leader epoch {self.last_epoch}"


@dataclass(frozen=True)
class PartitionCopies:
    """A partition of the cluster, and its copies; the longest one of the latest leader epoch comes first.

    strangers: directories of its name that belong to a topic of another id.
    """

    expected: ClusterPartition
    copies: tuple[ClusterCopy, ...]
    strangers: tuple[ClusterCopy, ...]

    @property
    def name(self) -> str:
        """Of its directories."""
        return f"{self.expected.topic}-{self.expected.partition}"

    @property
    def absent(self) -> tuple[int, ...]:
        """Replicas whose copies aren't here."""
        return tuple(each for each in self.expected.replicas if each not in self._brokers)

    @property
    def in_sync(self) -> tuple[int, ...]:
        """Replicas that have all acknowledged records: a broker that stopped last is out of the ISR, but eligible.

        Without either, those that were eligible before an unclean shutdown; none if nothing is known. Source: KIP-966.
        """
        expected = self.expected
        return (*expected.isr, *(each for each in expected.elr if each not in expected.isr)) or expected.last_known_elr

    @property
    def has_in_sync(self) -> bool:
        """Whether a copy of an in-sync replica is here, or may be: not every log directory says whose it is."""
        return None in self._brokers or not self.in_sync or not self._brokers.isdisjoint(self.in_sync)

    @cached_property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Ranges of offsets between the copies' first and last ones that none of them has: first and last."""
        found: list[tuple[int, int]] = []
        reached: int | None = None
        for first, end in sorted(extent for copy in self.copies for extent in copy.extents):
            if reached is not None and first > reached:
                found.append((reached, first - 1))
            reached = end if reached is None else max(reached, end)
        return tuple(found)

    @property
    def verdict(self) -> CopiesVerdict:
        """Whether it can be brought back."""
        if not self.copies:
            return CopiesVerdict.MISSING
        if not self.has_in_sync:
            return CopiesVerdict.BEHIND
        return CopiesVerdict.GAPS if self.gaps else CopiesVerdict.ENOUGH

    @cached_property
    def _brokers(self) -> frozenset[int | None]:
        return frozenset(copy.broker for copy in self.copies)


@dataclass(frozen=True)
class ClusterCopies:
    """The cluster's partitions with their copies, and directories of partitions that the cluster doesn't know.

    metadata: the furthest that were found; path: the directory where they are looked for first.
    """

    metadata: ClusterMetadata
    path: Path
    partitions: tuple[PartitionCopies, ...]
    unknown: tuple[ClusterCopy, ...]


def find_cluster_copies(
    paths: Sequence[Path], refuse: Refuse | None = None, choice: PartitionChoice = EVERY_PARTITION
) -> ClusterCopies:
    """All copies in some brokers' log directories, or parents of these, of the partitions that a cluster has.

    Args:
        paths: where to look; the metadata log must be in one of them.
        refuse: takes the errors of what can't be listed or opened; None lets them be raised.
        choice: which partitions are meant.

    Raises:
        OpenError: there are no metadata here.
        UsageError: there are those of several clusters.
    """
    log_dirs = [log_dir for path in paths for log_dir in find_log_dirs(path, refuse)]
    metadata = metadata_in(log_dirs)
    if metadata is None:
        raise OpenError(
            f"no log directory with {METADATA_TOPIC}-0 is here: give one of a broker or controller", paths[0]
        )
    found: dict[str, list[ClusterCopy]] = {}
    for log_dir in log_dirs:
        broker = broker_of(log_dir)
        for partition in log_dir.partitions(refuse, choice):
            if partition.state is None and partition.topic != METADATA_TOPIC:
                found.setdefault(partition.path.name, []).append(_copy(partition, broker))
    expected = [each for each in metadata.partitions if choice.takes(each.topic, each.partition)]
    partitions = tuple(_with_copies(each, found.pop(f"{each.topic}-{each.partition}", [])) for each in expected)
    return ClusterCopies(metadata, paths[0], partitions, tuple(copy for copies in found.values() for copy in copies))


def metadata_in(log_dirs: Iterable[LogDir]) -> ClusterMetadata | None:
    """The furthest metadata in some log directories; None if there are none. UsageError if they are of two clusters."""
    from kseg.views.metadata import read_cluster_metadata  # takes a while to import

    paths = [each.path for each in log_dirs if (each.path / f"{METADATA_TOPIC}-0").is_dir()]
    return read_cluster_metadata(paths) if paths else None


def broker_of(log_dir: LogDir) -> int | None:
    """The broker of a log directory; None if its `meta.properties` doesn't say."""
    try:
        return log_dir.broker_id()
    except KsegError:
        return None


def _copy(partition: PartitionLog, broker: int | None) -> ClusterCopy:
    start, end = partition.log_start_offset(), partition.read_end()
    extents = ((start, end.offset),) if partition.was_compacted() else tuple(_extents(partition))
    epoch = latest_epoch(partition, end)
    return ClusterCopy(partition.path, broker, topic_id_of(partition), start, end.offset, epoch, extents)


def _extents(partition: PartitionLog) -> Iterator[tuple[int, int]]:
    for segment in partition.segments:
        last = read_tail(segment).last
        if last is not None and segment.base_offset is not None:
            yield segment.base_offset, last.last_offset + 1


def _with_copies(expected: ClusterPartition, copies: Iterable[ClusterCopy]) -> PartitionCopies:
    reach = sorted(copies, key=lambda copy: (copy.last_epoch, copy.log_end_offset), reverse=True)
    own = tuple(copy for copy in reach if copy.topic_id in (None, expected.topic_id))
    return PartitionCopies(expected, own, tuple(copy for copy in reach if copy not in own))


# --- findings --------------------------------------------------------------------------------------------------------


def verified_copies(copies: ClusterCopies) -> Verified:
    """What the copies of a cluster's partitions lack."""
    findings = [finding for each in copies.partitions for finding in _findings(each, copies.path)]
    known = f"the metadata, which end at offset {copies.metadata.offset}, don't have it"
    findings += [Finding(NOT_IN_METADATA, copy.path, f"{copy.text()}; {known}") for copy in copies.unknown]
    return Verified(copies.path, tuple(findings))


def _findings(partition: PartitionCopies, path: Path) -> Iterator[Finding]:
    expected = partition.expected
    place = partition.copies[0].path if partition.copies else path / partition.name
    replicas = f"replicas are on brokers {_numbers(expected.replicas)}, in sync {_numbers(partition.in_sync)}"
    if not partition.copies:
        yield Finding(NO_COPY, place, f"none is here; {replicas}")
    elif not partition.has_in_sync:
        yield Finding(NO_IN_SYNC_COPY, place, f"here is {partition.copies[0].text()}; {replicas}")
    elif partition.absent:
        yield Finding(COPY_ABSENT, place, f"none of broker {_numbers(partition.absent)} is here; {replicas}")
    for first, last in partition.gaps:
        sentence = f"none of {counted(len(partition.copies), 'copy', 'copies')} has offsets {first} to {last}"
        yield Finding(OFFSETS_IN_NO_COPY, place, sentence, first_offset=first, last_offset=last)
    for copy in partition.strangers:
        yield Finding(OTHER_TOPIC_ID, copy.path, f"topic id {copy.topic_id}, in the metadata {expected.topic_id}")


def _numbers(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers)) or "unknown"
