"""`kseg protocol`: reads frames, prints them, and counts them by API."""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from kseg.dump.frame_lines import damage_json, damage_text, frame_json, frame_text, remark_json
from kseg.errors import UnreadableError, UsageError, plural
from kseg.layouts.programs import LogOptions
from kseg.output.columns import Column
from kseg.output.forms import write_sums
from kseg.output.progress import talk
from kseg.output.rows import write_json
from kseg.output.streams import flush_stdout, write_line, write_stdout
from kseg.output.table import aligned_lines
from kseg.protocol.capture import (
    Capture,
    CaptureError,
    HexError,
    InputForm,
    Remark,
    Replay,
    form_of,
    read_frames,
    read_hex,
)
from kseg.protocol.conversation import Frame, FrameDamage
from kseg.protocol.messages import MAX_FRAME, api_name
from kseg.reading.other_files import refusal_of_bytes
from kseg.system.files import open_regular
from kseg.text import fields

if TYPE_CHECKING:
    from kseg.redaction import Redaction


STANDARD_INPUT = "-"
_NUMBER = re.compile("[0-9]{1,9}")

Item = Frame | FrameDamage | Remark | CaptureError


@dataclass(frozen=True, slots=True)
class ProtocolOptions:
    """The input, and the shown parts."""

    form: InputForm | None = None
    ports: frozenset[int] = frozenset()
    apis: tuple[str, ...] = ()
    response_to: str | None = None
    is_count: bool = False
    print_data_log: bool = False
    is_shallow: bool = False
    max_frame: int = MAX_FRAME
    is_json: bool = False
    is_quiet: bool = False
    redaction: "Redaction | None" = None
    zone: tzinfo = UTC

    @property
    def records(self) -> LogOptions:
        """The options for record batches."""
        return LogOptions(deep=not self.is_shallow, print_data=self.print_data_log)


def report_protocol(path: Path, options: ProtocolOptions) -> int:
    """Read a file, or standard input for `-`, print its frames, and return the exit status.

    Raises OpenError or UsageError, and CaptureError or HexError if the input isn't in the given form.
    """
    wanted = frozenset(api_key_of(name) for name in options.apis)
    with _open_input(path) as stream:
        report = _FrameReport(str(path), options, wanted)
        try:
            for item in _items(Replay(stream), options, report):
                if report.is_empty and isinstance(item, FrameDamage) and options.form is None:
                    _check_kind(path)
                report.take(item)
        except (CaptureError, HexError) as error:
            error.path = str(path)
            raise
        except OSError as error:  # printing raises kseg's own errors
            raise UnreadableError(f"can't be read: {error.strerror}", path) from error
        finally:
            flush_stdout()
    return report.end()


def _check_kind(path: Path) -> None:
    """Raise UsageError for a known kind of file that doesn't begin with a frame."""
    refusal = None if str(path) == STANDARD_INPUT else refusal_of_bytes(path, "requests and responses")
    if refusal is not None:
        raise UsageError(refusal, path)


def _open_input(path: Path) -> AbstractContextManager[BinaryIO]:
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None:
            raise UsageError("standard input is closed; specify a file, or use a pipe")
        return nullcontext(sys.stdin.buffer)
    return os.fdopen(open_regular(path)[0], "rb")


def api_key_of(name: str) -> int:
    """Return the key of an API, by its name (in any case) or number. Raises UsageError if it is unknown."""
    if _NUMBER.fullmatch(name):
        return int(name)
    from kseg.formats.schemas import REQUESTS

    for key in REQUESTS:
        if (api_name(key) or "").lower() == name.lower():
            return key
    raise UsageError(f"{name!r} isn't a Kafka API; specify Produce, Fetch, Metadata, ApiVersions, … or a number")


def _api_and_version(text: str) -> tuple[int, int]:
    name, _, version = text.partition(":")
    if not _NUMBER.fullmatch(version):
        raise UsageError(f"--response-to {text}: this isn't an API and its version; specify one such as Fetch:17")
    return api_key_of(name), int(version)


def _items(replay: Replay, options: ProtocolOptions, report: "_FrameReport") -> Iterator[Item]:
    form = options.form or form_of(replay.first)
    if form is InputForm.CAPTURE:
        if options.response_to is not None:
            raise UsageError(
                "--response-to needs frames or hexadecimal text; omit it, since a capture has the requests"
            )
        capture = Capture(cast(BinaryIO, replay), ports=options.ports, max_frame=options.max_frame)
        yield from capture.items()
        report.unanswered = capture.unanswered
        if capture.unreadable > 1:
            talk(f"kseg: {report.name}: {plural(capture.unreadable, 'packet')} can't be read")
        return
    if options.ports:
        raise UsageError("--port needs a capture; omit it")
    response_to = None if options.response_to is None else _api_and_version(options.response_to)
    read = read_hex if form is InputForm.HEX else read_frames
    yield from read(replay, max_frame=options.max_frame, response_to=response_to)


@dataclass(slots=True)
class ApiCount:
    """Counts for an API in a version: frames, their bytes, and frames with errors."""

    requests: int = 0
    responses: int = 0
    size: int = 0
    problems: int = 0


