"""A carving: batches found in images, joined to chains and partitions, and what has no place in these."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from kseg.carve.blocks import find_blocks
from kseg.carve.chains import CarvedPartition, Chain, chains_of, partitions_of
from kseg.carve.checkpoint_names import checkpoint_offsets, names_by_checkpoints
from kseg.carve.completeness import OldEnds, old_ends
from kseg.carve.extents import file_extents
from kseg.carve.hints import add_hints
from kseg.carve.images import Images
from kseg.carve.internal_names import find_internal, internal_names
from kseg.carve.joins import Joins, join_runs
from kseg.carve.likely import join_likely
from kseg.carve.marks import Marks
from kseg.carve.names import (
    Contradiction,
    Name,
    agreed_names,
    given_names,
    named_partitions,
    names_like,
    without_overlaps,
)
from kseg.carve.runs import Blocks, Runs
from kseg.carve.scan import Scan, scan_images
from kseg.carve.topics import KnownTopics, records_of_carved
from kseg.kernel.record import Record
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.system.shared_work import OnRead


class UnplacedKind(StrEnum):
    """Reasons for which bytes of a batch have no place."""

    TORN_HEAD = "torn-head"
    "The rest of the batch isn't found, or several fit."
    TORN_TAIL = "torn-tail"
    "The beginning of the batch isn't found, or several fit."
    UNKNOWN_OFFSET = "unknown-offset"
    "The batch is intact, but its first bytes may be of another partition."


class Unplaced(NamedTuple):
    """Bytes of a batch that aren't written.

    base_offset: of the batch; None if it isn't known. next_offset: of the batch after it. size: of the batch. run: the
    batches next to it.
    """

    kind: UnplacedKind
    start: int
    end: int
    base_offset: int | None
    next_offset: int | None
    size: int | None
    run: int


class Carving(NamedTuple):
    """All that was found.

    partitions: those that are written. few: with fewer batches than wanted. others: of topics that aren't wanted.
    names: of partitions, each with the directory that it has without a name. contradictions: of partitions without a
    name. topics: those that metadata records tell of. ends: of partitions by old checkpoints. blocks: in which pieces
    begin and end.
    """

    scan: Scan
    runs: Runs
    joins: Joins
    chains: tuple[Chain, ...]
    partitions: tuple[CarvedPartition, ...]
    few: tuple[CarvedPartition, ...]
    others: tuple[CarvedPartition, ...]
    unplaced: tuple[Unplaced, ...]
    names: tuple[tuple[str, Name], ...]
    contradictions: tuple[Contradiction, ...]
    topics: KnownTopics
    ends: Mapping[str, OldEnds]
    blocks: Blocks

    @property
    def is_complete(self) -> bool:
        """True if everything that was found has a place, and all bytes could be read."""
        return not self.unplaced and not self.few and not any(each.image.unreadable for each in self.scan.images)

    def directories(self) -> dict[int, str]:
        """Return the directories of partitions by the numbers of their runs."""
        partitions = (*self.partitions, *self.few, *self.others)
        return {run: each.directory for each in partitions for chain in each.chains for run in chain.runs}


class CarveSettings(NamedTuple):
    """Settings of a carving.

    block: bytes of a block of the file system; None: as the breaks of batches show. least_batches: of a partition that
    is to be written. is_hashed: whether the images' SHA-256 is wanted. is_legacy: also find formats 0 and 1. like:
    copies of the partitions. given: names of partitions by those that they have without. metadata: records of
    `__cluster_metadata`, in addition to carved ones. has_hints: whether extent lists of file systems may add links.
    has_likely: whether likely links may. choice: of the partitions that are to be written.
    """

    block: int | None = None
    least_batches: int = 1
    is_hashed: bool = True
    is_legacy: bool = False
    like: tuple[PartitionLog, ...] = ()
    given: Mapping[str, str] = MappingProxyType({})
    metadata: Iterable[Record] = ()
    has_hints: bool = True
    has_likely: bool = False
    choice: PartitionChoice = EVERY_PARTITION


def carve_images(images: Images, settings: CarveSettings, on_read: OnRead) -> Carving:
    """Find, join and name the batches of images. Nothing is written.

    Raises UsageError for given names of partitions that don't exist.
    """
    least_batches = settings.least_batches
    marks = Marks(has_structures=settings.has_hints)
    scan = scan_images(
        images, is_hashed=settings.is_hashed, is_legacy=settings.is_legacy, on_read=on_read, look=marks.look
    )
    blocks = find_blocks(scan.batches, images, settings.block)
    runs = Runs(scan.batches, images, blocks)
    joins = join_runs(runs)
    add_hints(runs, joins, file_extents(images, marks))
    chains = chains_of(runs, joins)
    unnamed = partitions_of(runs, chains)
    topics = KnownTopics()
    evident = list(_evident_names(runs, unnamed, topics, settings, on_read))
    offsets = checkpoint_offsets(images, marks.texts, topics)
    names, contradictions = agreed_names(unnamed, (*evident, names_by_checkpoints(runs, unnamed, offsets)))
    names = without_overlaps(runs, unnamed, names)
    if settings.has_likely:
        unnamed = join_likely(runs, joins, unnamed, names)
    names |= given_names(unnamed, settings.given)
    partitions = named_partitions(runs, unnamed, names)
    chosen = [each for each in partitions if settings.choice.takes_topic(each.topic)]
    return Carving(
        scan,
        runs,
        joins,
        tuple(chains),
        tuple(each for each in chosen if each.batch_count >= least_batches),
        tuple(each for each in chosen if each.batch_count < least_batches),
        tuple(each for each in partitions if not settings.choice.takes_topic(each.topic)),
        tuple(_find_unplaced(runs, joins)),
        tuple((each.directory, names[each.number]) for each in unnamed if each.number in names),
        tuple(contradictions),
        topics,
        old_ends(offsets),
        blocks,
    )


def _evident_names(
    runs: Runs,
    partitions: list[CarvedPartition],
    topics: KnownTopics,
    settings: CarveSettings,
    on_read: OnRead,
) -> Iterator[dict[int, Name]]:
    """Yield names by copies and by formats of records; add the topics that metadata records tell of."""
    if settings.like:
        yield names_like(runs, partitions, settings.like, on_read)
    internal = list(find_internal(runs, partitions))
    topics.add(settings.metadata)
    for each in internal:
        if each.topic == METADATA_TOPIC:
            topics.add(records_of_carved(runs, partitions[each.number - 1]))
    yield internal_names(internal, topics)


def _find_unplaced(runs: Runs, joins: Joins) -> list[Unplaced]:
    """Return the bytes next to runs that certainly are of a batch, by position."""
    found = [
        Unplaced(
            UnplacedKind.TORN_HEAD,
            head.header.position,
            head.header.position + min(head.room, head.header.size),
            head.header.base_offset,
            head.next_offset,
            head.header.size,
            head.run,
        )
        for head in joins.torn
    ]
    batches = chain.from_iterable((*joins.leads.values(), *joins.trails.values(), *joins.apart))
    pieces = [piece for batch in batches for piece in batch.pieces]
    starts, ends = {start for start, _ in pieces}, {end for _, end in pieces}
    for run in runs.runs:
        first = runs.batches.header(run.first)
        if run.number in joins.skipped:
            if run.number not in joins.leads and run.start not in starts:
                found.append(
                    Unplaced(UnplacedKind.UNKNOWN_OFFSET, run.start, first.end, None, None, first.size, run.number)
                )
        elif not (run.number in joins.leads or run.number in joins.links or run.start in ends):
            start = max(run.start - runs.place_of(run.start), run.previous_end)
            if start < run.start and any(runs.images.read(start, run.start)):
                found.append(
                    Unplaced(UnplacedKind.TORN_TAIL, start, run.start, None, run.base_offset, None, run.number)
                )
    return sorted(found, key=lambda unplaced: unplaced.start)
