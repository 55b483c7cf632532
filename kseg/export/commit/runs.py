"""Runs of exports: their markers, and the results of finished orders, which later runs resume."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import uuid4

from kseg.cluster.copies import Copies
from kseg.errors import KsegError
from kseg.export.commit.manifest import FOLDER, Key, finished_result
from kseg.export.commit.shapes import MARKER, parse_json, require_shape
from kseg.export.commit.sources import find_exported, find_unchanged, split_by_presence
from kseg.export.coverage import Coverage
from kseg.export.destination import Destination
from kseg.export.plan import WorkOrder
from kseg.export.results import ExportedFile, Result
from kseg.export.settings import FileOptions, OffsetRange, ReadOptions, has_room
from kseg.export.write.parquet import ATTEMPT
from kseg.system.new_directory import Processes

RUNS = "_kseg/runs"
JOBS = f"{FOLDER}/jobs"
MOST_MARKER_BYTES = 1 << 16
"""The most bytes of a marker."""


class LostError(KsegError):
    """The error of a run whose number another run has taken."""

    def __init__(self, url: str) -> None:
        super().__init__("another export wrote to the destination at the same time; run the command again", url)


class OvertakenError(KsegError):
    """The error of a run that another run has overtaken since its plan; it can commit the rest of its work later."""

    def __init__(self, url: str) -> None:
        super().__init__("other exports commit faster than this one; run the command again", url)


class ExportRun(NamedTuple):
    """A running export.

    id: the run's, in the names of its files; base: the number that it continues from. resumed: results of interrupted
    runs that it has resumed.
    """

    id: str
    base: int
    resumed: tuple[Result, ...] = ()


def marker_name(run_id: str) -> str:
    """Return the name of a run marker."""
    return f"{RUNS}/{run_id}.json"


def new_run(base: int) -> ExportRun:
    """Return a run with a new id, without a marker yet."""
    return ExportRun(uuid4().hex[:8], base)


def mark(run: ExportRun, place: Destination, processes: Processes) -> bool:
    """Write a run marker, after which no other run removes its files. Return False if the id is taken.

    A failed write leaves nothing.
    """
    content = json.dumps({"base": run.base, "process": processes.own()}).encode()
    with unmarked_on_error(run, place):
        return place.claim(marker_name(run.id), content)


@dataclass(frozen=True, slots=True)
class Marker:
    """The marker of another run. `base` is None if the marker can't be read."""

    run_id: str
    base: int | None
    host: str
    pid: int | None
    is_over: bool | None

    def is_left_alone(self, latest: int) -> bool:
        """Return True if the run may still commit or is working; `latest` is the highest number in use.

        If nothing is known about its process, numbers decide: a run whose number is taken has committed or lost.
        """
        if self.is_over is not None:
            return not self.is_over
        return self.base is None or self.base >= latest

    def __str__(self) -> str:
        """Return the run's description, and advice for the case that it has ended."""
        who = "" if self.pid is None else f" (process {self.pid} on {self.host})"
        return f"run {self.run_id}{who} may still be running; if it has ended, remove {marker_name(self.run_id)}"


def read_markers(place: Destination, processes: Processes) -> list[Marker]:
    """Return the runs that are marked as running."""
    names = [name for name in place.names(RUNS) if name.endswith(".json")]
    found = (_read_marker(name, place, processes) for name in names)
    return [marker for marker in found if marker is not None]


def _read_marker(name: str, place: Destination, processes: Processes) -> Marker | None:
    run_id = name.removeprefix(f"{RUNS}/").removesuffix(".json")
    try:
        content = place.read(name, MOST_MARKER_BYTES + 1)
        if content is None:
            return None
        found = parse_json(content, name, MOST_MARKER_BYTES)
        require_shape(found, MARKER, name)
    except KsegError:
        return Marker(run_id, None, "", None, None)
    process = found["process"]
    return Marker(run_id, found["base"], process["host"], process["pid"], processes.is_over(process))


@contextmanager
def unmarked_on_error(run: ExportRun, place: Destination) -> Iterator[None]:
    """Remove a run marker if the context fails."""
    try:
        yield
    except BaseException:
        with suppress(KsegError, OSError):
            place.delete(marker_name(run.id))
        raise


