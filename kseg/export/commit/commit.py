"""Commits of plain Parquet files: runs, their markers, and orders that can be resumed."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import uuid4

from kseg.cluster.copies import Copies
from kseg.errors import KsegError, UsageError
from kseg.export.commit import manifest as manifests
from kseg.export.commit.manifest import (
    ATTEMPT,
    FOLDER,
    Key,
    Manifest,
    Stub,
    finished_result,
    latest_number,
    manifest_name,
    read_manifest,
    read_numbered,
)
from kseg.export.commit.relist import told_apart
from kseg.export.destination import Destination
from kseg.export.plan import WorkOrder
from kseg.export.results import ExportedFile, Result, missing
from kseg.export.settings import (
    INT32,
    FileOptions,
    OffsetRange,
    ReadOptions,
    has_room,
    members,
    number,
    optional,
    parse_json,
    require_shape,
    text,
)
from kseg.export.write.parquet import ATTEMPTS
from kseg.store.location import ASIDE
from kseg.system.new_directory import Processes

RUNS = "_kseg/runs"
MOST_MARKER_BYTES = 1 << 16
"""Of a marker."""
_PROCESS = members(
    {
        "host": text,
        "boot": optional(text),
        "namespace": optional(text),
        "pid": number(1, INT32),
        "started": optional(number(0)),
    }
)
_MARKER = members({"base": number(0, 99_999_999), "process": _PROCESS})


class ExportRun(NamedTuple):
    """A run that is under way. id: its own, in the names of what it writes; base: the number that it goes on from."""

    id: str
    base: int


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
    with _unmarked_on_error(run, place):
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
        require_shape(found, _MARKER, name)
    except KsegError:
        return Marker(run_id, None, "", None, None)
    process = found["process"]
    return Marker(run_id, found["base"], process["host"], process["pid"], processes.is_over(process))


SUCCESS = "_SUCCESS"
JOBS = f"{FOLDER}/jobs"
_ASIDE = re.compile(rf"(?:{FOLDER}/.*|{SUCCESS})\.[0-9a-f]{{12}}{re.escape(ASIDE)}", re.DOTALL)
_OF_JOB = re.compile(rf"{JOBS}/([^/]*)/.*", re.DOTALL)


MOST_IDS = 4
"""Ids that a run tries: of 4,294,967,296 another run hardly has one, so a store that says so of each is broken."""


class LostError(KsegError):
    """Another run took the number that this one was to take."""

    def __init__(self, url: str) -> None:
        super().__init__("another export was here at the same time; run it again", url)


def previous_manifest(place: Destination, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> Manifest:
    """What a run goes on from: the destination's manifest, or an empty one. Nothing is changed.

    Raises UsageError if the destination holds something else, or an export with other options that isn't to be
    overwritten; KsegError if its manifest can't be believed.
    """
    found = read_manifest(place)
    if found is None and _foreign_names(place) & _foreign_names(place):  # a first run may go while names are listed
        found = read_manifest(place)  # or it may have come
        if found is None:
            raise UsageError("is not empty, and no export: choose another place", place.url)
    if found is None:
        return Manifest(0, read, files)
    if overwrite:
        generation = found.number + 1 if any(found.paths()) else found.generation
        return Manifest(found.number, read, files, generation=generation)
    if (found.read, found.files) != (read, files):
        raise UsageError("was exported with other options: choose another place, or --overwrite", place.url)
    return found


def _foreign_names(place: Destination) -> set[str]:
    """Files that no run has written: neither one that is under way, nor one that was broken off."""
    others = [name for name in place.names() if not name.startswith(f"{FOLDER}/")]
    if place.renames or not others or next(iter(place.names(FOLDER)), None) is None:
        return set(others)
    return {name for name in others if _run_of(name, place) is None}


def begin(base: int, place: Destination, processes: Processes) -> ExportRun | None:
    """Marks a run as under way; None if another one has committed since its plan was made.

    Where two claims at the same time can't be kept apart, one run at a time is let in: raises KsegError if another one
    is under way, or if the store keeps none of the markers.
    """
    for run in (new_run(base) for _ in range(MOST_IDS)):
        with _unmarked_on_error(run, place):  # also where a signal comes while the marker is written
            if mark(run, place, processes):
                return _let_in(run, place, processes)
    raise KsegError("the store doesn't keep what is written to it; repair the store", place.url)


def _let_in(run: ExportRun, place: Destination, processes: Processes) -> ExportRun | None:
    if latest_number(place) != run.base:
        place.delete(marker_name(run.id))
        return None
    if not place.claims_safely:
        for marker in read_markers(place, processes):
            if marker.run_id != run.id and marker.is_left_alone(run.base):
                raise KsegError(f"takes one export at a time, and {marker}", place.url)
    return run


@contextmanager
def _unmarked_on_error(run: ExportRun, place: Destination) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(KsegError, OSError):
            place.delete(marker_name(run.id))
        raise


def commit(run: ExportRun, previous: Manifest, results: Iterable[Result], place: Destination) -> Manifest:
    """Claims the next number for these results: from then on they are the export.

    Raises LostError, and then nothing has changed, if another run took the number.
    """
    results = list(results)
    number = previous.number + 1
    kept = {file.path for result in results for file in result.files if file.path is not None}
    generation = previous.generation if kept >= set(previous.paths()) else number
    named = tuple(_named(results, kept, generation, place))
    new = Manifest(number, previous.read, previous.files, named, run.id, generation)
    content, name = new.to_bytes(), manifest_name(number)
    Manifest.from_bytes(content, name)  # what couldn't be read again isn't claimed
    if latest_number(place) != previous.number or not place.claim(name, content):
        raise LostError(place.url)
    claimed = read_numbered(place, number)
    if claimed is None or claimed.run != run.id:
        raise LostError(place.url)
    return new


def _named(results: list[Result], taken: set[str], generation: int, place: Destination) -> Iterator[Result]:
    """Gives new files their final names: of the topic, the partition and the first offset."""
    suffix = f"-{generation}" if generation else ""
    ranks: dict[str | None, int] = {}
    for result in results:
        ranks.setdefault(result.topic_id, len(ranks))
    names: dict[str, str] = {}  # results may share a file
    for result in sorted(results, key=lambda result: _order(result, ranks)):
        for file in result.files:
            if file.attempt not in names:
                names[file.attempt] = file.path or _free_name(file, taken, suffix, place)
                taken.add(names[file.attempt])
        if result.says_something:
            yield replace(result, files=tuple(file._replace(path=names[file.attempt]) for file in result.files))


def _free_name(file: ExportedFile, taken: set[str], suffix: str, place: Destination) -> str:
    """A final name that isn't taken."""
    folder = f"{file.folder}/" if file.folder else ""
    path = f"{folder}{file.name}{suffix}.parquet" if place.renames else file.attempt
    number = 1
    while path in taken:
        number += 1
        path = f"{folder}{file.name}{suffix}.{number}.parquet"
    return path


