"""Commits of plain Parquet files: a run claims the next manifest's number, then moves files to their final names."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from kseg.errors import KsegError, OpenError, UsageError
from kseg.export.commit.check import TableContents, TableDiffersError, have_columns, read_footers
from kseg.export.commit.manifest import (
    FOLDER,
    MOST_BYTES,
    Key,
    Manifest,
    Stub,
    latest_number,
    manifest_name,
    read_manifest,
    read_numbered,
)
from kseg.export.commit.merge import Joined
from kseg.export.commit.protocol import Committed, ExportPlan, State, TableName, is_unchanged, report_of
from kseg.export.commit.runs import (
    JOBS,
    ExportRun,
    FinishedOrders,
    LostError,
    Marker,
    files_of_finished,
    mark,
    marker_name,
    new_run,
    note_beginning,
    read_markers,
    refuse_concurrent,
    unmarked_on_error,
)
from kseg.export.destination import UNFINISHED, Destination
from kseg.export.report import Report, publish
from kseg.export.results import ExportedFile, Result, row_counts
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.write.exported_rows import ExportedFiles
from kseg.export.write.parquet import ATTEMPT, ATTEMPTS, schema_of_files
from kseg.system.new_directory import Processes
from kseg.system.signals import Uninterrupted

SUCCESS = "_SUCCESS"
_OF_JOB = re.compile(rf"{JOBS}/([^/]*)/.*", re.DOTALL)
MOST_IDS = 4
"""The most ids that a run tries. Of 4,294,967,296 none should collide: a store that reports it each time is broken."""


def open_commits(place: Destination, _files: FileOptions, _table: TableName, processes: Processes) -> "ParquetCommits":
    """Return the commits of a destination with manifests."""
    return ParquetCommits(place, processes)


class ParquetCommits:
    """The manifests of a destination: a kseg.export.commit.protocol.Commits."""

    def __init__(self, place: Destination, processes: Processes) -> None:
        self.place = place
        self._processes = processes

    def read_state(self, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> State:
        """Return the valid manifest, or an empty one. Raises KsegError if it is invalid."""
        return State(_previous(self.place, read, files, overwrite=overwrite), overwrite, lambda own: own)

    @contextmanager
    def begin(self, plan: ExportPlan) -> Iterator[ExportRun | None]:
        """Leave a marker, move files to the final names that an earlier run has claimed, and resume finished orders."""
        place, base = self.place, plan.previous.number
        run = _mark(base, place, self._processes)
        if run is None:
            yield None
            return
        try:
            finished = FinishedOrders(place, self._processes, plan.read, plan.previous.files)
            current = read_manifest(place)  # after the listing of finished orders: it names those that are committed
            if current is not None:
                _finish(current, place)
            committed = set() if current is None else set(current.attempts())
            resumed = finished.take_up(run, plan.kept, plan.copies, plan.orders, committed)
            yield run._replace(resumed=tuple(resumed))
        except BaseException as error:
            has_finished = isinstance(error, Exception) and not isinstance(error, LostError)
            with Uninterrupted(), suppress(KsegError, OSError):
                _give_up(run, place, files_of_finished(run.id, place) if has_finished else ())
            raise

    def commit(self, run: ExportRun, plan: ExportPlan, joined: Joined) -> Committed:
        """Claim the next number, which makes the results the export."""
        if is_unchanged(plan, joined):
            return self._commit_result(plan.previous, is_new=False)
        return self._commit_result(_claim(run, plan.previous, [*joined.kept, *joined.new], self.place), is_new=True)

    def _commit_result(self, manifest: Manifest, *, is_new: bool) -> Committed:
        return Committed(manifest, ParquetTable(self.place, manifest), is_new)

    def settle(self, done: Committed, report: Report) -> None:
        """Finish manifests until the valid one is complete.

        Raises KsegError if a file that a manifest names is missing.
        """
        place, manifest = self.place, done.manifest
        while True:
            _finish(manifest, place)
            there = set(place.names())
            missing = next((path for path in manifest.paths() if path not in there), None)
            if missing is None:
                publish(report if manifest is done.manifest else report_of(manifest, report), place)
                if SUCCESS not in there:
                    place.replace(SUCCESS, b"")
            latest = self._latest(manifest, is_whole=done.is_new or manifest is not done.manifest)
            if latest is None or latest.number < manifest.number:
                raise KsegError(
                    f"{manifest_name(manifest.number)} is missing: another program removes files here;"
                    " stop that program",
                    place.url,
                )
            if latest.number == manifest.number:
                break
            manifest = latest
        if missing is not None:
            raise KsegError(f"{missing} is missing, but the manifest names it; run the command again", place.url)

    def _latest(self, known: Manifest, *, is_whole: bool) -> Manifest | None:
        """Return the valid manifest; without reading it if the known one, with all of its results, is still valid."""
        return known if is_whole and latest_number(self.place) == known.number else read_manifest(self.place)

    def sweep(self, run: ExportRun, done: Committed) -> list[Marker]:
        """Remove attempts of ended runs, their markers, and the contents of old manifests.

        The order matters. A run without a marker after its files were listed has ended, so a manifest read after that
        names all of its valid files.
        """
        place = self.place
        names = list(place.names())
        markers = {each.run_id: each for each in read_markers(place, self._processes) if each.run_id != run.id}
        manifest = self._latest(done.manifest, is_whole=done.is_new)
        assert manifest is not None
        kept = {*manifest.paths(), *manifest.attempts()}
        left = {run_id: marker for run_id, marker in markers.items() if marker.is_left_alone(manifest.number)}
        for name in names:
            run_id = _run_of(name, place)
            is_unfinished = name.startswith((f"{FOLDER}/", SUCCESS)) and UNFINISHED.fullmatch(name) is not None
            if (run_id is not None and run_id not in left and name not in kept) or is_unfinished:
                place.delete(name)
        _replace_by_stubs(done.manifest.number, place)
        for run_id in {*markers, run.id} - set(left):
            place.delete(marker_name(run_id))
        return list(left.values())


class ParquetTable:
    """The files that a manifest names: a kseg.export.commit.protocol.CommittedTable."""

    def __init__(self, place: Destination, manifest: Manifest) -> None:
        self.location = place.url
        self._place, self._manifest = place, manifest

    def version(self) -> None:
        """Return None: plain files have no version but the commit's number."""

    def contents(self, names: Collection[str]) -> TableContents | None:
        """Return the contents according to the footers of the files at their final names."""
        manifest = self._manifest
        if not self._counts():
            return None
        paths = manifest.names()
        own = {name: paths[name] for name in names}
        try:
            footers = read_footers(self._place, own.values())
        except (TableDiffersError, OpenError):
            if not self._counts():  # another run has replaced them
                return None
            raise
        has_columns = have_columns(footers.values(), schema_of_files(manifest.read, manifest.files))
        total = sum(row_counts(manifest.results).values())
        return TableContents(has_columns, {name: footers[path].num_rows for name, path in own.items()}, total)

    def _counts(self) -> bool:
        return latest_number(self._place) == self._manifest.number

    def row_counts(self) -> Counter[Key]:
        """Return the row counts of the files that the manifest names."""
        counts: Counter[Key] = Counter()
        with ExportedFiles(self._place, schema_of_files(self._manifest.read, self._manifest.files)) as files:
            for result in self._manifest.results:
                for part in result.files:
                    counts[result.topic, result.partition] += sum(batch.num_rows for batch in files.rows(part))
        return counts

    def merge_files(self, target_size: int) -> None:
        """Do nothing: files are joined before the commit."""


