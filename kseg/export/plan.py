"""The plan of an export: work orders for partitions."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from heapq import heapify, heappop, heappush
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg.cluster.copies import Copies, PartitionCopy, SegmentSource, others_here
from kseg.cluster.metadata_copy import AdjacentMetadata
from kseg.cluster.remote_tier import find_tier
from kseg.errors import OpenError, UnreadableError, UsageError
from kseg.export.coverage import Coverage
from kseg.export.settings import MIB, LogSelection, OffsetRange
from kseg.index.entries import OffsetIndex
from kseg.log.partition import (
    Checkpoints,
    PartitionLog,
    is_gapless,
    read_checkpoints,
    tell_of_cleaning,
)
from kseg.store import remote_files as remote
from kseg.store.location import is_remote
from kseg.system.new_directory import scratch_directory
from kseg.system.placed_path import PlacedPath, Placement, StrPath, as_path, within

SMALLEST_SPLIT = 8 * MIB
"""The smallest order, in bytes of log, that is made to keep all processors busy."""
ORDERS_PER_PROCESSOR = 2
TOLERANCE = 0.2
"""The greatest deviation of a file's size from the target, as far as there are enough records."""
MEASUREMENT_ERROR = 0.02
"""The part of it that plans leave to the writer."""


class ByteRange(NamedTuple):
    """Bytes of a segment's log: the batches that begin from position `start` to below `end`.

    size, modified_ms: of the file as listed. read_to: the end of an earlier run's range, so that all later batches are
    new; None if unknown. inode: the file's, 0 if unknown. directory: the file's, if it is a placed path.
    """

    path: str
    base_offset: int
    start: int
    end: int
    size: int
    modified_ms: int
    read_to: int | None = None
    inode: int = 0
    directory: PlacedPath | None = None

    @property
    def wanted_size(self) -> int:
        """Bytes to read."""
        return self.end - self.start

    @property
    def place(self) -> StrPath:
        """The file path, a placed one if its directory is; or its URL."""
        return within(self.directory, self.path)


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """A part of one copy of a partition, to be read by one task.

    offsets: the wanted offsets. begins: whether it is the first order of these offsets. starts_at_index, ends_at_index:
    whether the first range's start, or the last one's end, comes from an index, which may be wrong. missed: how many of
    the first wanted offsets have disappeared from the log since the last run's end. is_disordered: whether offsets
    don't rise, so that all of the log is read and each offset is exported once. topic_id: tells topics of one name
    apart; None if unknown. is_gapless: whether missing offsets between batches are lost, since nothing was compacted,
    and may be in another copy. others: the partition's other local copies, which may have markers that this one lost;
    each with its agreed end.
    """

    number: int
    topic: str
    partition: int | None
    replica: str
    offsets: OffsetRange
    ranges: tuple[ByteRange, ...]
    begins: bool = True
    starts_at_index: bool = False
    ends_at_index: bool = False
    missed: int = 0
    is_disordered: bool = False
    topic_id: str | None = None
    is_gapless: bool = False
    others: tuple[tuple[StrPath, int | None], ...] = ()

    @property
    def place(self) -> StrPath:
        """The copy's directory, or its URL."""
        return within(self.directory, self.replica)

    @property
    def directory(self) -> PlacedPath | None:
        """The copy's directory, if it is a placed path."""
        return self.ranges[0].directory if self.ranges else None

    @property
    def size(self) -> int:
        """Bytes to read."""
        return sum(part.wanted_size for part in self.ranges)

    def to_json(self) -> dict[str, Any]:
        """Return the order as JSON's values."""
        return {
            "number": self.number,
            "topic": self.topic,
            "partition": self.partition,
            "replica": self.replica,
            "place": None if self.directory is None else str(self.place),
            "offsets": [self.offsets.first, self.offsets.end],
            "ranges": [list(part[:-1]) for part in self.ranges],
            "begins": self.begins,
            "startsAtIndex": self.starts_at_index,
            "endsAtIndex": self.ends_at_index,
            "missed": self.missed,
            "isDisordered": self.is_disordered,
            "topicId": self.topic_id,
            "isGapless": self.is_gapless,
            "others": [[os.fspath(path), agreed_end] for path, agreed_end in self.others],
        }

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "WorkOrder":
        """Return the order of `to_json`."""
        replica, name = members["replica"], members["place"]
        directory = None if name is None else Placement(replica, name).path
        return cls(
            members["number"],
            members["topic"],
            members["partition"],
            replica,
            OffsetRange(*members["offsets"]),
            tuple(ByteRange(*part)._replace(directory=directory) for part in members["ranges"]),
            members["begins"],
            members["startsAtIndex"],
            members["endsAtIndex"],
            members["missed"],
            members["isDisordered"],
            members["topicId"],
            members["isGapless"],
            tuple((path, agreed_end) for path, agreed_end in members["others"]),
        )


