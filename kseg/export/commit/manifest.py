"""The manifest: which files of a destination count, and what went into them. A new manifest is the commit of a run.

Manifests are numbered; the highest one counts. A number once taken stays taken: of an old manifest the name stays, with
a stub in it. Files that no manifest names are leftovers of attempts that failed.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from kseg.cluster.copies import Copies, PartitionCopy, SegmentSource
from kseg.errors import KsegError, OpenError
from kseg.export.commit.shapes import (
    FINISHED,
    MANIFEST,
    STUB,
    TASK_RESULT,
    brief,
    list_of,
    of_a_version,
    parse_json,
    require_shape,
)
from kseg.export.coverage import Coverage
from kseg.export.destination import Destination
from kseg.export.plan import Done, is_read
from kseg.export.read.order_reader import crc_of_range, is_cleaned
from kseg.export.results import Result, SourceFile
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.write.parquet import ATTEMPT

FOLDER = "_kseg"
VERSION = 1
MOST_BYTES = 256 << 20
"""A manifest that is larger is neither written nor read."""
_NAME = re.compile(rf"{FOLDER}/manifest-([0-9]{{8}})\.json")

Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an export holds: a result for each order, whose files have the `path` under which they are to be found.

    run: the id of the run that made it. generation: the number of the last manifest that left a file out; it is in the
    names of all files since, so that the name of a file that was left out never comes back.
    """

    number: int
    read: ReadOptions
    files: FileOptions
    results: tuple[Result, ...] = field(default=())
    run: str = ""
    generation: int = 0

    def to_bytes(self) -> bytes:
        """The manifest as JSON, a result per line. Raises KsegError if that is too large to be read again."""
        head = {
            "version": VERSION,
            "number": self.number,
            "run": self.run,
            "generation": self.generation,
            "read": self.read.to_json(),
            "files": self.files.to_json(),
        }
        results = ",\n".join(json.dumps(result.to_json(), sort_keys=True) for result in self.results)
        content = f'{json.dumps(head)[:-1]}, "results": [\n{results}\n]}}\n'.encode()
        if len(content) > MOST_BYTES:
            raise KsegError(
                f"the manifest would have {len(content)} bytes, more than {MOST_BYTES}: export fewer topics"
            )
        return content

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> "Manifest | Stub":
        """The manifest of `to_bytes`, or what stands for an old one. Raises KsegError if it is neither of them."""
        checked = parse_json(content, name, MOST_BYTES)
        require_shape(checked, of_a_version, name)
        if type(checked["version"]) is not int or checked["version"] != VERSION:
            raise KsegError(f"a manifest of version {brief(checked['version'])}, known is {VERSION}", name)
        require_shape(checked, STUB if checked.get("superseded") is True else MANIFEST, name)
        if name != manifest_name(checked["number"]):
            number = checked["number"]
            raise KsegError(f"has the number {number}, not that of its name: it was renamed or changed", name)
        if "superseded" in checked:
            return Stub(checked["number"], checked["run"])
        read, files = _options_of(checked, name)
        results = tuple(map(Result.from_json, checked["results"]))
        return cls(checked["number"], read, files, results, checked.get("run", ""), checked.get("generation", 0))

    def paths(self) -> Iterator[str]:
        """The Parquet files that count."""
        return iter(self.names().values())

    def attempts(self) -> Iterator[str]:
        """The names under which these were written."""
        return iter(self.names())

    def names(self) -> dict[str, str]:
        """The names under which the files that count were written, each with that under which it is to be found."""
        files = (file for result in self.results for file in result.files)
        return {file.attempt: file.path or file.attempt for file in files}

    @property
    def new_files(self) -> int:
        """How many of the files the manifest's own run wrote."""
        own = (match[1] == self.run for name in self.attempts() if (match := ATTEMPT.fullmatch(name)))
        return sum(own)


@dataclass(frozen=True, slots=True)
class Stub:
    """What is left of a manifest after later ones: its number stays taken."""

    number: int
    run: str

    def to_bytes(self) -> bytes:
        """The stub as JSON."""
        shown = {"version": VERSION, "number": self.number, "run": self.run, "superseded": True}
        return (json.dumps(shown) + "\n").encode()


def manifest_name(number: int) -> str:
    """Where the manifest of a number is."""
    return f"{FOLDER}/manifest-{number:08}.json"


def latest_number(place: Destination) -> int:
    """The highest number that is taken; 0 if none is."""
    return max((int(match[1]) for name in place.names(FOLDER) if (match := _NAME.fullmatch(name))), default=0)


def read_manifest(place: Destination) -> Manifest | None:
    """The manifest that counts; None if there is none.

    Raises KsegError if it is damaged, names files that can't be an export's, or is of a version that isn't known.
    """
    number = latest_number(place)
    while number:
        found = read_numbered(place, number)
        if isinstance(found, Manifest):
            return found
        later = latest_number(place)
        if later <= number:
            why = "can't be read" if found is None else "says that a later one counts, and there is none"
            raise KsegError(why, manifest_name(number))
        number = later
    return None