def _previous(place: Destination, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> Manifest:
    """Return the valid manifest, or an empty manifest if there is none.

    Raises UsageError if the destination holds other files, or if its export has other options and isn't to be
    overwritten.
    """
    found = read_manifest(place)
    if found is None and _foreign_names(place) & _foreign_names(place):  # a first run may end while names are listed
        found = read_manifest(place)  # or it may have committed
        if found is None:
            raise UsageError("the destination isn't empty and isn't an export; choose another destination", place.url)
    if found is None:
        return Manifest(0, read, files)
    if overwrite:
        generation = found.number + 1 if any(found.paths()) else found.generation
        return Manifest(found.number, read, files, generation=generation, record=found.record)
    return found.with_options(read, files, place.url)


def _foreign_names(place: Destination) -> set[str]:
    """Return files that weren't written by any run, whether running or interrupted."""
    others = [name for name in place.names() if not name.startswith(f"{FOLDER}/")]
    if place.renames or not others or next(iter(place.names(FOLDER)), None) is None:
        return set(others)
    return {name for name in others if _run_of(name, place) is None}


def _mark(base: int, place: Destination, processes: Processes) -> ExportRun | None:
    """Mark a run as running; return None if another one has committed since its plan was made.

    If the store can't decide between concurrent claims, only one run at a time is allowed. Raises KsegError if another
    one is running, or if the store keeps none of the markers.
    """
    for run in (new_run(base) for _ in range(MOST_IDS)):
        with unmarked_on_error(run, place):  # also if a signal arrives while the marker is written
            if mark(run, place, processes):
                return _let_in(run, place, processes)
    raise KsegError("the store doesn't keep files that kseg writes; repair the store", place.url)


def _let_in(run: ExportRun, place: Destination, processes: Processes) -> ExportRun | None:
    if latest_number(place) != run.base:
        place.delete(marker_name(run.id))
        return None
    refuse_concurrent(run, place, processes)
    note_beginning(run, place)
    return run


def _claim(run: ExportRun, previous: Manifest, results: Iterable[Result], place: Destination) -> Manifest:
    """Claim the manifest of the next number. Raises LostError if another run took the number."""
    results = list(results)
    number = previous.number + 1
    kept = {file.path for result in results for file in result.files if file.path is not None}
    generation = previous.generation if kept >= set(previous.paths()) else number
    named = tuple(_with_final_names(results, kept, generation, place))
    record = run.record or previous.record
    new = Manifest(number, previous.read, previous.files, named, run.id, generation, record)
    content, name = new.to_bytes(), manifest_name(number)
    Manifest.from_bytes(content, name)  # a manifest that can't be read again isn't claimed
    if latest_number(place) != previous.number or not place.claim(name, content):
        raise LostError(place.url)
    there = place.read(name, MOST_BYTES + 1)
    if there != content and (there is None or Manifest.from_bytes(there, name).run != run.id):  # a stub has the run too
        raise LostError(place.url)
    return new


def _with_final_names(results: list[Result], taken: set[str], generation: int, place: Destination) -> Iterator[Result]:
    """Give new files their final names, from topic, partition and first offset."""
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
    folder = f"{file.folder}/" if file.folder else ""
    path = f"{folder}{file.name}{suffix}.parquet" if place.renames else file.attempt
    number = 1
    while path in taken:
        number += 1
        path = f"{folder}{file.name}{suffix}.{number}.parquet"
    return path


def _order(result: Result, ranks: Mapping[str | None, int]) -> tuple[str, int, int, int]:
    """Return the sort key of results: partition, and order of topics that had the same name in turn."""
    first = result.tally.first_offset
    return (result.topic, result.partition or 0, ranks[result.topic_id], -1 if first is None else first)


def _finish(manifest: Manifest, place: Destination) -> None:
    """Move files to the names in the manifest, and remove files that only the previous manifest named."""
    there = set(place.names())
    moves = manifest.names()
    aside = [name for name, path in moves.items() if name != path and name in there] if place.renames else []
    before = read_numbered(place, manifest.number - 1) if manifest.number > 1 else None
    left_out = set(before.paths()) - set(manifest.paths()) if isinstance(before, Manifest) else set()
    if aside or left_out & there:
        place.delete(SUCCESS)
    failures: list[KsegError] = []
    for name in aside:  # a file that can't be moved doesn't stop the others
        try:
            place.rename(name, moves[name])
        except KsegError as error:
            failures.append(error)
    if failures:  # a file to be removed may hold the rows of a file that isn't in place
        raise failures[0]
    for path in sorted(left_out & there):
        place.delete(path)


def _run_of(name: str, place: Destination) -> str | None:
    """Return the id of the run that a temporary file belongs to, or None for other files."""
    match = _OF_JOB.fullmatch(name)
    if match is None and (name.startswith(f"{ATTEMPTS}/") or not place.renames):
        match = ATTEMPT.fullmatch(name)
    return None if match is None else match[1]


def _replace_by_stubs(settled: int, place: Destination) -> None:
    """Empty the previous manifests, the lowest first, so that all manifests below a stub are stubs."""
    full: list[Manifest] = []
    number = settled - 1
    while number and isinstance(found := read_numbered(place, number), Manifest):
        full.append(found)
        number -= 1
    for manifest in reversed(full):
        place.replace(manifest_name(manifest.number), Stub(manifest.number, manifest.run).to_bytes())


def _give_up(run: ExportRun, place: Destination, finished: Collection[str] = ()) -> None:
    """Remove the files of a failed run that aren't needed any more.

    Files that can't be removed are left.
    """
    with suppress(KsegError, OSError):
        names: Sequence[str] = [name for name in place.names() if _run_of(name, place) == run.id]
        manifest = read_manifest(place)
        kept = set() if manifest is None else {*manifest.paths(), *manifest.attempts()}
        for name in sorted(names, key=lambda name: name.startswith(f"{JOBS}/")):  # these tell whose the others are
            if name not in kept and name not in finished:
                place.delete(name)
        place.delete(marker_name(run.id))
