"""Orders that are finished: each leaves its result beside its files, so that the next run can take up a dead one's.

A run moves files that it takes up to names of its own first: then they are its own, whoever removes what the dead one
left. Two runs may try that at once, and then the commit decides which of them counts.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from kseg.errors import KsegError
from kseg.export import manifest as manifests
from kseg.export.commit import JOBS
from kseg.export.copies import Copies
from kseg.export.coverage import missing
from kseg.export.decoding import has_room
from kseg.export.destination import Destination
from kseg.export.incarnations import told_apart
from kseg.export.manifest import ATTEMPT, FOLDER, Key, finished_result
from kseg.export.plan import WorkOrder
from kseg.export.result import ExportedFile, Result
from kseg.export.runs import ExportRun, read_markers
from kseg.export.settings import FileOptions, OffsetRange, ReadOptions
from kseg.export.shapes import parse_json
from kseg.system.known_processes import Processes

_NAME = re.compile(rf"{JOBS}/([0-9a-f]{{8}})/done-[0-9]+-[0-9a-f]{{12}}\.json")
MOST_BYTES = 1 << 24
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
        wanted, known = defaultdict[Key, set[OffsetRange]](set), defaultdict[Key, list[OffsetRange]](list)
        for order in orders:
            wanted[order.topic, order.partition].add(order.offsets)
        for key, done in manifests.done(kept).items():
            known[key] += done.offsets
        taken: list[Result] = []
        for result in self._valid(copies):
            key = (result.topic, result.partition)
            span = OffsetRange(result.tally.first_offset, result.tally.next_offset)
            is_wanted = any(not list(missing(span, [offsets])) for offsets in wanted[key])
            own = self._moved(result, run) if is_wanted and list(missing(span, known[key])) == [span] else None
            if own is not None:
                write_finished(own, self._options, self._place, run.id, len(taken))  # should this run be broken off too
                known[key].append(span)
                taken.append(own)
        return taken

    def _valid(self, copies: Copies) -> list[Result]:
        """The results whose sources are as they were."""
        names = [
            name for name in self._place.names(FOLDER) if (match := _NAME.fullmatch(name)) and self._is_over(match)
        ]
        found = [result for name in names if (result := _read(name, self._options, self._place)) is not None]
        present, _ = told_apart(found, copies)
        return manifests.unchanged(present, self._options[0], copies)

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
        content = place.read(name, MOST_BYTES) if _NAME.fullmatch(name) else None
        if content is None:
            return None
        read, files, result = finished_result(parse_json(content, name), name)
    except KsegError:
        return None
    if options is None:
        return result
    return result if (read, files) == options and has_room(options[0].decode, read.decode) else None
