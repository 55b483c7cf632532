"""Joins small files of an export, and takes out of shared files the rows of results that count no longer."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from kseg.export.destination import Destination
from kseg.export.exported_rows import ExportedFiles
from kseg.export.order import Job
from kseg.export.parquet import Layout, NewFile, new_attempt, schema_of_files, stem_of
from kseg.export.result import ExportedFile, Result, row_counts

MOST_TIMES_LARGER = 2
"""How many times as large as all smaller ones together a file may be that is joined with them.

Without this, each hourly run would write the same large file again; so each byte is written again a few times only.
"""


class FilePart(NamedTuple):
    """The rows that a result has in a file. result: its number among all; place: the file's among the result's.

    incarnation: how many topics of that name, with other ids, have results before it.
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
        """Where its rows stand among others."""
        return (self.topic, -1 if self.partition is None else self.partition, self.file.first_offset, self.result)

    def precedes(self, other: "FilePart") -> bool:
        """Whether all its offsets are below those of another part, or it is of another partition."""
        is_same = (self.topic, self.partition) == (other.topic, other.partition)
        return not is_same or self.file.last_offset < other.file.first_offset


Joining = tuple[FilePart, ...]
"""A file that is to be made: the parts of others, all of one folder, in this order."""


class Joined(NamedTuple):
    """What became of results: of those that were kept, and of new ones.

    counts: how many files the export would have had, and how many it has. is_changed: whether any file was made.
    """

    kept: list[Result]
    new: list[Result]
    counts: tuple[int, int] = (0, 0)
    is_changed: bool = False

    @property
    def new_files(self) -> int:
        """How many files have no final name yet."""
        return len({file.attempt for result in (*self.kept, *self.new) for file in result.files if file.path is None})


def join_files(
    kept: list[Result], new: list[Result], previous: Iterable[Result], job: Job, place: Destination, *, merges: bool
) -> Joined:
    """The results with their rows in other files, which count when the results are committed; the accounts stay.

    previous: results of the manifest that is there. merges: whether small files are joined; what shares a file with a
    result that has gone is always rewritten. Raises KsegError if a file can't be read or written.
    """
    results = [*kept, *new]
    files = [list(result.files) for result in results]
    joinings = _plan(
        _parts(results),
        row_counts(previous),
        job.files.target_size,
        merges=merges,
    )
    for number, joining in enumerate(joinings):
        for part, file in zip(joining, _write(joining, number, job, place), strict=True):
            files[part.result][part.place] = file
    joined = [replace(result, files=tuple(own)) for result, own in zip(results, files, strict=True)]
    counts = len(row_counts(results)), len(row_counts(joined))
    if not joinings:
        return Joined(kept, new, counts)
    return Joined(joined[: len(kept)], joined[len(kept) :], counts, is_changed=True)


# --- which ------------------------------------------------------------------------------------------------------------


def _parts(results: Sequence[Result]) -> dict[str, list[FilePart]]:
    """The parts of each file, in its order."""
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
    """The files to be made; `rows` are those that files have, be they of a result that is left or not."""
    broken = {name for name, own in parts.items() if name in rows and _row_count(own) < rows[name]}
    if not merges:
        return [tuple(parts[name]) for name in sorted(broken)]
    folders: dict[tuple[str, int], list[str]] = defaultdict(list)  # a file has no two topics of one name
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
        joinings += (made for made in _packed(pieces, target_size) if made not in unchanged)
    return joinings


def _row_count(parts: Iterable[FilePart]) -> int:
    return sum(part.file.rows for part in parts)


def _size(parts: list[FilePart], rows: int | None) -> int:
    """About how many bytes the parts of a file have that are left."""
    left = _row_count(parts)
    return parts[0].file.size * left // max(rows or 0, left, 1)


def _worth_joining(sizes: dict[str, int], limit: int) -> list[str]:
    """Files of less than `limit` bytes, but for those that are much larger than all smaller ones."""
    small = sorted((size, name) for name, size in sizes.items() if size < limit)
    total = count = 0
    for place, (size, _) in enumerate(small):
        if place and size <= MOST_TIMES_LARGER * total:
            count = place + 1
        total += size
    return [name for _, name in small[:count]]


def _packed(pieces: Iterable[tuple[FilePart, int]], target_size: int) -> Iterator[Joining]:
    """The parts in order, as many for a file as its size allows; each comes with its bytes."""
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


# --- how --------------------------------------------------------------------------------------------------------------


def _write(joining: Joining, number: int, job: Job, place: Destination) -> Iterator[ExportedFile]:
    """Writes a file; gives what each part is in it."""
    layout = Layout(schema_of_files(job.read, job.files), job.files, _is_sorted(joining))
    topics = sorted({part.topic for part in joining})
    stem = stem_of(topics[0], *(part.partition for part in joining)) if len(topics) == 1 else f"{len(topics)}-topics"
    origins = {(part.topic, part.partition): part.topic_id for part in joining}
    origin = {"parts": [{"topic": key[0], "partition": key[1], "topicId": own} for key, own in origins.items()]}
    file = NewFile(joining[0].file.folder, f"{new_attempt(job.id, number)}-0", stem, origin, layout, place)
    starts = []
    try:
        with ExportedFiles(place, layout.schema) as inputs:
            for part in joining:
                starts.append(file.rows)
                for batch in inputs.rows(part.file):
                    file.write(batch)
        whole = file.close()
    except BaseException:
        file.abandon()
        raise
    for part, start in zip(joining, starts, strict=True):
        own = part.file
        yield own._replace(attempt=whole.attempt, name=whole.name, size=whole.size, path=None, first_row=start)


def _is_sorted(joining: Joining) -> bool:
    """Whether the rows rise by topic, partition and offset."""
    rises = all(one.precedes(other) for one, other in pairwise(joining))
    return rises and all(part.is_sorted for part in joining)
