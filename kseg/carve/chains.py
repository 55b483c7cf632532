"""Chains: runs that links prove to be of one file; and carved partitions, which are chains with batches in common."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from kseg.carve.joins import Joins, PiecedBatch
from kseg.carve.runs import Runs
from kseg.reading.batch import BatchHeader

LEAST_COMMON = 2
"""Data batches that two chains must have in common to be of one partition."""


class Rows(NamedTuple):
    """Adjacent whole batches: rows first … last - 1."""

    first: int
    last: int


Part: TypeAlias = Rows | PiecedBatch
"""A part of a chain."""


class Chain(NamedTuple):
    """Batches of one file, in order. runs: their numbers. start: position of the first byte."""

    number: int
    runs: tuple[int, ...]
    parts: tuple[Part, ...]
    batch_count: int
    start: int
    first_offset: int
    last_offset: int


class CarvedPartition(NamedTuple):
    """Chains of one partition. parts: theirs, each batch once, by offset. directory: its name in the output.

    copies: batches that aren't in `parts`, since an equal one is. likely_links: those between its chains.
    """

    number: int
    chains: tuple[Chain, ...]
    parts: tuple[Part, ...]
    copies: tuple[Part, ...]
    directory: str = ""
    likely_links: int = 0

    @property
    def topic(self) -> str:
        """The topic by the directory's name: without the partition's number, and what follows it."""
        return self.directory.rpartition("-")[0]

    @property
    def name(self) -> str:
        """The topic and the partition's number by the directory's name."""
        topic, _, number = self.directory.rpartition("-")
        return f"{topic}-{number.partition('.')[0]}"

    @property
    def batch_count(self) -> int:
        """Its batches, each once."""
        return _count(self.parts)

    @property
    def copy_count(self) -> int:
        """The batches that are left out since an equal one is there."""
        return _count(self.copies)


def chains_of(runs: Runs, joins: Joins) -> list[Chain]:
    """Return all chains, in the order of their positions."""
    following = {link.before: after for after, link in joins.links.items()}
    found: list[Chain] = []
    for run in runs.runs:
        if run.number in joins.links:
            continue
        numbers = [run.number]
        while numbers[-1] in following:
            numbers.append(following[numbers[-1]])
        parts = tuple(_parts(runs, joins, numbers))
        if parts:
            found.append(_chain(runs, numbers, parts))
    found += [_chain(runs, [], tuple(batches)) for batches in joins.apart]
    found.sort(key=lambda chain: chain.start)
    return [chain._replace(number=number) for number, chain in enumerate(found)]


def _parts(runs: Runs, joins: Joins, numbers: list[int]) -> Iterator[Part]:
    """Yield the parts of a chain."""
    for number in numbers:
        run = runs.runs[number]
        yield from joins.leads.get(number, ())
        first = run.first + (number in joins.skipped)
        if first < run.last:
            yield Rows(first, run.last)
        yield from joins.trails.get(number, ())


def _chain(runs: Runs, numbers: list[int], parts: tuple[Part, ...]) -> Chain:
    first, last = first_header(runs, parts[0]), last_header(runs, parts[-1])
    return Chain(0, tuple(numbers), parts, _count(parts), first.position, first.first_offset, last.last_offset)


def _count(parts: tuple[Part, ...]) -> int:
    return sum(part.last - part.first if isinstance(part, Rows) else 1 for part in parts)


def first_header(runs: Runs, part: Part) -> BatchHeader:
    """Return the header of a part's first batch."""
    return runs.batches.header(part.first) if isinstance(part, Rows) else part.header


def last_header(runs: Runs, part: Part) -> BatchHeader:
    """Return the header of a part's last batch."""
    return runs.batches.header(part.last - 1) if isinstance(part, Rows) else part.header


def partitions_of(runs: Runs, chains: list[Chain]) -> list[CarvedPartition]:
    """Gather chains with batches in common, which are of one partition unless they contradict each other."""
    groups = _Groups(chains)
    chain_of_row = _chains_of_rows(runs, chains)
    common: Counter[tuple[int, int]] = Counter()
    for row, original in runs.copies.items():
        one, other = chain_of_row.get(row), chain_of_row.get(original)
        if one is not None and other is not None and one != other and not runs.batches.header(row).is_control:
            common[min(one, other), max(one, other)] += 1
    for (one, other), count in sorted(common.items()):
        if count >= LEAST_COMMON or count == min(chains[one].batch_count, chains[other].batch_count):
            groups.join(one, other)
    found = []
    for members in groups.all():
        found += _without_copies(runs, members)
    found.sort(key=lambda partition: min(chain.start for chain in partition.chains))
    return [
        partition._replace(number=number, directory=f"carved-{number:04}-0")
        for number, partition in enumerate(found, 1)
    ]


