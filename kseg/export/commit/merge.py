"""Merges of small files and of the manifest's results."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import NamedTuple

from kseg.errors import OpenError
from kseg.export.changes import Changes
from kseg.export.commit.manifest import Manifest, latest_number
from kseg.export.commit.order import Job
from kseg.export.commit.runs import LostError
from kseg.export.destination import Destination
from kseg.export.results import ExportedFile, Result, SourceFile, Tally, row_counts
from kseg.export.settings import OffsetRange
from kseg.export.undecoded import joined_parts
from kseg.export.write.exported_rows import ExportedFiles
from kseg.export.write.parquet import Layout, NewFile, new_attempt, origin_of_parts, schema_of_files, stem_of

MOST_TIMES_LARGER = 2
"""The largest size of a joined file, as a multiple of the total size of all smaller ones.

Without this limit, each hourly run would rewrite the same large file; with it, each byte is rewritten a few times only.
"""


class FilePart(NamedTuple):
    """The rows of a result in a file. result: its index among all results; place: the file's index in the result.

    incarnation: the number of earlier topics of that name, with other ids, that have results.
    """

    result: int
    place: int
    topic: str
    topic_id: str | None
    incarnation: int
    partition: int | None
    is_sorted: bool
    file: ExportedFile

    @property
    def order(self) -> tuple[str, int, int, int]:
        """The position of its rows among others."""
        return (self.topic, -1 if self.partition is None else self.partition, self.file.first_offset, self.result)

    def precedes(self, other: "FilePart") -> bool:
        """Return True if it belongs to another partition, or all its offsets are below those of another part."""
        is_same = (self.topic, self.partition) == (other.topic, other.partition)
        return not is_same or self.file.last_offset < other.file.first_offset


Joining = tuple[FilePart, ...]
"""A file to be made: parts of others, all of one folder, in this order."""


class Joined(NamedTuple):
    """Kept and new results, before or after a merge.

    counts: how many files the export would have had, and how many it has. is_changed: whether any file was made.
    changes: what the new results' records say about database rows, if they are unwrapped.
    """

    kept: list[Result]
    new: list[Result]
    counts: tuple[int, int] = (0, 0)
    is_changed: bool = False
    changes: Changes | None = None

    @property
    def new_files(self) -> int:
        """The number of files without a final name yet."""
        return len({file.attempt for result in (*self.kept, *self.new) for file in result.files if file.path is None})


def join_files(
    given: Joined, previous: Manifest, rows: Mapping[str, int], job: Job, place: Destination, *, merges: bool
) -> Joined:
    """Return the given results with their rows in merged files, which become valid at the commit; the accounts stay.

    previous: the current manifest. rows: the rows of each file of this run, including those of removed results.
    merges: whether to join small files; files shared with a removed result are always rewritten. Raises LostError if
    another run removes files, KsegError if a file can't be read or written.
    """
    results = [*given.kept, *given.new]
    files = [list(result.files) for result in results]
    joinings = _plan(
        _parts(results),
        {**rows, **row_counts(previous.results)},
        job.files.target_size,
        merges=merges,
    )
    try:
        for number, joining in enumerate(joinings):
            for part, file in zip(joining, _write(joining, number, job, place), strict=True):
                files[part.result][part.place] = file
    except OpenError as error:
        if latest_number(place) != previous.number:
            raise LostError(place.url) from error
        raise
    joined = [replace(result, files=tuple(own)) for result, own in zip(results, files, strict=True)]
    counts = len(row_counts(results)), len(row_counts(joined))
    if not joinings:
        return given._replace(counts=counts)
    return Joined(joined[: len(given.kept)], joined[len(given.kept) :], counts, is_changed=True)


# --- choice of files --------------------------------------------------------------------------------------------------


def _parts(results: Sequence[Result]) -> dict[str, list[FilePart]]:
    """Return the parts of each file, in the file's order."""
    parts: dict[str, list[FilePart]] = defaultdict(list)
    ids: dict[str, dict[str | None, int]] = defaultdict(dict)
    for number, result in enumerate(results):
        own = ids[result.topic]
        incarnation = own.setdefault(result.topic_id, len(own))
        for place, file in enumerate(result.files):
            part = FilePart(
                result=number,
                place=place,
                topic=result.topic,
                topic_id=result.topic_id,
                incarnation=incarnation,
                partition=result.partition,
                is_sorted=not result.tally.disordered,
                file=file,
            )
            parts[file.attempt].append(part)
    return {name: sorted(own, key=lambda part: part.file.first_row) for name, own in parts.items()}


