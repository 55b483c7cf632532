"""Forms in which a dump prints files: text, JSON, CSV, tables, scripts of kcat."""

import os
from typing import TYPE_CHECKING, NamedTuple

from kseg.dump.log_steps import LogSummary, Rendering
from kseg.dump.printing import Printing
from kseg.errors import OpenError
from kseg.formats.file_names import FileKind
from kseg.layouts.template import IGNORING
from kseg.reading.blocks import Damage
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from kseg.decode.record_decoders import RecordDecoder
    from kseg.dump.reader import DirectoryReader
    from kseg.kernel.contract import Output


def require_file(path: StrPath) -> None:
    """Raise OpenError if a file isn't there."""
    try:
        os.stat(path)  # noqa: PTH116  an empty path is none, to pathlib it is the current directory
    except OSError as error:
        raise OpenError(f"can't be opened: {error.strerror}", path) from error


class LogRendering(NamedTuple):
    """How the records of a log are rendered, and by which decoder, if any."""

    rendering: Rendering
    decoder: "RecordDecoder | None" = None


class Form:
    """One form of output: how logs and other files are printed in it.

    tells_damages_later: as lines for stderr; else they are printed in their place.
    """

    tells_damages_later = True

    def __init__(self, printing: Printing) -> None:
        self.printing = printing
        self.options, self.problems = printing.options, printing.problems

    def rendering(self, path: StrPath) -> LogRendering:
        """Return how the records of a log are rendered."""
        raise NotImplementedError

    def print_file(self, path: StrPath, kind: FileKind) -> None:
        """Print a file that isn't a log. Raises OpenError if it can't be opened."""
        raise NotImplementedError

    def begin_log(self, path: StrPath, reader: "DirectoryReader") -> "Output":
        """Print what stands before a log; return where its records are to be rendered to."""
        return self.printing.output

    def pass_over(self, path: StrPath) -> None:
        """Say that a file of an unknown kind isn't printed. Raises OpenError if it isn't there."""
        require_file(path)
        self.printing.talk.say(IGNORING.format(path=path))

    def merged_heading(self, path: StrPath) -> bytes:
        """Return what stands before each record of a log among those of others."""
        return b""

    def merged_output(self) -> "Output":
        """Print what stands before the records of several logs; return where these go."""
        return self.printing.output

    def damage(self, damage: Damage) -> None:
        """Take a damage when the output has passed it."""

    def finish_log(self, path: StrPath, reader: "DirectoryReader", summary: LogSummary) -> None:
        """Print what stands after a log."""

    def note_problems(self, path: StrPath, log: LogRendering, summary: LogSummary) -> None:
        """Note the problems of a log."""
        if not log.rendering.is_deep:
            self.problems.unread_batches += summary.batches
        self.problems.is_wrong |= summary.is_wrong(path)
        if self.options.like is None and summary.gaps:
            from kseg.findings.kinds import status_of

            self.problems.is_wrong |= bool(status_of("offsets-fall"))
            self.problems.lines += [f"kseg: {path}: {line}" for line in summary.falls()]
        if self.tells_damages_later:
            self.problems.lines += summary.lines(path)
        if log.decoder is not None:
            self._note_failures(path, log.decoder)

    def _note_failures(self, path: StrPath, decoder: "RecordDecoder") -> None:
        """Note what doesn't decode: wrong data if that is asked for, or in an internal topic named as one."""
        self.problems.lines += decoder.summary_lines(path)
        if decoder.first_failure is not None:
            is_named = self.options.internal_decoder is not None
            self.problems.is_wrong |= self.options.is_strict or (is_named and decoder.has_failed)

    def finish(self) -> None:
        """Print what is still to be printed."""