_NAME = re.compile(rf"{JOBS}/([0-9a-f]{{8}})/done-[0-9]+-[0-9a-f]{{12}}\.json")
MOST_ORDER_BYTES = 1 << 24
"""The most bytes of a finished order's result; larger ones aren't resumed."""


def write_finished(
    result: Result, options: tuple[ReadOptions, FileOptions], place: Destination, run_id: str, number: int
) -> None:
    """Write the result of a run's order to the destination, after its files; number: the order's."""
    read, files = options
    members = {"read": read.to_json(), "files": files.to_json(), "result": result.to_json()}
    place.replace(f"{JOBS}/{run_id}/done-{number}-{uuid4().hex[:12]}.json", json.dumps(members).encode())


def files_of_finished(run_id: str, place: Destination) -> set[str]:
    """Return the files of a run's finished orders, and of their results."""
    found = set()
    for name in list(place.names(f"{JOBS}/{run_id}")):
        result = _read(name, None, place)
        if result is not None:
            found |= {name, *(file.attempt for file in result.files)}
    return found


class FinishedOrders:
    """Return the completed but uncommitted orders of earlier runs that used the same options."""

    def __init__(self, place: Destination, processes: Processes, read: ReadOptions, files: FileOptions) -> None:
        self._place = place
        self._options = read, files
        self._under_way = {each.run_id for each in read_markers(place, processes) if each.is_over is not True}

    def take_up(
        self, run: ExportRun, kept: Iterable[Result], copies: Copies, orders: Iterable[WorkOrder]
    ) -> list[Result]:
        """Return the results that complete some of a run's orders; their files are renamed to names of the run.

        A result is used if its sources are unchanged, its files are complete, and its offsets are wanted and not in the
        kept results.
        """
        wanted, known = defaultdict[Key, set[OffsetRange]](set), defaultdict[Key, Coverage](Coverage)
        for order in orders:
            wanted[order.topic, order.partition].add(order.offsets)
        for key, done in find_exported(kept).items():
            known[key] += done.offsets
        taken: list[Result] = []
        for result in self._valid(copies):
            key = (result.topic, result.partition)
            span = OffsetRange(result.tally.first_offset, result.tally.next_offset)
            is_wanted = any(Coverage((offsets,)).holds(span) for offsets in wanted[key])
            own = self._move(result, run) if is_wanted and not known[key].meets(span) else None
            if own is not None:
                write_finished(own, self._options, self._place, run.id, len(taken))  # this run may be interrupted too
                known[key] += Coverage((span,))
                taken.append(own)
        return taken

    def _valid(self, copies: Copies) -> list[Result]:
        """Return the results with unchanged sources."""
        names = [
            name for name in self._place.names(FOLDER) if (match := _NAME.fullmatch(name)) and self._is_over(match)
        ]
        found = [result for name in names if (result := _read(name, self._options, self._place)) is not None]
        present, _ = split_by_presence(found, copies)
        return find_unchanged(present, self._options[0], copies)

    def _is_over(self, match: re.Match[str]) -> bool:
        return match[1] not in self._under_way

    def _move(self, result: Result, run: ExportRun) -> Result | None:
        """Return the result with its files under the run's names, or None if they are missing or incomplete."""
        moved: list[ExportedFile] = []
        for file in result.files:
            match = ATTEMPT.fullmatch(file.attempt)
            if match is None or self._place.size(file.attempt) != file.size:
                return None
            own = f"{file.attempt[: match.start(1)]}{run.id}{file.attempt[match.end(1) :]}"
            self._place.rename(file.attempt, own)
            if self._place.size(own) != file.size:
                return None
            moved.append(file._replace(attempt=own))
        return replace(result, files=tuple(moved))


def _read(name: str, options: tuple[ReadOptions, FileOptions] | None, place: Destination) -> Result | None:
    """Return a finished order's result, or None if it is invalid or has other options."""
    try:
        content = place.read(name, MOST_ORDER_BYTES + 1) if _NAME.fullmatch(name) else None
        if content is None:
            return None
        read, files, result = finished_result(parse_json(content, name, MOST_ORDER_BYTES), name)
    except KsegError:
        return None
    if options is None:
        return result
    is_alike = (read, files) == options and read.has_milliseconds == options[0].has_milliseconds
    return result if is_alike and has_room(options[0].decode, read.decode) else None
