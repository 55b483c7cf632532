"""The manifest: which files of a destination count, and what went into them. A new manifest is the commit of a run.

Manifests are numbered; the highest one counts. Files that no manifest names are leftovers of attempts that failed.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kseg.errors import KsegError, UsageError
from kseg.export.destination import Destination
from kseg.export.options import FileOptions, OffsetRange, ReadOptions
from kseg.export.order import Result
from kseg.export.parquet import ATTEMPTS
from kseg.export.plan import Done, is_read
from kseg.export.ranges import crc_of_range
from kseg.export.source import Copies, SegmentSource
from kseg.export.tally import Tally

FOLDER = "_kseg"
SUCCESS = "_SUCCESS"
VERSION = 1
_ATTEMPT = re.compile(r".*-[0-9a-f]{8}-[0-9]+-[0-9a-f]{12}-[0-9]+\.parquet")
_NAME = re.compile(rf"{FOLDER}/manifest-([0-9]{{8}})\.json")

Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an export holds: a result for each order, whose files have the `path` under which they are to be found."""

    number: int
    read: ReadOptions
    files: FileOptions
    results: tuple[Result, ...] = field(default=())

    def to_bytes(self) -> bytes:
        """The manifest as JSON, a result per line."""
        head = {"version": VERSION, "number": self.number, "read": self.read.to_json(), "files": self.files.to_json()}
        results = ",\n".join(json.dumps(result, sort_keys=True) for result in self.results)
        return f'{json.dumps(head)[:-1]}, "results": [\n{results}\n]}}\n'.encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Manifest":
        """The manifest of `to_bytes`."""
        members = json.loads(content)
        read, files = ReadOptions.from_json(members["read"]), FileOptions.from_json(members["files"])
        return cls(members["number"], read, files, tuple(members["results"]))

    def paths(self) -> Iterator[str]:
        """The Parquet files that count."""
        return (file["path"] for result in self.results for file in result["files"])


def read_manifest(place: Destination) -> Manifest | None:
    """The manifest that counts; None if there is none. Raises KsegError if it is of a version that isn't known."""
    name = max((name for name in place.names(FOLDER) if _NAME.fullmatch(name)), default=None)
    content = None if name is None else place.read(name)
    if content is None:
        return None
    if json.loads(content)["version"] != VERSION:
        raise KsegError(f"a manifest of version {json.loads(content)['version']}, known is {VERSION}", name)
    return Manifest.from_bytes(content)