class _Groups:
    """Chains that belong together."""

    def __init__(self, chains: list[Chain]) -> None:
        self._chains = chains
        self._groups = {chain.number: [chain.number] for chain in chains}

    def join(self, one: int, other: int) -> None:
        """Put the chains of two groups together."""
        ours, theirs = self._groups[one], self._groups[other]
        if ours is not theirs:
            ours += theirs
            self._groups.update(dict.fromkeys(theirs, ours))

    def all(self) -> Iterator[tuple[Chain, ...]]:
        """Yield the chains of each group."""
        for number, members in self._groups.items():
            if number == members[0]:
                yield tuple(self._chains[each] for each in sorted(members))


def _chains_of_rows(runs: Runs, chains: list[Chain]) -> dict[int, int]:
    """Return the chains of the rows whose batch is in several places."""
    if not runs.copies:
        return {}
    repeated = sorted(runs.repeated)
    found: dict[int, int] = {}
    for chain in chains:
        for part in chain.parts:
            if isinstance(part, Rows):
                for row in repeated[bisect_left(repeated, part.first) : bisect_left(repeated, part.last)]:
                    found[row] = chain.number
    return found


def _without_copies(runs: Runs, members: tuple[Chain, ...]) -> list[CarvedPartition]:
    """Return the partition of some chains, each batch once; or one for each chain if their batches contradict."""
    if len(members) == 1:
        return [CarvedPartition(0, members, members[0].parts, ())]
    kept: dict[tuple[int, int, int], Part] = {}
    copies: list[Part] = []
    for chain in sorted(members, key=lambda chain: (-chain.batch_count, chain.start)):
        for single in (each for part in chain.parts for each in _single_batches(part)):
            header = first_header(runs, single)
            first = kept.setdefault((header.first_offset, header.size, header.crc), single)
            if first is not single:
                copies.append(single)
    singles = parts_by_offset(runs, kept.values())
    if offsets_overlap(runs, singles):
        return [CarvedPartition(0, (chain,), chain.parts, ()) for chain in members]
    return [CarvedPartition(0, members, tuple(_join_rows(singles)), tuple(_join_rows(copies)))]


def _single_batches(part: Part) -> Iterator[Part]:
    if isinstance(part, Rows):
        yield from (Rows(row, row + 1) for row in range(part.first, part.last))
    else:
        yield part


def merge_partitions(runs: Runs, one: CarvedPartition, other: CarvedPartition) -> CarvedPartition | None:
    """Return two partitions as one, with the first one's directory; None if they can't be of one log."""
    parts = parts_by_offset(runs, (*one.parts, *other.parts))
    if offsets_overlap(runs, parts) or epochs_fall(runs, parts):
        return None
    return one._replace(
        number=min(one.number, other.number),
        chains=(*one.chains, *other.chains),
        parts=tuple(parts),
        copies=(*one.copies, *other.copies),
        likely_links=one.likely_links + other.likely_links,
    )


def parts_by_offset(runs: Runs, parts: Iterable[Part]) -> list[Part]:
    """Return parts in the order of their first offsets."""
    return sorted(parts, key=lambda part: first_header(runs, part).first_offset)


def offsets_overlap(runs: Runs, parts: list[Part]) -> bool:
    """Return True if parts, ordered by offset, have offsets in common."""
    pairs = pairwise(parts)
    return any(last_header(runs, one).last_offset >= first_header(runs, other).first_offset for one, other in pairs)


def epochs_fall(runs: Runs, parts: list[Part]) -> bool:
    """Return True if a part has a smaller leader epoch than the preceding one: a log's epochs never fall."""
    return any(
        last_header(runs, one).partition_leader_epoch > first_header(runs, other).partition_leader_epoch
        for one, other in pairwise(parts)
    )


def _join_rows(parts: list[Part]) -> Iterator[Part]:
    """Yield the parts with adjacent rows as one."""
    held: Part | None = None
    for part in parts:
        if isinstance(held, Rows) and isinstance(part, Rows) and part.first == held.last:
            held = Rows(held.first, part.last)
            continue
        if held is not None:
            yield held
        held = part
    if held is not None:
        yield held