def read_numbered(place: Destination, number: int) -> Manifest | Stub | None:
    """The manifest of a number, or its stub; None if it isn't there."""
    content = place.read(manifest_name(number), MOST_BYTES + 1)
    return None if content is None else Manifest.from_bytes(content, manifest_name(number))


def finished_result(value: Any, name: str) -> tuple[ReadOptions, FileOptions, Result]:
    """The result of a finished order, and the options that it was read with. Raises KsegError if it is none."""
    require_shape(value, FINISHED, name)
    return *_options_of(value, name), Result.from_json(value["result"])


def results_of_tasks(value: Any, name: str) -> list[Result]:
    """What tasks say of their orders. Raises KsegError if that names files that can't be theirs."""
    require_shape(value, list_of(TASK_RESULT), name)
    return [*map(Result.from_json, value)]


def _options_of(checked: Mapping[str, Any], name: str) -> tuple[ReadOptions, FileOptions]:
    try:
        return ReadOptions.from_json(checked["read"]), FileOptions.from_json(checked["files"])
    except (KeyError, TypeError, ValueError, AttributeError, KsegError) as error:
        raise KsegError("its options are none of kseg's: it was damaged, or kseg didn't write it", name) from error


# --- what needn't be done again --------------------------------------------------------------------------------------


def unchanged(results: Iterable[Result], read: ReadOptions, copies: Copies) -> list[Result]:
    """The results whose sources have gone, or hold what was read or compaction left of it.

    What was exported stays, also where compaction has taken it from the log since.
    """
    listed = {
        segment.log: (segment, replica)
        for replicas in copies.values()
        for replica in replicas
        for segment in replica.segments
    }
    found = (_as_it_is(result, listed) for result in results)
    kept = [result for result in found if result is not None]
    return kept if read.latest_per_key is None else _up_to_date(kept, copies)


def with_files_there(results: Iterable[Result], there: Collection[str]) -> list[Result]:
    """The results whose files are among those there, be it that they haven't been moved to their places yet."""
    return [result for result in results if all(file.path in there or file.attempt in there for file in result.files)]


def _up_to_date(results: list[Result], copies: Copies) -> list[Result]:
    """The results of partitions to which nothing was added: a later record may supersede any earlier one."""
    finished = done(results)
    return [
        result
        for result in results
        if (key := (result.topic, result.partition)) not in copies or is_read(copies[key][0], finished[key])
    ]


def _as_it_is(result: Result, listed: Mapping[str, tuple[SegmentSource, PartitionCopy]]) -> Result | None:
    """The result, if its sources still hold what was read, or what compaction left of it; None if they don't."""
    sources = []
    for source in result.sources:
        known = listed.get(source.path)
        if known is None:
            sources.append(source)
            continue
        segment, replica = known
        if _is_unchanged(source, segment):
            sources.append(source)
        elif _is_cleaned(result, segment, replica):
            sources.append(source._replace(size=segment.size, modified_ms=segment.modified_ms, is_cleaned=True))
        else:
            return None
    return result if sources == [*result.sources] else replace(result, sources=tuple(sources))


def _is_unchanged(source: SourceFile, segment: SegmentSource) -> bool:
    """Whether the bytes that were read are still the same."""
    if (segment.size, segment.modified_ms) == (source.size, source.modified_ms):
        return True
    if source.crc is None or source.is_cleaned or segment.size < source.end:
        return False
    with suppress(OpenError):  # it has gone since it was listed, or was cleaned
        return crc_of_range(segment, source.start, source.end) == source.crc
    return True


def _is_cleaned(result: Result, segment: SegmentSource, replica: PartitionCopy) -> bool:
    """Whether a changed log is what compaction left: of the same topic, and not the one that is appended to."""
    if result.topic_id is None or result.topic_id != replica.topic_id or segment is replica.segments[-1]:
        return False
    with suppress(OpenError):
        return is_cleaned(result, segment)
    return True


def changed_keys(one: Manifest, other: Manifest) -> frozenset[Key]:
    """The partitions of which two manifests don't say the same."""
    first, second = by_partition(one.results), by_partition(other.results)
    return frozenset(key for key in {*first, *second} if first.get(key) != second.get(key))


def by_partition(results: Iterable[Result]) -> dict[Key, list[Result]]:
    """The results of each partition, in their order."""
    found: dict[Key, list[Result]] = defaultdict(list)
    for result in results:
        found[result.topic, result.partition].append(result)
    return found


def done(results: Iterable[Result]) -> dict[Key, Done]:
    """What these results hold of each partition: offsets, as far as they weren't lost, and files read to their end."""
    return {key: _done(own) for key, own in by_partition(results).items()}


def _done(results: list[Result]) -> Done:
    files, ends = set(), dict[str, int]()
    for result in results:
        for source in result.sources:
            if source.is_cleaned:
                continue  # positions mean something else in it now
            ends[source.path] = max(source.end, ends.get(source.path, 0))
            if source.end >= source.size and result.tally.open_from is None:
                files.add((source.path, source.size, source.modified_ms))
    offsets = Coverage.joined([result.tally.covered for result in results])
    holes = Coverage.joined([result.tally.open_holes for result in results])
    return Done(offsets, frozenset(files), ends, holes)
