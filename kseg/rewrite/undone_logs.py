"""Copies of logs that were changed as text, as they were before: salvage reads these."""

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
from kseg.reading.log_file import LogFile
from kseg.reading.text_changes import TextChange, find_change, pieces_of
from kseg.rewrite.salvage_extents import intact_runs
from kseg.system.new_directory import WriteError, scratch_directory
from kseg.system.terminal_text import forget, show_as


class UndoneLog(NamedTuple):
    """A log that was changed as text, what was changed, and a copy of it from before."""

    log: Path
    what: str
    copy: Path


class UndoneLogs:
    """Makes such copies, in a directory that goes with it; a context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._directory: Path | None = None
        self._count = 0

    def __enter__(self) -> "UndoneLogs":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def copy_of(self, log_file: LogFile, position: int) -> UndoneLog | None:
        """A copy from before the change that is found at a position; None if nothing undoes it.

        Raises WriteError if it can't be written, or has no room in TMPDIR.
        """
        change = find_change(log_file.read, position)
        if change is None:
            return None
        try:
            copy = self._place_of(log_file.path)
            with copy.open("xb") as target:
                target.writelines(_undone(log_file, change))
        except OSError as error:
            problem = f"has no room in TMPDIR to be undone: {error.strerror}; set TMPDIR to another place"
            raise WriteError(problem, log_file.path) from error
        except OpenError as error:
            raise WriteError(error.message, log_file.path) from error
        modified = log_file.path.stat().st_mtime_ns
        os.utime(copy, ns=(modified, modified))
        return UndoneLog(log_file.path, change.what, copy)

    def _place_of(self, log: Path) -> Path:
        """Where a copy goes; it is shown as the log."""
        if self._directory is None:
            self._directory = self._stack.enter_context(scratch_directory())
        self._count += 1
        copy = self._directory / str(self._count) / log.name
        copy.parent.mkdir()
        self._stack.callback(forget, str(copy))
        show_as(str(copy), str(log))
        return copy


def _undone(log_file: LogFile, change: TextChange) -> Iterator[bytes]:
    """A log's bytes as they were before a change: intact batches as they are, what lies between them undone.

    Up to where only zeros are left, or very many of them begin.
    """
    position, trials = 0, Trials()
    while position < log_file.size:
        batches = ChangedBatches(pieces_of(log_file.read, position), trials, has_crs=not change.steps)
        while (batch := batches.take()) is not None:
            yield batch
        position += batches.position
        item = next(intact_runs(log_file, position), None)
        if item is None or (isinstance(item, Damage) and item.kind is DamageKind.ZERO_TAIL):
            return
        if not isinstance(item, Damage):  # batches that are too large to be tried
            end = end_of(item)
            yield bytes(item.buffer[position - item.position : end - item.position])
            position = end
            continue
        end = position + item.size
        if change.written is not None:
            known = position
            decoded = ChangedBatches(change.decoded(pieces_of(log_file.read, position)), trials, has_crs=change.has_crs)
            while (batch := decoded.take()) is not None:
                written = change.written(decoded.taken)
                if log_file.read(known, len(written)) != written:
                    break
                yield batch
                known += len(written)
            if known > position:
                position = known
                continue
        if change.steps:
            pieces = change.decoded(pieces_of(log_file.read, position, end))
            yield from _decoded(ChangedBatches(pieces, trials, has_crs=change.has_crs))
            position = end
            continue
        batches = ChangedBatches(pieces_of(log_file.read, position, end), trials, has_crs=True)
        passed = batches.skip(item.size)
        if passed is not None:
            yield passed
            position += batches.position
            continue
        yield from _rest(batches)
        position = end


def _decoded(batches: ChangedBatches) -> Iterator[bytes]:
    """The batches of a stream, and what lies between and after them."""
    while (batch := batches.take() or batches.skip(1 << 62)) is not None:
        yield batch
    yield from _rest(batches)


def _rest(batches: ChangedBatches) -> Iterator[bytes]:
    """What is left of a stream, but a line end alone: programs that write text end it so."""
    if batches.peek(3) not in (b"\n", b"\r\n"):
        yield from batches.rest()
