"""Runs of exports: their markers, and the results that they leave of finished orders, for later runs to take up."""

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
from kseg.export.commit.sources import done_of, told_apart, unchanged
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
"""Of a marker."""


class LostError(KsegError):
    """Another run took the number that this one was to take."""

    def __init__(self, url: str) -> None:
        super().__init__("another export was here at the same time; run it again", url)


class OvertakenError(KsegError):
    """Another run has committed since the plan was made; what it has left to do can be committed after it."""

    def __init__(self, url: str) -> None:
        super().__init__("other exports come here faster than this one can commit; run it again", url)


class ExportRun(NamedTuple):
    """A run that is under way.

    id: its own, in the names of what it writes; base: the number that it goes on from. resumed: results of runs that
    were broken off, which it has taken up.
    """

    id: str
    base: int
    resumed: tuple[Result, ...] = ()


def marker_name(run_id: str) -> str:
    """Where a run says that it is under way."""
    return f"{RUNS}/{run_id}.json"


def new_run(base: int) -> ExportRun:
    """A run with an id of its own, which nobody knows of yet."""
    return ExportRun(uuid4().hex[:8], base)


def mark(run: ExportRun, place: Destination, processes: Processes) -> bool:
    """Leaves a run's marker; from then on no other run takes away what this one writes. False if the id is taken.

    Where it can't be written nothing of it stays.
    """
    content = json.dumps({"base": run.base, "process": processes.own()}).encode()
    with unmarked_on_error(run, place):
        return place.claim(marker_name(run.id), content)


@dataclass(frozen=True, slots=True)
class Marker:
    """What a run says of itself, as another run reads it. base: None if the marker says nothing that can be read."""

    run_id: str
    base: int | None
    host: str
    pid: int | None
    is_over: bool | None

    def is_left_alone(self, latest: int) -> bool:
        """Whether the run may still commit or is at work; `latest` is the highest number that is taken.

        If nothing is known about its process, numbers decide: a run whose number is taken has committed or lost.
        """
        if self.is_over is not None:
            return not self.is_over
        return self.base is None or self.base >= latest

    def __str__(self) -> str:
        """Who it is, and what to do if it is over."""
        who = "" if self.pid is None else f" (process {self.pid} on {self.host})"
        return f"run {self.run_id}{who} may be under way; if it is over, remove {marker_name(self.run_id)}"


def read_markers(place: Destination, processes: Processes) -> list[Marker]:
    """The runs that say they are under way."""
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
    """Removes a run's marker if what is done fails."""
    try:
        yield
    except BaseException:
        with suppress(KsegError, OSError):
            place.delete(marker_name(run.id))
        raise


_NAME = re.compile(rf"{JOBS}/([0-9a-f]{{8}})/done-[0-9]+-[0-9a-f]{{12}}\.json")
MOST_ORDER_BYTES = 1 << 24
"""Of a finished order's result; what is larger isn't taken up."""


def write_finished(
    result: Result, options: tuple[ReadOptions, FileOptions], place: Destination, run_id: str, number: int
) -> None:
    """Leaves the result of a run's order, which has a number, in the destination: after its files."""
    read, files = options
    members = {"read": read.to_json(), "files": files.to_json(), "result": result.to_json()}
    place.replace(f"{JOBS}/{run_id}/done-{number}-{uuid4().hex[:12]}.json", json.dumps(members).encode())


def files_of_finished(run_id: str, place: Destination) -> set[str]:
    """The files of a run's finished orders, and of their results."""
    found = set()
    for name in list(place.names(f"{JOBS}/{run_id}")):
        result = _read(name, None, place)
        if result is not None:
            found |= {name, *(file.attempt for file in result.files)}
    return found


class FinishedOrders:
    """What runs that are over have finished, with these options, and which nobody has committed."""

    def __init__(self, place: Destination, processes: Processes, read: ReadOptions, files: FileOptions) -> None:
        self._place = place
        self._options = read, files
        self._under_way = {each.run_id for each in read_markers(place, processes) if each.is_over is not True}

    def take_up(
        self, run: ExportRun, kept: Iterable[Result], copies: Copies, orders: Iterable[WorkOrder]
    ) -> list[Result]:
        """The results that do some of a run's orders, their files moved to names of the run.

        Those are taken whose sources haven't changed, whose files are whole, and whose offsets are wanted and not in
        the results kept.
        """
        wanted, known = defaultdict[Key, set[OffsetRange]](set), defaultdict[Key, Coverage](Coverage)
        for order in orders:
            wanted[order.topic, order.partition].add(order.offsets)
        for key, done in done_of(kept).items():
            known[key] += done.offsets
        taken: list[Result] = []
        for result in self._valid(copies):
            key = (result.topic, result.partition)
            span = OffsetRange(result.tally.first_offset, result.tally.next_offset)
            is_wanted = any(Coverage((offsets,)).holds(span) for offsets in wanted[key])
            own = self._moved(result, run) if is_wanted and not known[key].meets(span) else None
            if own is not None:
                write_finished(own, self._options, self._place, run.id, len(taken))  # should this run be broken off too
                known[key] += Coverage((span,))
                taken.append(own)
        return taken

    def _valid(self, copies: Copies) -> list[Result]:
        """The results whose sources are as they were."""
        names = [
            name for name in self._place.names(FOLDER) if (match := _NAME.fullmatch(name)) and self._is_over(match)
        ]
        found = [result for name in names if (result := _read(name, self._options, self._place)) is not None]
        present, _ = told_apart(found, copies)
        return unchanged(present, self._options[0], copies)

    def _is_over(self, match: re.Match[str]) -> bool:
        return match[1] not in self._under_way

    def _moved(self, result: Result, run: ExportRun) -> Result | None:
        """The result with its files under the run's names; None if they aren't there, or not whole."""
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
    """A finished order's result; None if it can't be believed, or was asked for with other options."""
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
