"""Forecasts of nodes' starts from all findings on their disks: the most severe consequence for each node."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import LogDir
from kseg.findings.at_start import BAD_BYTES, UNREADABLE_RECORDS, AtStart, at_start
from kseg.findings.findings import Finding
from kseg.formats.file_names import parse_file_name, parse_partition_directory
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.selection import PartitionChoice
from kseg.tiered.placed_tiers import placed_at
from kseg.verify.start_judgement import recovered_from
from kseg.verify.stops import Stop, stop_at, stop_of

Lost = tuple[int | None, int | None]
"""The first and the last offset that no consumer gets; None if unknown."""

_STUCK = frozenset({*BAD_BYTES, *UNREADABLE_RECORDS, "record-offsets"})
"""Consumers don't get beyond these, or a recovery cuts the log there."""
LOST_BEFORE = ("checkpoint-beyond-end", "copies-diverged")
"""Findings of records that are lost whatever a start does: after the log's end, or of an abandoned lineage."""
_COUNTED = (AtStart.LOSES, AtStart.UNSERVED)
"""Consequences with a count of records."""


class StartEffect(NamedTuple):
    """The effect of one finding at a start.

    place: the partition's directory; None for a node's finding.
    """

    finding: Finding
    consequence: AtStart
    place: Path | None = None
    lost: Lost = (None, None)


def effects_on_partition(partition: PartitionLog, found: Iterable[Finding]) -> Iterator[StartEffect]:
    """Yield the effects at a start of a partition's findings that do harm, or tell of lost records."""
    recovered = recovered_from(partition)
    is_stop_known = stop_of(partition) is not Stop.UNKNOWN
    losses = _Losses(partition)
    for each in found:
        base = parse_file_name(each.file).base_offset
        is_recovered = recovered is not None and (base is None or base >= recovered)
        consequence = at_start(each.id, is_recovered=is_recovered if is_stop_known else None)
        if consequence is AtStart.REFUSES or (consequence is not AtStart.WELL and partition.state is None):
            lost = losses.of(each) if consequence in _COUNTED else (None, None)
            yield StartEffect(each, consequence, partition.path, lost)
        elif each.id in LOST_BEFORE and partition.state is None:
            yield _lost_before(each, partition.path)


def effects_on_node(found: Iterable[Finding]) -> Iterator[StartEffect]:
    """Yield the harmful effects of a log directory's own findings at a start."""
    for each in found:
        consequence = at_start(each.id, is_recovered=None)
        if consequence is not AtStart.WELL:
            yield StartEffect(each, consequence, _partition_of(each.file))
        elif each.id in LOST_BEFORE:
            yield _lost_before(each, _partition_of(each.file))


def _lost_before(finding: Finding, place: Path | None) -> StartEffect:
    return StartEffect(finding, AtStart.WELL, place, (finding.first_offset, finding.last_offset))


def _partition_of(path: Path) -> Path | None:
    return next((each for each in (path, path.parent) if parse_partition_directory(each) is not None), None)


class _Losses:
    """The losses from findings in a partition; its end is read once, and only if it matters."""

    def __init__(self, partition: PartitionLog) -> None:
        self._partition = partition

    def of(self, finding: Finding) -> Lost:
        """Return the offsets that a finding loses."""
        base = parse_file_name(finding.file).base_offset
        first = base if finding.first_offset is None else finding.first_offset
        after = None if base is None else self._base_after(base)
        if first is None:
            return None, None
        if finding.id in _STUCK or (after is not None and first >= after):
            end = self._end
            return first, end - 1 if end is not None and end > first else None
        if finding.last_offset is not None:
            return first, finding.last_offset
        return first, None if after is None else after - 1

    def _base_after(self, offset: int) -> int | None:
        slot = self._partition.floor_slot(offset)
        return next(iter(self._partition.base_offsets[0 if slot is None else slot + 1 :]), None)

    @cached_property
    def _end(self) -> int | None:
        """The log's end, or None if damage hides it."""
        end = self._partition.read_end()
        is_known = end.damage is None or (end.last is not None and end.last.position > end.damage.position)
        return end.offset if is_known else None


