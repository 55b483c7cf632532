"""Names of carved partitions: by batches that copies of the partitions have too, or given; and how names agree."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from kseg import kernel
from kseg.carve.chains import CarvedPartition, Rows, first_header, last_header, merge_partitions
from kseg.carve.images import Images
from kseg.carve.runs import Runs
from kseg.carve.scan import FoundBatches, find_batches
from kseg.errors import UsageError
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.system.shared_work import OnRead

LEAST_EQUAL = 2
"""Equal data batches that prove a name. A transaction marker proves nothing: two partitions can have the same."""

CARVED_METADATA = f"{METADATA_TOPIC}-0.carved"
"""The directory of a carved metadata log. Under its own name, commands would take it for the metadata of the carved
partitions, and leave out topics that it says are deleted.
"""


class NameKind(StrEnum):
    """Kinds of evidence for a name."""

    LIKE = "like"
    "A copy of the partition has the same batches, and no other partition has any of them."
    INTERNAL = "internal"
    "All records have the format of one internal topic, and the ids in their keys have this partition."
    CHECKPOINTS = "checkpoints"
    "Old copies of Kafka's checkpoints have offsets that are boundaries of the partition's batches, and of no other's."
    GIVEN = "given"
    "The user decided."


class Name(NamedTuple):
    """The name of a carved partition. facts: numbers that show how sure the evidence is."""

    directory: str
    kind: NameKind
    facts: Mapping[str, int | float | str | None] = MappingProxyType({})


class Contradiction(NamedTuple):
    """Names that evidence gives to one carved partition, which therefore gets none. directory: the one it has."""

    directory: str
    names: tuple[Name, ...]


def names_like(
    runs: Runs, partitions: Iterable[CarvedPartition], copies: Iterable[PartitionLog], on_read: OnRead
) -> dict[int, Name]:
    """Return names by number of partitions: those of copies that have the same batches.

    Reads the copies' logs completely. A partition whose batches point to two names gets none.
    """
    owners = _Owners(partitions)
    names_of_row: dict[int, set[str]] = {}
    for row, name in _equal_rows(runs.batches, copies, on_read):
        if not runs.batches.header(row).is_control:
            names_of_row.setdefault(row, set()).add(name)
    found: Counter[tuple[int, str]] = Counter()
    for row, names in names_of_row.items():
        owner = owners.of(row)
        if owner is not None and len(names) == 1:
            found[owner, names.pop()] += 1
    counts: dict[int, dict[str, int]] = {}
    for (owner, name), count in found.items():
        counts.setdefault(owner, {})[name] = count
    return {
        owner: Name(name, NameKind.LIKE, {"equal": count})
        for owner, by_name in counts.items()
        for name, count in by_name.items()
        if len(by_name) == 1 and count >= LEAST_EQUAL
    }


def _equal_rows(batches: FoundBatches, copies: Iterable[PartitionLog], on_read: OnRead) -> Iterator[tuple[int, str]]:
    """Yield carved rows whose batch a copy has, with the copy's name."""
    theirs = FoundBatches(batches.rows[: batches.count * FoundBatches.VALUES], batches.count)
    ends: list[int] = []
    names: list[str] = []
    for partition in copies:
        for segment in partition.segments:
            if segment.log is not None and partition.topic is not None:
                with Images([segment.path]) as images:
                    for image in images:
                        find_batches(image, theirs, on_read=on_read)
                ends.append(len(theirs))
                names.append(f"{partition.topic}-{partition.partition}")
    for row, first in kernel.load().find_copies(theirs.rows, theirs.count):
        if first < batches.count <= row:
            yield first, names[bisect_right(ends, row)]


