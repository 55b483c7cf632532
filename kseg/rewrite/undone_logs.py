"""Copies of logs that were changed as text, in their former state, for salvage to read."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError
from kseg.formats.codes import DamageKind
from kseg.index.header_scan import end_of
from kseg.reading.blocks import Damage
from kseg.reading.changed_batches import ChangedBatches, Trials
from kseg.reading.log_file import LogFile, Run
from kseg.reading.text_changes import TextChange, find_change, pieces_of
from kseg.rewrite.salvage_extents import intact_runs
from kseg.system.new_directory import WriteError, scratch_directory
from kseg.system.placed_path import Placement


class UndoneLog(NamedTuple):
    """A log that was modified as text, and a copy with the modification undone."""

    log: Path
    what: str
    copy: Path


class UndoneLogs:
    """Makes such copies in a temporary directory; a context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._directory: Path | None = None
        self._count = 0

    def __enter__(self) -> "UndoneLogs":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def copy_of(self, log_file: LogFile, position: int) -> UndoneLog | None:
        """Return a copy without the change that is found at a position, or None if it can't be undone.

        Raises WriteError if it can't be written, or has no room in TMPDIR.
        """
        change = find_change(log_file.read, position)
        if change is None:
            return None
        try:
            copy = self._place_of(log_file.path)
            with copy.open("xb") as target:
                target.writelines(_undo(log_file, change))
        except OSError as error:
            problem = f"its corrected copy can't be written to TMPDIR: {error.strerror}; set TMPDIR to another place"
            raise WriteError(problem, log_file.path) from error
        except OpenError as error:
            raise WriteError(error.message, log_file.path) from error
        modified = log_file.path.stat().st_mtime_ns
        os.utime(copy, ns=(modified, modified))
        return UndoneLog(log_file.path, change.what, copy)

    def _place_of(self, log: Path) -> Path:
        """Return the path for a copy; it is shown as the log."""
        if self._directory is None:
            self._directory = self._stack.enter_context(scratch_directory())
        self._count += 1
        copy = self._directory / str(self._count) / log.name
        copy.parent.mkdir()
        return Placement(copy, str(log)).path


def _undo(log_file: LogFile, change: TextChange) -> Iterator[bytes]:
    """Yield the bytes of a log before a change: intact batches unchanged, the bytes between them restored.

    Ends where only zeros follow, or very many of them begin.
    """
    undoing = _Undoing(log_file, change)
    while undoing.position < log_file.size:
        yield from undoing.whole_batches()
        item = next(intact_runs(log_file, undoing.position), None)
        if item is None or (isinstance(item, Damage) and item.kind is DamageKind.ZERO_TAIL):
            return
        yield from undoing.stretch(item)


class _Undoing:
    """A log while its change is undone, from a position on."""

    def __init__(self, log_file: LogFile, change: TextChange) -> None:
        self._log_file, self._change = log_file, change
        self._trials = Trials()
        self.position = 0

    def whole_batches(self) -> Iterator[bytes]:
        """Yield the intact batches, with the line endings restored if they were changed."""
        batches = ChangedBatches(self._pieces(), self._trials, has_crs=not self._change.steps)
        while (batch := batches.take()) is not None:
            yield batch
        self.position += batches.position

    def stretch(self, item: Run | Damage) -> Iterator[bytes]:
        """Yield the bytes of the next stretch: batches too large to be tried, or damaged bytes."""
        start, end = self.position, end_of(item)
        if not isinstance(item, Damage):
            self.position = end
            yield bytes(item.buffer[start - item.position : end - item.position])
            return
        yield from self._written_batches()
        if self.position > start:
            return
        pieces = self._change.undo(self._pieces(end)) if self._change.steps else self._pieces(end)
        batches = ChangedBatches(pieces, self._trials, has_crs=self._change.has_crs)
        if self._change.steps:
            self.position = end
            yield from _decode(batches)
            return
        passed = batches.skip(item.size)
        self.position = end if passed is None else start + batches.position
        yield from _rest(batches) if passed is None else (passed,)

    def _written_batches(self) -> Iterator[bytes]:
        """Yield batches whose bytes were replaced one by one, so that some may look intact at a wrong place."""
        if self._change.written is None:
            return
        batches = ChangedBatches(self._change.undo(self._pieces()), self._trials, has_crs=self._change.has_crs)
        while (batch := batches.take()) is not None:
            written = self._change.written(batches.taken)
            if self._log_file.read(self.position, len(written)) != written:
                return
            self.position += len(written)
            yield batch

    def _pieces(self, end: int | None = None) -> Iterator[bytes]:
        return pieces_of(self._log_file.read, self.position, end)


def _decode(batches: ChangedBatches) -> Iterator[bytes]:
    """Yield the batches of a stream and the bytes between them."""
    while (batch := batches.take() or batches.skip(1 << 62)) is not None:
        yield batch
    yield from _rest(batches)


def _rest(batches: ChangedBatches) -> Iterator[bytes]:
    """Yield the rest of a stream, unless it is only a line end, which programs that write text add."""
    if batches.peek(3) not in (b"\n", b"\r\n"):
        yield from batches.rest()