def _plan(parts: dict[str, list[FilePart]], rows: dict[str, int], target_size: int, *, merges: bool) -> list[Joining]:
    """Return the files to be made; `rows`: the rows of each file, including those of removed results."""
    broken = {name for name, own in parts.items() if name in rows and _row_count(own) < rows[name]}
    if not merges:
        return [tuple(parts[name]) for name in sorted(broken)]
    folders: dict[tuple[str, int], list[str]] = defaultdict(list)  # topics of the same name never share a file
    for name, own in parts.items():
        folders[own[0].file.folder, own[0].incarnation].append(name)
    joinings: list[Joining] = []
    for _, names in sorted(folders.items()):
        sizes = {name: _size(parts[name], rows.get(name)) for name in names}
        taken = {*_worth_joining(sizes, target_size // 2), *broken.intersection(names)}
        pieces = [
            (part, sizes[name] * part.file.rows // max(_row_count(parts[name]), 1))
            for name in taken
            for part in parts[name]
        ]
        unchanged = {tuple(parts[name]) for name in taken - broken}
        joinings += (made for made in _pack(pieces, target_size) if made not in unchanged)
    return joinings


def _row_count(parts: Iterable[FilePart]) -> int:
    return sum(part.file.rows for part in parts)


def _size(parts: list[FilePart], rows: int | None) -> int:
    """Return the approximate bytes of a file's remaining parts."""
    left = _row_count(parts)
    return parts[0].file.size * left // max(rows or 0, left, 1)


def _worth_joining(sizes: dict[str, int], limit: int) -> list[str]:
    """Return the files smaller than `limit` bytes, except for files much larger than the others."""
    small = sorted((size, name) for name, size in sizes.items() if size < limit)
    total = count = 0
    for place, (size, _) in enumerate(small):
        if place and size <= MOST_TIMES_LARGER * total:
            count = place + 1
        total += size
    return [name for _, name in small[:count]]


def _pack(pieces: Iterable[tuple[FilePart, int]], target_size: int) -> Iterator[Joining]:
    """Yield the parts in order, grouped into files by size; each part comes with its bytes."""
    own: list[FilePart] = []
    total = 0
    for part, size in sorted(pieces, key=lambda piece: piece[0].order):
        if own and total + size > target_size:
            yield tuple(own)
            own, total = [], 0
        own.append(part)
        total += size
    if own:
        yield tuple(own)


# --- writing ----------------------------------------------------------------------------------------------------------


def _write(joining: Joining, number: int, job: Job, place: Destination) -> Iterator[ExportedFile]:
    """Write a file, and yield the entry of each of its parts."""
    layout = Layout(schema_of_files(job.read, job.files), job.files, _is_sorted(joining))
    topics = sorted({part.topic for part in joining})
    stem = stem_of(topics[0], *(part.partition for part in joining)) if len(topics) == 1 else f"{len(topics)}-topics"
    origin = origin_of_parts((part.topic, part.partition, part.topic_id) for part in joining)
    file = NewFile(joining[0].file.folder, f"{new_attempt(job.id, number)}-0", stem, origin, layout, place)
    starts = []
    try:
        with ExportedFiles(place, layout.schema) as inputs:
            for part in joining:
                starts.append(file.rows)
                for batch in inputs.rows(part.file):
                    file.write(batch)
                if job.files.sort_by:  # rows of a part stay together
                    file.flush()
        whole = file.close()
        place.sync([whole.attempt])
    except BaseException:
        file.abandon()
        raise
    for part, start in zip(joining, starts, strict=True):
        own = part.file
        yield own._replace(attempt=whole.attempt, name=whole.name, size=whole.size, path=None, first_row=start)


def _is_sorted(joining: Joining) -> bool:
    """Return True if the rows rise by topic, partition and offset."""
    rises = all(one.precedes(other) for one, other in pairwise(joining))
    return rises and all(part.is_sorted for part in joining)


_SUMS = tuple(field.name for field in fields(Tally) if field.type == "int" or field.type is int)
_POLYNOMIAL = 0x82F63B78
"""The polynomial of CRC-32C, the lowest bit first."""
_ONE = 1 << 31


def condense(results: Iterable[Result]) -> list[Result]:
    """Return the results in offset order without their files. Adjacent results are merged."""
    by_copy: dict[tuple[str, int | None, str | None, str], list[Result]] = {}
    for result in results:
        without = replace(result, files=(), earlier_files=result.earlier_files + len(result.files))
        key = (result.topic, result.partition, result.topic_id, result.replica)
        by_copy.setdefault(key, []).append(without)
    return [joined for key in sorted(by_copy, key=_partition_of) for joined in _of_copy(by_copy[key])]


def _partition_of(key: tuple[str, int | None, str | None, str]) -> tuple[str, int]:
    """Return the sort key of results; topics of the same name keep their order."""
    return key[0], -1 if key[1] is None else key[1]


def _of_copy(results: list[Result]) -> list[Result]:
    joined: list[Result] = []
    for result in sorted(results, key=_first):
        if joined and _continues(joined[-1], result):
            joined[-1] = _join(joined[-1], result)
        else:
            joined.append(result)
    return joined


def _first(result: Result) -> int:
    first = result.tally.first_offset
    return -1 if first is None else first


def _continues(one: Result, other: Result) -> bool:
    """Return True if a result continues another one, in the same segment or with none remaining."""
    tallies = one.tally, other.tally
    if not one.tally.goes_on_in(other.tally) or other.tally.missed:
        return False
    if any(tally.disordered or tally.holes for tally in tallies):
        return False
    end, first = one.wanted.end, other.wanted.first
    if end is not None and first is not None and first > end:
        return False
    logs = {source.path for each in (one, other) for source in each.sources}
    return len(logs) < 2 and bool(one.sources) == bool(other.sources)


def _join(one: Result, other: Result) -> Result:
    sources = list(one.sources)
    for source in other.sources:
        if sources and (both := _joined_source(sources[-1], source)) is not None:
            sources[-1] = both
        else:
            sources.append(source)
    return replace(
        one,
        wanted=OffsetRange(one.wanted.first, other.wanted.end),
        sources=tuple(sources),
        tally=_joined_tally(one.tally, other.tally),
        seconds=round(one.seconds + other.seconds, 3),
        earlier_files=one.earlier_files + other.earlier_files,
        is_partly_gone=one.is_partly_gone or other.is_partly_gone,
    )


def _joined_tally(one: Tally, other: Tally) -> Tally:
    sums = {name: getattr(one, name) + getattr(other, name) for name in _SUMS}
    return replace(
        other,
        **sums,
        first_offset=one.first_offset,
        epochs=_joined_epochs(one, other),
        losses=[*one.losses, *other.losses],
        notes=list(dict.fromkeys([*one.notes, *other.notes])),
        decoded=joined_parts([*one.decoded, *other.decoded]),
    )


def _joined_epochs(one: Tally, other: Tally) -> list[tuple[int, int]]:
    """Return the leader epochs of both; none if those of one are unknown."""
    if any(tally.read and not tally.epochs for tally in (one, other)):
        return []
    is_same = bool(one.epochs and other.epochs) and one.epochs[-1][0] == other.epochs[0][0]
    return [*one.epochs, *(other.epochs[1:] if is_same else other.epochs)]


def _joined_source(one: SourceFile, other: SourceFile) -> SourceFile | None:
    if one.path != other.path or one.end != other.start or one.is_cleaned != other.is_cleaned:
        return None
    crc = None
    if one.crc is not None and other.crc is not None:
        crc = joined_crc(one.crc, other.crc, other.end - other.start)
    return other._replace(start=one.start, crc=crc)


# --- CRCs of concatenated bytes ---------------------------------------------------------------------------------------


def joined_crc(one: int, other: int, size: int) -> int:
    """Combine the CRC-32C of two parts. `size` is the length of the second part in bytes."""
    return _times(_power_of_x(8 * size), one) ^ other


def _power_of_x(exponent: int) -> int:
    """Return the power of x, modulo the polynomial."""
    found, square = _ONE, _ONE >> 1
    while exponent:
        if exponent & 1:
            found = _times(square, found)
        square = _times(square, square)
        exponent >>= 1
    return found


def _times(one: int, other: int) -> int:
    """Return the product of two polynomials, modulo CRC-32C's."""
    product, bit = 0, _ONE
    while bit:
        if one & bit:
            product ^= other
        bit >>= 1
        other = (other >> 1) ^ _POLYNOMIAL if other & 1 else other >> 1
    return product