class Done(NamedTuple):
    """The exported part of a partition.

    offsets: the ones that were read. files: read to their end (path, size, modified_ms). ends: the position in each
    file where reading ended. holes: ranges that may still get offsets, since the log's offsets don't rise. listed_from:
    the log's first offset in the run's first listing; offsets that disappear later are missed.
    """

    offsets: Coverage = Coverage()
    files: frozenset[tuple[str, int, int]] = frozenset()
    ends: Mapping[str, int] = MappingProxyType({})
    holes: Coverage = Coverage()
    listed_from: int | None = None


NOTHING_DONE = Done()


@dataclass(frozen=True, slots=True)
class Splitting:
    """The size of orders. most: bytes of log. whole_partitions: whether each partition is one order, of any size.

    disordered: partitions in which offsets don't rise; each is one order. log_per_file: by topic, the bytes of log
    in a file of the target size. The orders of these topics have complete files, even if processors are idle.
    """

    most: int
    parallelism: int = 1
    whole_partitions: bool = False
    disordered: frozenset[tuple[str, int | None]] = frozenset()
    log_per_file: Mapping[str, int] = field(default_factory=dict)

    def size_of(self, total: int) -> int:
        """Return the bytes of one order for a total: fewer than the most if processors would be idle."""
        share = -(-total // (ORDERS_PER_PROCESSOR * self.parallelism)) if self.parallelism > 1 else total
        return max(min(self.most, share), min(SMALLEST_SPLIT, self.most), 1)

    def cuts(self, topic: str, size: int, order_size: int) -> list[int]:
        """Return where to cut `size` bytes of a partition into orders of about `order_size` bytes, or complete files.

        An order of one file needs an exact measurement, while the writer of several can adapt. So orders have at least
        two files, unless processors would be idle.
        """
        if self.whole_partitions:
            return []
        files = count = -(-size // order_size)
        if topic in self.log_per_file:
            files = count_files(size / self.log_per_file[topic], TOLERANCE - MEASUREMENT_ERROR)
            count = min(count, max(files // 2, min(files, self.parallelism)))
        return [size * (files * step // count) // files for step in range(1, count)]


def count_files(size: float, tolerance: float) -> int:
    """Return the number of equal files for a size in multiples of the target: of about one each, none much larger."""
    return max(round(size), ceil(size / (1 + tolerance)), 1)


def plan_orders(
    copies: Copies,
    selection: LogSelection,
    splitting: Splitting,
    done: Mapping[tuple[str, int | None], Done] | None = None,
    copy: int = 0,
) -> list[WorkOrder]:
    """Return the orders for the rest of each partition, from its copy of a rank (0: the best), largest first.

    Raises OpenError if an index can't be opened, UsageError for times of a remote source.
    """
    gapless = gapless_partitions(copies)

    def start_of(key: Key) -> int:
        """Return the best copy's start, below which nothing is lost; 0 if its results or a gapless log tell more."""
        return 0 if key in gapless or key in (done or {}) else copies[key][0].segments[0].base_offset

    chosen = [
        (replica, _of_further(replica, offsets, start_of(key)) if copy else _of_best(replica, offsets))
        for key, replicas in sorted(copies.items(), key=lambda item: (item[0][0], item[0][1] or 0))
        if copy < len(replicas) and (replica := replicas[copy]) and (offsets := selection.range_of(*key)) is not None
    ]
    order_size = splitting.size_of(sum(replica.size for replica, _ in chosen))

    def cut(topic: str, size: int) -> list[int]:
        return splitting.cuts(topic, size, order_size)

    orders: list[WorkOrder] = []
    for replica, offsets in chosen:
        known = (done or {}).get((replica.topic, replica.partition), Done())
        wanted = _in_time(replica, selection, offsets)
        for part in known.offsets.missing(_from_listed(wanted, replica, known)).ranges:
            if (part.end is None or known.holes.holds(part)) and is_read(replica, known):
                continue
            if (replica.topic, replica.partition) in splitting.disordered:
                orders.append(_disordered_order(replica, part, known, len(orders)))
                continue
            ends = _ends_of(replica, part, known)
            orders += _orders(replica, part, known._replace(ends=ends), cut, len(orders))
    orders = [
        replace(
            order,
            is_gapless=(order.topic, order.partition) in gapless,
            others=others_here(copies[order.topic, order.partition], order.replica),
        )
        for order in orders
    ]
    return sorted(orders, key=lambda order: (-order.size, order.number))


def gapless_partitions(copies: Copies) -> frozenset[tuple[str, int | None]]:
    """Return the partitions with several copies, all local, in which the cleaner has left a batch for each offset."""
    known = cache(read_checkpoints)

    def have_no_gaps(own: Sequence[PartitionCopy]) -> bool:
        if len(own) < 2 or any(copy.is_remote for copy in own):
            return False
        places = [as_path(copy.place) for copy in own]
        for copy, place, is_told in zip(own, places, tell_of_cleaning(places), strict=True):
            checkpoints = known(place.absolute().parent).get((copy.topic, copy.partition), Checkpoints())
            if not is_gapless(copy.topic, checkpoints, copy.segments[0].base_offset, is_told=is_told):
                return False
        return True

    return frozenset(key for key, own in copies.items() if have_no_gaps(own))


def _of_best(replica: PartitionCopy, offsets: OffsetRange) -> OffsetRange:
    """Return the wanted offsets of the best copy, without those of an abandoned lineage."""
    return _below(offsets, replica.agreed_end)


def _of_further(replica: PartitionCopy, offsets: OffsetRange, start: int) -> OffsetRange:
    """Return the wanted offsets of another copy from `start` to its end: later offsets are wrong."""
    if start > (offsets.first or 0):
        offsets = OffsetRange(start, None if offsets.end is None else max(start, offsets.end))
    return _below(_below(offsets, replica.agreed_end), replica.log_end)


def _below(offsets: OffsetRange, end: int | None) -> OffsetRange:
    if end is None or (offsets.end is not None and offsets.end <= end):
        return offsets
    return OffsetRange(offsets.first if offsets.first is None else min(offsets.first, end), end)


def is_read(replica: PartitionCopy, done: Done) -> bool:
    """Return True if the newest segment was read to its end and is unchanged since."""
    last = replica.segments[-1]
    return (last.log, last.size, last.modified_ms) in done.files


def _in_time(replica: PartitionCopy, selection: LogSelection, offsets: OffsetRange) -> OffsetRange:
    """Return the offsets of the wanted times, found as Kafka's ListOffsets does."""
    if selection.first_time is None and selection.end_time is None:
        return offsets
    if replica.is_remote:
        raise UsageError("only local files can be searched by time; specify offsets", replica.path)
    first, end = offsets.first, offsets.end
    if selection.first_time is not None:
        found = _offset_of_time(replica, selection.first_time)
        first = max(first or 0, found)
    if selection.end_time is not None:
        found = _offset_of_time(replica, selection.end_time)
        end = found if end is None else min(end, found)
    return OffsetRange(first, end)


def _offset_of_time(replica: PartitionCopy, time: int) -> int:
    from kseg.log.lookup import lookup_time

    found = lookup_time(replica.open(), time)
    if found.offset is not None:
        return found.offset
    return replica.open().read_log_end_offset()


def _orders(
    replica: PartitionCopy, offsets: OffsetRange, known: Done, cut: Callable[[str, int], list[int]], number: int
) -> Iterator[WorkOrder]:
    """Cut a range of offsets into orders. cut: returns the places of the cuts in so many bytes of a topic."""
    pairs = ((segment, _part_of(segment, offsets, known)) for segment in _segments_of(replica, offsets, known))
    parts = [(segment, part) for segment, part in pairs if part is not None]
    groups = _divide(parts, cut(replica.topic, sum(part.wanted_size for _, part in parts)))
    missed = _missed_count(replica, offsets, known)
    if missed and not groups:
        groups = [[]]
    for place, group in enumerate(groups):
        yield WorkOrder(
            number + place,
            replica.topic,
            replica.partition,
            replica.path,
            offsets,
            tuple(group),
            begins=place == 0,
            starts_at_index=place == 0 and bool(group) and group[0].start > 0,
            ends_at_index=place == len(groups) - 1 and bool(group) and group[-1].end < group[-1].size,
            missed=0 if place else missed,
            topic_id=replica.topic_id,
        )


def _disordered_order(replica: PartitionCopy, offsets: OffsetRange, known: Done, number: int) -> WorkOrder:
    """Return an order for a range of offsets at unknown positions."""
    parts = tuple(_range(segment, 0, segment.size) for segment in replica.segments if segment.size)
    missed = _missed_count(replica, offsets, known)
    return WorkOrder(
        number,
        replica.topic,
        replica.partition,
        replica.path,
        offsets,
        parts,
        missed=missed,
        is_disordered=True,
        topic_id=replica.topic_id,
    )


def _missed_count(replica: PartitionCopy, offsets: OffsetRange, known: Done) -> int:
    """Return the number of offsets between the exported ones and the start of the log, which retention has removed."""
    if offsets.first is None or not (known.offsets.ends_at(offsets.first) or _was_listed(offsets.first, known)):
        return 0
    start = replica.segments[0].base_offset
    return max((start if offsets.end is None else min(start, offsets.end)) - offsets.first, 0)


def _was_listed(offset: int, known: Done) -> bool:
    """Return True if the log had an offset when the run began, according to its first offset then."""
    return known.listed_from is not None and offset >= known.listed_from


def _from_listed(offsets: OffsetRange, replica: PartitionCopy, known: Done) -> OffsetRange:
    """Return the range, with a first offset if the start of the log has changed since the run began."""
    listed_from = known.listed_from
    if offsets.first is not None or listed_from is None or replica.segments[0].base_offset <= listed_from:
        return offsets
    return OffsetRange(listed_from, offsets.end)


def _ends_of(replica: PartitionCopy, offsets: OffsetRange, known: Done) -> dict[str, int]:
    """Return the start of the new bytes in the newest segment that was read, and in all later ones."""
    were_read = [place for place, segment in enumerate(replica.segments) if segment.log in known.ends]
    if not were_read or offsets.end is not None or not known.offsets.ends_at(offsets.first):
        return {}
    return {segment.log: known.ends.get(segment.log, 0) for segment in replica.segments[were_read[-1] :]}


def _segments_of(replica: PartitionCopy, offsets: OffsetRange, known: Done) -> Sequence[SegmentSource]:
    """Return the segments that may contain offsets in a range.

    Segments with new bytes are included: those may have lower offsets.
    """
    segments = [segment for segment in replica.segments if offsets.end is None or segment.base_offset < offsets.end]
    if offsets.first is None:
        return segments
    below = [place for place, segment in enumerate(segments) if segment.base_offset <= offsets.first]
    grown = [place for place, segment in enumerate(segments) if segment.log in known.ends]
    return segments[min([below[-1], *grown]) :] if below else segments


def _part_of(segment: SegmentSource, offsets: OffsetRange, known: Done) -> ByteRange | None:
    """Return the bytes of a segment that may hold the offsets, by its index; None for an empty segment."""
    if not segment.size:
        return None
    starts_inside = offsets.first is not None and offsets.first > segment.base_offset
    whole = _range(segment, 0, segment.size, known)
    if segment.offset_index is None or not (starts_inside or offsets.end is not None):
        return whole
    try:
        with _open_index(segment) as index:
            start = index.lookup(offsets.first).position if starts_inside and offsets.first is not None else 0
            end = segment.size if offsets.end is None else min(_position_above(index, offsets.end), segment.size)
    except UnreadableError:
        return whole
    start = min(start, known.ends.get(segment.log, start))
    return whole._replace(start=start, end=end) if 0 <= start < end else whole


def _divide(parts: Iterable[tuple[SegmentSource, ByteRange]], cuts: Sequence[int]) -> list[list[ByteRange]]:
    """Return the parts in groups, cut at batches near the given places in all of their bytes."""
    groups: list[list[ByteRange]] = [[]]
    before = 0
    for segment, part in parts:
        wanted = [part.start + cut - before for cut in cuts if before <= cut < before + part.wanted_size]
        start = part.start
        for place in _batches_near(wanted, segment, part) if wanted else ():
            if start < place:
                groups[-1].append(part._replace(start=start, end=place))
                start = place
            if groups[-1]:
                groups.append([])
        if start < part.end:
            groups[-1].append(part._replace(start=start))
        before += part.wanted_size
    return [group for group in groups if group]


def _batches_near(wanted: Sequence[int], segment: SegmentSource, part: ByteRange) -> list[int]:
    """Return positions of batches near the wanted ones by the segment's index, or else the part's start or end."""
    edges = [min((part.start, part.end), key=lambda edge: abs(edge - position)) for position in wanted]
    if segment.offset_index is None:
        return edges
    try:
        with _open_index(segment) as index:
            found = [index.upper_bound(position, 0) for position in wanted]
    except UnreadableError:
        return edges
    return [
        entry.position if entry is not None and part.start < entry.position < part.end else edge
        for entry, edge in zip(found, edges, strict=True)
    ]


def _position_above(index: OffsetIndex, offset: int) -> int:
    """Return a position after all batches with lower offsets.

    An entry's offset is the first or the last one of its batch or append, depending on the release. So the result is
    the entry after the first one that reaches the offset.
    """
    slot = index.file.first_slot(lambda entry: index.base_offset + entry[0] >= offset, index.count) + 1
    return index.entry(slot).position if slot < index.count else 1 << 62


def _range(segment: SegmentSource, start: int, end: int, known: Done = NOTHING_DONE) -> ByteRange:
    read_to = known.ends.get(segment.log)
    return ByteRange(
        segment.log,
        segment.base_offset,
        start,
        end,
        segment.size,
        segment.modified_ms,
        read_to,
        segment.inode,
        segment.directory,
    )


@contextmanager
def _open_index(segment: SegmentSource) -> Iterator[OffsetIndex]:
    assert segment.offset_index is not None
    path = within(segment.directory, segment.offset_index)
    if not isinstance(path, str) or not is_remote(path):
        try:
            index = OffsetIndex(path, segment.base_offset)
        except OpenError as error:
            raise UnreadableError(error.message, error.path) from error
        with index:
            yield index
        return
    with scratch_directory() as scratch:
        local = scratch / path.rpartition("/")[2]
        remote.copy_file(path, local)
        with OffsetIndex(local, segment.base_offset) as index:
            yield index


def balance(orders: Iterable[WorkOrder], count: int) -> list[list[WorkOrder]]:
    """Distribute orders over at most `count` lists of similar size: the largest order goes to the smallest list."""
    bins: list[tuple[int, int, list[WorkOrder]]] = [(0, number, []) for number in range(count)]
    heapify(bins)
    for order in sorted(orders, key=lambda order: -order.size):
        size, number, members = heappop(bins)
        members.append(order)
        heappush(bins, (size + order.size, number, members))
    filled = sorted((entry for entry in bins if entry[2]), key=lambda entry: (-entry[0], entry[1]))
    return [members for _, _, members in filled]


Key = tuple[str, int | None]


def find_remote_parts(copies: Copies, selection: LogSelection, log_dirs: Iterable[Path]) -> Mapping[Key, OffsetRange]:
    """Return, for the wanted partitions with a remote part, the wanted offsets that only the remote tier has.

    `find_tier` decides, from metadata in `log_dirs` and next to the copies, and from checkpoints. Copies in object
    stores are skipped.
    """
    beside = AdjacentMetadata(log_dirs=log_dirs)
    checkpoints = cache(read_checkpoints)
    found: dict[Key, OffsetRange] = {}
    for key, (best, *others) in copies.items():
        wanted = selection.range_of(*key)
        if wanted is None or best.is_remote or best.segments[0].base_offset == 0:
            continue
        own = checkpoints(as_path(best.place).parent).get(key, Checkpoints())
        try:
            tier = find_tier(PartitionLog(best.place, own), beside)
        except OpenError:  # it was deleted since it was read
            continue
        if tier is not None and tier.has_remote_part:
            first = max(tier.log_start_offset, wanted.first or 0)
            end = min(tier.local_start_offset, *(copy.segments[0].base_offset for copy in (best, *others)))
            end = end if wanted.end is None else min(end, wanted.end)
            if first < end:
                found[key] = OffsetRange(first, end)
    return found
