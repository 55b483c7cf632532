"""The manifest: a destination's valid files, and their sources. A new manifest commits a run.

Manifests are numbered; the highest number counts. A number is never reused: an old manifest is replaced by a stub of
the same name. Files that no manifest names remain from failed attempts.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kseg.errors import KsegError, UsageError, plural
from kseg.export.commit.repeated_options import describe_differences
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
from kseg.export.destination import Destination
from kseg.export.results import Result
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.topic_runs import RunRecord
from kseg.export.write.parquet import ATTEMPT

FOLDER = "_kseg"
VERSION = 1
MOST_BYTES = 256 << 20
"""The most bytes of a manifest that is written or read."""
_NAME = re.compile(rf"{FOLDER}/manifest-([0-9]{{8}})\.json")

Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of an export: a result for each order, whose files have their final `path`.

    run: the id of the run that made it. generation: the number of the last manifest that dropped a file. The names of
    all later files contain it, so that the name of a dropped file is never reused. record: the last run that has rows
    for a table of runs; if it was killed after its commit, a later run writes them.
    """

    number: int
    read: ReadOptions
    files: FileOptions
    results: tuple[Result, ...] = field(default=())
    run: str = ""
    generation: int = 0
    record: RunRecord | None = None

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON, one result per line. Raises KsegError if it is too large to be read again."""
        head = {
            "version": VERSION,
            "number": self.number,
            "run": self.run,
            "generation": self.generation,
            "read": self.read.to_json(),
            "files": self.files.to_json(),
            **({} if self.record is None else {"record": self.record.to_json()}),
        }
        results = ",\n".join(json.dumps(result.to_json(), sort_keys=True) for result in self.results)
        content = f'{json.dumps(head)[:-1]}, "results": [\n{results}\n]}}\n'.encode()
        if len(content) > MOST_BYTES:
            raise KsegError(
                f"the manifest would have {plural(len(content), 'byte')}, more than {MOST_BYTES}; export fewer topics"
            )
        return content

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> "Manifest | Stub":
        """Return the manifest of `to_bytes`, or the stub of an old one.

        Raises KsegError if it is neither.
        """
        checked = parse_json(content, name, MOST_BYTES)
        require_shape(checked, of_a_version, name)
        if type(checked["version"]) is not int or checked["version"] != VERSION:
            raise KsegError(
                f"the manifest has version {brief(checked['version'])}, expected {VERSION}; update kseg", name
            )
        require_shape(checked, STUB if checked.get("superseded") is True else MANIFEST, name)
        if name != manifest_name(checked["number"]):
            number = checked["number"]
            raise KsegError(
                f"the manifest has the number {number}, but its name has another: it was renamed or changed", name
            )
        if "superseded" in checked:
            return Stub(checked["number"], checked["run"])
        read, files = _options_of(checked, name)
        results = tuple(map(Result.from_json, checked["results"]))
        record = RunRecord.from_json(checked["record"]) if "record" in checked else None
        return cls(
            checked["number"], read, files, results, checked.get("run", ""), checked.get("generation", 0), record
        )

    def paths(self) -> Iterator[str]:
        """Return the valid Parquet files."""
        return iter(self.names().values())

    def with_options(self, read: ReadOptions, files: FileOptions, where: str) -> "Manifest":
        """Return the manifest for a run with these options. Raises UsageError if they make other rows or columns."""
        if different := describe_differences((self.read, self.files), (read, files)):
            raise UsageError(
                f"the export was made with {', '.join(different)}; specify the same, choose another destination, or"
                " specify --overwrite",
                where,
            )
        return replace(self, files=files)

    def attempts(self) -> Iterator[str]:
        """Return the names under which the files were written."""
        return iter(self.names())

    def names(self) -> dict[str, str]:
        """Return the final names of the files by the names under which they were written."""
        files = (file for result in self.results for file in result.files)
        return {file.attempt: file.path or file.attempt for file in files}

    @property
    def new_files(self) -> list[str]:
        """The files that the manifest's own run wrote. They have all columns of the table."""
        named = ((ATTEMPT.fullmatch(name), path) for name, path in self.names().items())
        return [path for match, path in named if match is not None and match[1] == self.run]


@dataclass(frozen=True, slots=True)
class Stub:
    """The replacement of an old manifest, which keeps its number taken."""

    number: int
    run: str

    def to_bytes(self) -> bytes:
        """Return the stub as JSON."""
        shown = {"version": VERSION, "number": self.number, "run": self.run, "superseded": True}
        return (json.dumps(shown) + "\n").encode()


def manifest_name(number: int) -> str:
    """Return the name of the manifest with a number."""
    return f"{FOLDER}/manifest-{number:08}.json"


def latest_number(place: Destination) -> int:
    """Return the highest number in use, or 0 if there is no manifest."""
    return max((int(match[1]) for name in place.names(FOLDER) if (match := _NAME.fullmatch(name))), default=0)


def read_manifest(place: Destination) -> Manifest | None:
    """Return the valid manifest, or None if it doesn't exist.

    Raises KsegError if it is damaged, has an unknown version, or names files that can't be an export's.
    """
    number = latest_number(place)
    while number:
        found = read_numbered(place, number)
        if isinstance(found, Manifest):
            return found
        later = latest_number(place)
        if later <= number:
            why = (
                "the manifest can't be read"
                if found is None
                else "the manifest refers to a later one, which doesn't exist"
            )
            raise KsegError(why, manifest_name(number))
        number = later
    return None


def read_numbered(place: Destination, number: int) -> Manifest | Stub | None:
    """Return the manifest with a number, or its stub, or None if it is missing."""
    content = place.read(manifest_name(number), MOST_BYTES + 1)
    return None if content is None else Manifest.from_bytes(content, manifest_name(number))


def finished_results(value: Any, name: str) -> tuple[ReadOptions, FileOptions, list[Result]]:
    """Return the results of finished orders, and their options. Raises KsegError if they are invalid."""
    require_shape(value, FINISHED, name)
    return *_options_of(value, name), [*map(Result.from_json, value["results"])]


def results_of_tasks(value: Any, name: str) -> list[Result]:
    """Return tasks' results of their orders. Raises KsegError if they name files that can't be the tasks'."""
    require_shape(value, list_of(TASK_RESULT), name)
    return [*map(Result.from_json, value)]


def _options_of(checked: Mapping[str, Any], name: str) -> tuple[ReadOptions, FileOptions]:
    try:
        return ReadOptions.from_json(checked["read"]), FileOptions.from_json(checked["files"])
    except (KeyError, TypeError, ValueError, AttributeError, KsegError) as error:
        raise KsegError("the options are invalid: the file was damaged, or kseg didn't write it", name) from error