@dataclass(slots=True)
class FrameCounts:
    """Counts for an input."""

    frames: int = 0
    requests: int = 0
    responses: int = 0
    problems: int = 0
    """Frames that are unreadable, or only partly readable."""
    damages: int = 0
    size: int = 0
    lost: int = 0
    apis: dict[tuple[int | None, int | None], ApiCount] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    """Frames whose bodies aren't in the schemas, by the reason."""

    def add(self, frame: Frame, *, is_wrong: bool) -> None:
        """Count a frame."""
        message = frame.message
        count = self.apis.setdefault((message.api_key, message.api_version), ApiCount())
        self.frames += 1
        self.size += frame.size
        count.size += frame.size
        if message.kind == "request":
            self.requests += 1
            count.requests += 1
        else:
            self.responses += 1
            count.responses += 1
        if message.unknown is not None:
            self.unknown[message.unknown] += 1
        if is_wrong:
            self.problems += 1
            count.problems += 1


class _FrameReport:
    """Prints items as they come, and counts them."""

    def __init__(self, name: str, options: ProtocolOptions, wanted: frozenset[int]) -> None:
        self.name = name
        self._options = options
        self._wanted = wanted
        self._tally = FrameCounts()
        self._passed_over = 0
        self._is_cut = False
        self.unanswered: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if no item was taken yet."""
        return not (self._tally.frames or self._tally.damages or self._passed_over)

    def take(self, item: Item) -> None:
        """Print a frame, or report its problem."""
        match item:
            case Frame():
                self._frame(item)
            case FrameDamage():
                self._tally.damages += 1
                self._tally.lost += item.size
                self._say(damage_json(item), damage_text(item))
            case Remark():
                peers = f"{item.peers.client} > {item.peers.server}"
                text = f"{peers}: {item.detail}; {plural(item.size, 'byte')}"
                self._say(remark_json(item.peers, item.size, item.detail), text)
            case CaptureError():
                self._is_cut = True
                item.path = self.name
                talk(f"kseg: {item}")

    def _frame(self, frame: Frame) -> None:
        if self._wanted and frame.message.api_key not in self._wanted:
            self._passed_over += 1
            return
        show = frame_json if self._options.is_json else frame_text
        text, is_wrong = show(frame, self._options.records, self._options.redaction, self._options.zone)
        self._tally.add(frame, is_wrong=is_wrong)
        if not self._options.is_count:
            write_stdout(text)

    def _say(self, line: bytes, text: str) -> None:
        if self._options.is_json and not self._options.is_count:
            write_stdout(line)
        else:
            talk(f"kseg: {self.name}: {text}")

    def end(self) -> int:
        """Print the counts, if requested, and the summary; return the exit status."""
        tally = self._tally
        if self._options.is_count:
            self._write_counts()
        for reason, count in () if self._options.is_quiet else sorted(tally.unknown.items()):
            talk(f"kseg: {self.name}: {count} {'frame' if count == 1 else 'frames'} not read: {reason}")
        if self._passed_over and not tally.frames and not self._options.is_quiet:
            asked = " ".join(f"--api {name}" for name in self._options.apis)
            talk(
                f"kseg: {self.name}: none of {plural(self._passed_over, 'frame')} matches {asked}; run with --count"
                " to list them"
            )
        if self._options.is_json and not self._options.is_quiet:
            write_json(
                {
                    "type": "summary",
                    "file": self.name,
                    "frames": tally.frames,
                    "requests": tally.requests,
                    "responses": tally.responses,
                    "unanswered": self.unanswered,
                    "problemCount": tally.problems,
                    "damageCount": tally.damages,
                    "bytes": tally.size,
                    "lost": tally.lost,
                }
            )
        elif not self._options.is_json and (tally.damages or tally.problems or not tally.frames):
            talk(
                f"kseg: {self.name}: {plural(tally.frames, 'frame')}, {tally.problems} of them can't be read"
                f" completely; {plural(tally.lost, 'byte')} in no frame"
            )
        flush_stdout()
        return int(bool(tally.damages or tally.problems or self._is_cut or not tally.frames))

    def _write_counts(self) -> None:
        rows = sorted(self._tally.apis.items(), key=lambda row: tuple(-1 if part is None else part for part in row[0]))
        if self._options.is_json:
            for (api_key, version), count in rows:
                write_json({"type": "count", **{c.name: c.value(((api_key, version), count)) for c in _COUNT_COLUMNS}})
            return
        for line in aligned_lines(_COUNT_COLUMNS, rows):
            write_line(line)
        if not self._options.is_quiet:
            write_sums("versions of APIs", _COUNT_COLUMNS, rows)


CountRow = tuple[tuple[int | None, int | None], ApiCount]

_COUNT_COLUMNS: tuple[Column[CountRow], ...] = (
    Column(fields.API_KEY, "key", lambda row: row[0][0]),
    Column(fields.API, "api", lambda row: None if row[0][0] is None else api_name(row[0][0])),
    Column(fields.API_VERSION, "version", lambda row: row[0][1]),
    Column(fields.REQUESTS, "requests", lambda row: row[1].requests),
    Column(fields.RESPONSES, "responses", lambda row: row[1].responses),
    Column(fields.BYTES, "size", lambda row: row[1].size),
    Column(fields.PROBLEM_COUNT, "problems", lambda row: row[1].problems),
)