def _order(result: Result, ranks: Mapping[str | None, int]) -> tuple[str, int, int, int]:
    """By partition, and in the order of topics that had the same name one after another."""
    first = result.tally.first_offset
    return (result.topic, result.partition or 0, ranks[result.topic_id], -1 if first is None else first)


def finish(manifest: Manifest, place: Destination) -> None:
    """Moves files to where the manifest names them, and removes those that only the manifest before named."""
    there = set(place.names())
    moves = manifest.names()
    aside = [name for name, path in moves.items() if name != path and name in there] if place.renames else []
    before = read_numbered(place, manifest.number - 1) if manifest.number > 1 else None
    left_out = set(before.paths()) - set(manifest.paths()) if isinstance(before, Manifest) else set()
    if aside or left_out & there:
        place.delete(SUCCESS)
    failures: list[KsegError] = []
    for name in aside:  # one that can't be moved keeps no other from its place
        try:
            place.rename(name, moves[name])
        except KsegError as error:
            failures.append(error)
    if failures:  # what is to be removed may hold the rows of a file that isn't in its place
        raise failures[0]
    for path in sorted(left_out & there):
        place.delete(path)


def settle(manifest: Manifest, place: Destination, publish: Callable[[Manifest], object]) -> None:
    """Finishes a claimed manifest, and all that others have built on it since, until the one that counts is whole.

    publish: writes the files that describe a manifest. Raises KsegError if a file that a manifest names isn't there.
    """
    while True:
        finish(manifest, place)
        there = set(place.names())
        missing = next((path for path in manifest.paths() if path not in there), None)
        if missing is None:
            publish(manifest)
            if SUCCESS not in there:
                place.replace(SUCCESS, b"")
        latest = read_manifest(place)
        if latest is None or latest.number < manifest.number:
            raise KsegError(f"{manifest_name(manifest.number)} has gone: something else removes files here", place.url)
        if latest.number == manifest.number:
            break
        manifest = latest
    if missing is not None:
        raise KsegError(f"{missing} isn't there, though the manifest names it: run it again", place.url)


def sweep(settled: int, place: Destination, processes: Processes, own: ExportRun) -> list[Marker]:
    """Removes what runs left that are over, and what old manifests hold; gives the runs whose files are left alone.

    settled: the highest number up to which all is finished. The order matters: a run that has no marker after its files
    were listed is over, so that a manifest read after that names those of its files that count.
    """
    names = list(place.names())
    markers = {marker.run_id: marker for marker in read_markers(place, processes) if marker.run_id != own.id}
    manifest = read_manifest(place)
    assert manifest is not None
    kept = {*manifest.paths(), *manifest.attempts()}
    left = {run_id: marker for run_id, marker in markers.items() if marker.is_left_alone(manifest.number)}
    for name in names:
        run_id = _run_of(name, place)
        if (run_id is not None and run_id not in left and name not in kept) or _ASIDE.fullmatch(name):
            place.delete(name)
    _replace_by_stubs(settled, place)
    for run_id in {*markers, own.id} - set(left):
        place.delete(marker_name(run_id))
    return list(left.values())


def _run_of(name: str, place: Destination) -> str | None:
    """The id of the run that wrote a file for itself; None if it is no such file."""
    match = _OF_JOB.fullmatch(name)
    if match is None and (name.startswith(f"{ATTEMPTS}/") or not place.renames):
        match = ATTEMPT.fullmatch(name)
    return None if match is None else match[1]


def _replace_by_stubs(settled: int, place: Destination) -> None:
    """Takes the content of the manifests before; the lowest first, so that below a stub all are stubs."""
    full: list[Manifest] = []
    number = settled - 1
    while number and isinstance(found := read_numbered(place, number), Manifest):
        full.append(found)
        number -= 1
    for manifest in reversed(full):
        place.replace(manifest_name(manifest.number), Stub(manifest.number, manifest.run).to_bytes())


def give_up(run: ExportRun, place: Destination, finished: Collection[str] = ()) -> None:
    """Removes what a run wrote that failed, but for what a manifest names, and for the files of finished orders.

    What can't be removed is left.
    """
    with suppress(KsegError, OSError):
        names: Sequence[str] = [name for name in place.names() if _run_of(name, place) == run.id]
        manifest = read_manifest(place)
        kept = set() if manifest is None else {*manifest.paths(), *manifest.attempts()}
        for name in names:
            if name not in kept and name not in finished:
                place.delete(name)
        place.delete(marker_name(run.id))


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