class _Owners:
    """Partitions by their rows."""

    def __init__(self, partitions: Iterable[CarvedPartition]) -> None:
        self._ranges = sorted(
            (part.first, part.last, partition.number)
            for partition in partitions
            for part in (*partition.parts, *partition.copies)
            if isinstance(part, Rows)
        )

    def of(self, row: int) -> int | None:
        """Return the number of the partition that has a row."""
        place = bisect_right(self._ranges, row, key=lambda found: found[0]) - 1
        if place < 0:
            return None
        _, last, number = self._ranges[place]
        return number if row < last else None


def agreed_names(
    partitions: Iterable[CarvedPartition], sources: Iterable[Mapping[int, Name]]
) -> tuple[dict[int, Name], list[Contradiction]]:
    """Return the names that no other source of names contradicts, and the contradictions.

    sources: names by number of partitions, the surest first.
    """
    found: dict[int, list[Name]] = {}
    for names in sources:
        for number, name in names.items():
            found.setdefault(number, []).append(name)
    agreed = {number: names[0] for number, names in found.items() if len({name.directory for name in names}) == 1}
    directories = {partition.number: partition.directory for partition in partitions}
    return agreed, [
        Contradiction(directories[each], tuple(found[each])) for each in sorted(found.keys() - agreed.keys())
    ]


def without_overlaps(runs: Runs, partitions: Iterable[CarvedPartition], names: Mapping[int, Name]) -> dict[int, Name]:
    """Return the names without those by checkpoints that two partitions with offsets in common have."""
    of_name: dict[str, list[tuple[int, int, int]]] = {}
    for partition in partitions:
        if partition.number in names:
            of_name.setdefault(names[partition.number].directory, []).extend(
                (first_header(runs, part).first_offset, last_header(runs, part).last_offset, partition.number)
                for part in partition.parts
            )
    overlapping: set[int] = set()
    for ranges in of_name.values():
        furthest, owner = -1, 0
        for first, last, number in sorted(ranges):
            if first <= furthest and number != owner:
                overlapping |= {number, owner}
            if last > furthest:
                furthest, owner = last, number
    return {
        number: name
        for number, name in names.items()
        if number not in overlapping or name.kind is not NameKind.CHECKPOINTS
    }


def given_names(partitions: Iterable[CarvedPartition], given: Mapping[str, str]) -> dict[int, Name]:
    """Return names by number of partitions, from directories' names by those of unnamed ones.

    Raises UsageError for a carved partition that doesn't exist.
    """
    numbers = {partition.directory.removesuffix("-0"): partition.number for partition in partitions}
    for chain in given:
        if chain not in numbers:
            raise UsageError(f"--name: no {chain} among {len(numbers)} carved partitions; list them by --dry-run")
    return {numbers[chain]: Name(directory, NameKind.GIVEN) for chain, directory in given.items()}


def named_partitions(
    runs: Runs, partitions: Iterable[CarvedPartition], names: Mapping[int, Name]
) -> list[CarvedPartition]:
    """Return the partitions with their names: those of one name as one, unless they can't be of one log.

    Partitions that would overlap with a larger one of their name, or have leader epochs out of order with it, keep
    apart, as `orders-0.2` and so on.
    """
    found: list[CarvedPartition] = []
    of_name: dict[str, list[CarvedPartition]] = {}
    for partition in sorted(partitions, key=lambda each: (-each.batch_count, each.number)):
        name = names.get(partition.number)
        if name is None:
            found.append(partition)
        else:
            _add(runs, of_name.setdefault(name.directory, []), partition)
    for wanted, apart in of_name.items():
        directory = CARVED_METADATA if wanted == f"{METADATA_TOPIC}-0" else wanted
        for number, partition in enumerate(apart, 1):
            found.append(partition._replace(directory=directory if number == 1 else f"{directory}.{number}"))
    return sorted(found, key=lambda partition: partition.number)


def _add(runs: Runs, apart: list[CarvedPartition], partition: CarvedPartition) -> None:
    """Add a partition to the first one with which it can be of one log."""
    for place, other in enumerate(apart):
        merged = merge_partitions(runs, other, partition)
        if merged is not None:
            apart[place] = merged
            return
    apart.append(partition)
