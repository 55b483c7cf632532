"""Runs of exports: their markers, and the results of finished orders, which later runs resume."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import uuid4

from kseg.cluster.copies import Copies
from kseg.errors import KsegError
from kseg.export.commit.manifest import FOLDER, Key, finished_results
from kseg.export.commit.shapes import MARKER, parse_json, require_shape
from kseg.export.commit.sources import find_exported, find_unchanged, split_by_presence
from kseg.export.coverage import Coverage
from kseg.export.destination import Destination
from kseg.export.plan import WorkOrder
from kseg.export.results import Result
from kseg.export.settings import FileOptions, OffsetRange, ReadOptions, has_room
from kseg.export.topic_runs import RunRecord
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
    runs that it has resumed. record: its numbers for the table of runs; None without such a table.
    """

    id: str
    base: int
    resumed: tuple[Result, ...] = ()
    record: RunRecord | None = None


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


def refuse_concurrent(run: ExportRun, place: Destination, processes: Processes) -> None:
    """Raise KsegError if the store can't decide between concurrent claims, and another run may be running."""
    if place.claims_safely:
        return
    for marker in read_markers(place, processes):
        if marker.run_id != run.id and marker.is_left_alone(run.base):
            raise KsegError(f"the destination accepts only one export at a time, and {marker}", place.url)


@contextmanager
def unmarked_on_error(run: ExportRun, place: Destination) -> Iterator[None]:
    """Remove a run marker if the context fails."""
    try:
        yield
    except BaseException:
        with suppress(KsegError, OSError):
            place.delete(marker_name(run.id))
        raise


def note_beginning(run: ExportRun, place: Destination) -> None:
    """Leave a file that tells later runs whose the run's files are, even if somebody has removed its marker.

    Only needed where a user has to remove markers, and files are written where they stay.
    """
    if not (place.renames or place.claims_safely):
        place.replace(f"{JOBS}/{run.id}/begun.json", b"{}")


_NAME = re.compile(rf"{JOBS}/([0-9a-f]{{8}})/done-[0-9]+-[0-9a-f]{{12}}\.json")
MOST_ORDER_BYTES = 1 << 24
"""The most bytes of finished orders' results; larger ones aren't resumed."""


def write_finished(
    results: Iterable[Result], options: tuple[ReadOptions, FileOptions], place: Destination, run_id: str, number: int
) -> None:
    """Write the results of a run's orders, which share their files, to the destination; number: the first order's.

    The files are complete before. A later run resumes all of these orders, or none.
    """
    read, files = options
    members = {
        "read": read.to_json(),
        "files": files.to_json(),
        "results": [result.to_json() for result in results],
    }
    place.replace(f"{JOBS}/{run_id}/done-{number}-{uuid4().hex[:12]}.json", json.dumps(members).encode())


def files_of_finished(run_id: str, place: Destination) -> set[str]:
    """Return the files of a run's finished orders, and of their results."""
    found = set()
    for name in list(place.names(f"{JOBS}/{run_id}")):
        results = _read(name, None, place)
        if results:
            found |= {name, *(file.attempt for result in results for file in result.files)}
    return found


class FinishedOrders:
    """The completed orders of earlier runs that used the same options.

    They are listed before the markers: a run without a marker by then is over.
    """

    def __init__(self, place: Destination, processes: Processes, read: ReadOptions, files: FileOptions) -> None:
        self._place = place
        self._options = read, files
        names = [(name, match[1]) for name in place.names(FOLDER) if (match := _NAME.fullmatch(name))]
        under_way = {each.run_id for each in read_markers(place, processes) if each.is_over is not True}
        self._names = [name for name, run_id in names if run_id not in under_way]

    def take_up(
        self,
        run: ExportRun,
        kept: Iterable[Result],
        copies: Copies,
        orders: Iterable[WorkOrder],
        committed: Collection[str],
    ) -> list[Result]:
        """Return the results that complete some of a run's orders; their files are renamed to names of the run.

        A result is used if its sources are unchanged, its files are complete and not yet committed, and its offsets are
        wanted and not in the kept results. committed: the valid manifest's files, by the names of their attempts.
        """
        wanted, known = defaultdict[Key, set[OffsetRange]](set), defaultdict[Key, Coverage](Coverage)
        for order in orders:
            wanted[order.topic, order.partition].add(order.offsets)
        for key, done in find_exported(kept).items():
            known[key] += done.offsets
        taken: list[Result] = []
        for results in self._valid(copies, committed):
            spans = [
                ((each.topic, each.partition), OffsetRange(each.tally.first_offset, each.tally.next_offset))
                for each in results
            ]
            is_wanted = all(
                any(Coverage((offsets,)).holds(span) for offsets in wanted[key]) and not known[key].meets(span)
                for key, span in spans
            )
            own = self._move(results, run) if is_wanted else None
            if own is not None:
                write_finished(own, self._options, self._place, run.id, len(taken))  # this run may be interrupted too
                for key, span in spans:
                    known[key] += Coverage((span,))
                taken += own
        return taken

    def _valid(self, copies: Copies, committed: Collection[str]) -> Iterator[list[Result]]:
        """Yield the results that were written together, if they aren't committed, and the sources of all unchanged."""
        found = [
            results
            for results in (_read(name, self._options, self._place) for name in self._names)
            if not any(file.attempt in committed for result in results for file in result.files)
        ]
        present, _ = split_by_presence((result for results in found for result in results), copies)
        unchanged = find_unchanged(present, self._options[0], copies)
        valid = {id(result.tally): result for result in unchanged}  # a result that was replaced keeps its tally
        for results in found:
            own = [valid[id(result.tally)] for result in results if id(result.tally) in valid]
            if own and len(own) == len(results):
                yield own

    def _move(self, results: Iterable[Result], run: ExportRun) -> list[Result] | None:
        """Return the results with their files under the run's names, or None if they are missing or incomplete."""
        files = {file.attempt: file for result in results for file in result.files}
        names: dict[str, str] = {}
        for name, file in files.items():
            match = ATTEMPT.fullmatch(name)
            if match is None or self._place.size(name) != file.size:
                return None
            own = f"{name[: match.start(1)]}{run.id}{name[match.end(1) :]}"
            self._place.rename(name, own)
            if self._place.size(own) != file.size:
                return None
            names[name] = own
        return [
            replace(result, files=tuple(file._replace(attempt=names[file.attempt]) for file in result.files))
            for result in results
        ]


def _read(name: str, options: tuple[ReadOptions, FileOptions] | None, place: Destination) -> list[Result]:
    """Return results of finished orders; none if they are invalid or have other options."""
    try:
        content = place.read(name, MOST_ORDER_BYTES + 1) if _NAME.fullmatch(name) else None
        if content is None:
            return []
        read, files, results = finished_results(parse_json(content, name, MOST_ORDER_BYTES), name)
    except KsegError:
        return []
    if options is None:
        return results
    is_alike = (read, files) == options and read.has_milliseconds == options[0].has_milliseconds
    return results if is_alike and has_room(options[0].decode, read.decode) else []