def previous_manifest(place: Destination, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> Manifest:
    """What a run goes on from: the destination's manifest, or an empty one.

    A commit that was broken off is finished first. Raises UsageError if the destination holds something else, or an
    export with other options that isn't to be overwritten.
    """
    found = read_manifest(place)
    if found is None:
        if any(not name.startswith(f"{FOLDER}/") for name in place.names()):
            raise UsageError("is not empty, and no export: choose another place", place.url)
        return Manifest(0, read, files)
    finish_commit(found, place)
    if overwrite:
        return Manifest(found.number, read, files)
    if (found.read, found.files) != (read, files):
        raise UsageError("was exported with other options: choose another place, or --overwrite", place.url)
    return found


def commit(manifest: Manifest, results: Iterable[Result], place: Destination) -> Manifest:
    """Makes these results the export: all of them, or on failure none.

    Raises KsegError if another export into the same place was quicker.
    """
    named = tuple(_named(list(results), place))
    new = Manifest(manifest.number + 1, manifest.read, manifest.files, named)
    place.delete(SUCCESS)
    if not place.claim(_name(new.number), new.to_bytes()):
        raise KsegError("another export was here at the same time; run it again", place.url)
    finish_commit(new, place)
    sweep(new, place)
    place.replace(SUCCESS, b"")
    return new


def _named(results: list[Result], place: Destination) -> Iterator[Result]:
    """Gives new files their final names: of the topic, the partition and the first offset."""
    taken = {file["path"] for result in results for file in result["files"] if "path" in file}
    for result in sorted(results, key=_order):
        for file in result["files"]:
            if "path" in file:
                continue
            folder = f"{file['folder']}/" if file["folder"] else ""
            path = f"{folder}{file['name']}.parquet" if place.renames else file["attempt"]
            number = 1
            while path in taken:
                number += 1
                path = f"{folder}{file['name']}-{number}.parquet"
            taken.add(path)
            file["path"] = path
        if says_something(result):
            yield result


def says_something(result: Result) -> bool:
    """Whether an order met any offset or damage."""
    tally = result["tally"]
    return bool(tally["losses"]) or tally["first_offset"] != tally["next_offset"]


def _order(result: Result) -> tuple[str, int, int]:
    first = result["tally"]["first_offset"]
    return (result["topic"], result["partition"] or 0, -1 if first is None else first)


def finish_commit(manifest: Manifest, place: Destination) -> None:
    """Moves files to where the manifest names them, and removes those that only the manifest before named."""
    aside = set(place.names(ATTEMPTS)) if place.renames else set()
    for result in manifest.results:
        for file in result["files"]:
            if file["attempt"] in aside:
                place.rename(file["attempt"], file["path"])
    content = place.read(_name(manifest.number - 1))
    if content is not None:
        for path in set(Manifest.from_bytes(content).paths()) - set(manifest.paths()):
            place.delete(path)


def sweep(manifest: Manifest, place: Destination) -> None:
    """Removes what attempts left that nobody took, and manifests before the last but one."""
    kept = set(manifest.paths())
    for name in list(place.names()):
        match = _NAME.fullmatch(name)
        is_old = match is not None and int(match[1]) < manifest.number - 1
        is_job = name.startswith((f"{FOLDER}/jobs/", f"{ATTEMPTS}/"))
        if is_old or is_job or (_ATTEMPT.fullmatch(name) and name not in kept):
            place.delete(name)


def _name(number: int) -> str:
    return f"{FOLDER}/manifest-{number:08}.json"


# --- what needn't be done again --------------------------------------------------------------------------------------


def still_valid(manifest: Manifest, copies: Copies, place: Destination) -> list[Result]:
    """The results whose sources haven't changed since, or have gone, and whose files are there."""
    listed = {
        segment.log: segment for replicas in copies.values() for replica in replicas for segment in replica.segments
    }
    there = set(place.names())
    kept = []
    for result in manifest.results:
        is_there = all(file["path"] in there for file in result["files"])
        if is_there and all(_is_unchanged(source, listed) for source in result["sources"]):
            kept.append(result)
    return kept if manifest.read.latest_per_key is None else _up_to_date(kept, copies)


def _up_to_date(results: list[Result], copies: Copies) -> list[Result]:
    """The results of partitions to which nothing was added: a later record may supersede any earlier one."""
    finished = done(results)
    return [
        result
        for result in results
        if (key := (result["topic"], result["partition"])) not in copies or is_read(copies[key][0], finished[key])
    ]


def _is_unchanged(source: dict[str, Any], listed: dict[str, SegmentSource]) -> bool:
    """Whether the bytes that were read are still the same; those of a log that has gone can't have changed."""
    segment = listed.get(source["path"])
    if segment is None or (segment.size, segment.modified_ms) == (source["size"], source["modifiedMs"]):
        return True
    if source["crc"] is None or segment.size < source["end"]:
        return False
    crc: int = source["crc"]
    return crc_of_range(source["path"], source["start"], source["end"]) == crc


def done(results: Iterable[Result]) -> dict[Key, Done]:
    """What these results hold of each partition: offsets, as far as they weren't lost, and files read to their end."""
    offsets: dict[Key, list[OffsetRange]] = defaultdict(list)
    files: dict[Key, set[tuple[str, int, int]]] = defaultdict(set)
    for result in results:
        key = (result["topic"], result["partition"])
        tally = Tally.from_json(result["tally"])
        offsets[key] += covered(tally)
        for source in result["sources"]:
            if source["end"] >= source["size"] and tally.open_from is None:
                files[key].add((source["path"], source["size"], source["modifiedMs"]))
    return {key: Done(tuple(ranges), frozenset(files[key])) for key, ranges in offsets.items()}


def covered(tally: Tally) -> list[OffsetRange]:
    """The offsets that were looked at."""
    if tally.first_offset is None or tally.next_offset is None or tally.first_offset >= tally.next_offset:
        return []
    return [OffsetRange(tally.first_offset, tally.next_offset)]