@dataclass(slots=True)
class NodeStart:
    """The result of a node's start, by the effects so far.

    log_dirs: its log directories that were given. stops: how it was stopped, by each of them. refusals: why it doesn't
    start. harmed: partitions' directories, by what a start does to them, with the offsets that consumers don't get.
    lost_before: the same by each of LOST_BEFORE.
    """

    log_dirs: list[LogDir] = field(default_factory=list)
    stops: set[Stop] = field(default_factory=set)
    refusals: dict[tuple[str, Path], Finding] = field(default_factory=dict)
    is_empty: bool = False
    harmed: dict[AtStart, dict[Path, list[Lost]]] = field(default_factory=dict)
    lost_before: dict[str, dict[Path, list[Lost]]] = field(default_factory=dict)

    @property
    def consequence(self) -> AtStart:
        """The gravest one."""
        if self.refusals:
            return AtStart.REFUSES
        return AtStart.EMPTY if self.is_empty else min(self.harmed, key=lambda each: each.rank, default=AtStart.WELL)

    @property
    def is_well(self) -> bool:
        """Return True if the node starts well, and no records were lost before."""
        return self.consequence is AtStart.WELL and not self.lost_before

    def take(self, effect: StartEffect) -> None:
        """Add the effect of another finding."""
        match effect.consequence:
            case AtStart.REFUSES:
                self.refusals.setdefault((effect.finding.id, effect.finding.file), effect.finding)
            case AtStart.EMPTY:
                self.is_empty = True
            case AtStart.WELL:
                _add(self.lost_before.setdefault(effect.finding.id, {}), effect)
            case consequence:
                _add(self.harmed.setdefault(consequence, {}), effect)


def _add(places: dict[Path, list[Lost]], effect: StartEffect) -> None:
    places.setdefault(effect.place or effect.finding.file, []).append(effect.lost)


def most_records(places: Mapping[Path, Sequence[Lost]]) -> int | None:
    """The most records that are lost in the given partitions, or None if that can't be told."""
    counts = [_count(found) for found in places.values()]
    return None if None in counts else sum(each for each in counts if each is not None)


def _count(lost: Sequence[Lost]) -> int | None:
    """Return the number of lost offsets, or None if it is unknown."""
    known = sorted((first, last) for first, last in lost if first is not None and last is not None)
    for first, last in lost:
        if last is None and (first is None or not any(start <= first <= end for start, end in known)):
            return None
    count, end = 0, -1
    for first, last in known:
        count += max(last - max(first - 1, end), 0)
        end = max(end, last)
    return count


class StartForecast:
    """The results of all nodes' starts by the given disks; a partition without a log directory counts as a node."""

    def __init__(self, cluster: Cluster, choice: PartitionChoice) -> None:
        """Take the disks' cluster, and the chosen partitions."""
        self.is_of_all = choice.is_everything
        self._by_log_dir: dict[Path, NodeStart] = {}
        self._by_node: dict[object, NodeStart] = {}
        self.has_metadata = any(_has_metadata(each) for each in cluster.log_dirs)
        log_dirs = [each for each in cluster.log_dirs if not any(map(placed_at, each.directories))]  # without tiers
        known = {_node_of(each) for each in log_dirs} - {None}
        for each in log_dirs:
            key = _node_of(each) or (next(iter(known)) if len(known) == 1 else each.path)
            node = self._by_node.setdefault(key, NodeStart())
            node.log_dirs.append(each)
            node.stops.add(stop_at(each.path))
            self._by_log_dir[each.path] = node
        if not self._by_node:
            self._by_node[None] = NodeStart()

    @property
    def nodes(self) -> list[NodeStart]:
        """All nodes, most severe first."""
        return sorted(self._by_node.values(), key=lambda each: each.consequence.rank)

    @property
    def consequence(self) -> AtStart:
        """The most severe consequence."""
        return self.nodes[0].consequence

    def take(self, effects: Iterable[StartEffect]) -> None:
        """Add the effects of further findings."""
        for each in effects:
            path = each.place or each.finding.file
            home = next((parent for parent in (path, *path.parents) if parent in self._by_log_dir), None)
            node = next(iter(self._by_node.values())) if home is None else self._by_log_dir[home]
            node.take(each)


def _node_of(log_dir: LogDir) -> tuple[str | None, int] | None:
    owner = log_dir.identity
    return None if owner.broker is None else (owner.cluster_id, owner.broker)


def _has_metadata(log_dir: LogDir) -> bool:
    return any(each.name == f"{METADATA_TOPIC}-0" for each in log_dir.directories)
