"""A log through the kernel's renderer: runs of batches become lines, damages are reported in their place."""

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kseg import kernel
from kseg.codecs.limits import DEFAULT_LIMIT
from kseg.errors import plural
from kseg.formats.codes import DamageKind
from kseg.kernel.contract import SIZE, VALID, GapRule, Program, RecordProblem
from kseg.named_tuple import NamedTuple
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, problem_damage, with_bodies
from kseg.reading.log_file import LogFile, Run
from kseg.system.placed_path import StrPath, as_path

if TYPE_CHECKING:
    from kseg.kernel.contract import Decode, DecodeControl, RecordFilter
    from kseg.kernel.entry_points import Output, Renderer
    from kseg.redaction import Redaction


SHOWN_FALLS = 20
"""Most falls of offsets that are reported one by one."""
OUTPUT_SIZE = 1 << 18
"""Bytes collected before they are written."""


_INSIDE = (DamageKind.BAD_CODEC, DamageKind.BAD_BODY, DamageKind.BAD_RECORD, DamageKind.BAD_COUNT)


def damage_text(damage: Damage) -> str:
    """Return a damage in words: its kind, place and size, and where good data continues."""
    where = f"at position {damage.position}"
    lost = "" if damage.kind is DamageKind.ZERO_TAIL else " lost"
    size = f", {plural(damage.size, 'byte')}{lost}" if damage.size else ""
    following = "" if damage.next_offset is None else f"; next good offset {damage.next_offset}"
    return f"{damage.kind} {where}: {damage.detail}{size}{following}"


class LogSummary(NamedTuple):
    """Counts and damages of a log, in file order. With a selection only selected data counts.

    gaps: neighbouring offsets that should not follow one another, by the rendering's rule. invalid_size: bytes of
    batches with a wrong CRC, which are printed, but which no consumer gets. records: None if they weren't read, since
    headers of v0 and v1 don't have a count.
    """

    batches: int
    records: int | None
    size: int
    damages: list[Damage]
    gaps: list[tuple[int, int]]
    invalid_size: int = 0

    @property
    def lost(self) -> int:
        """Bytes that no valid batch holds; what a preallocated file hasn't been written to yet isn't lost."""
        outside = sum(damage.size for damage in self.damages if damage.kind is not DamageKind.ZERO_TAIL)
        return outside + self.invalid_size

    def followed_by(self, rest: "LogSummary") -> "LogSummary":
        """Return the summary of a log from those of its first part and of the rest; the size is that of the rest."""
        records = None if self.records is None or rest.records is None else self.records + rest.records
        return LogSummary(
            self.batches + rest.batches,
            records,
            rest.size,
            self.damages + rest.damages,
            self.gaps + rest.gaps,
            self.invalid_size + rest.invalid_size,
        )

    def is_wrong(self, path: StrPath) -> bool:
        """Return True if a damage in the log at a path requires an exit status of 1."""
        return bool(self.damages) and _is_wrong(self.damages, as_path(path))

    def lines(self, path: StrPath) -> list[str]:
        """Return the damages of the log for stderr: one line each, then the counts; no line without damage."""
        if not self.damages:
            return []
        lines = [f"kseg: {path}: {damage_text(damage)}" for damage in self.damages]
        records = "" if self.records is None else f", record count is {self.records}"
        lines.append(
            f"kseg: {path}: {plural(self.size, 'byte')}, {self.lost} of them lost{self._inside_text()};"
            f" batch count is {self.batches}{records}"
        )
        return lines

    def _inside_text(self) -> str:
        """Intact batches with unreadable records; their bytes don't count as lost."""
        invalid = {damage.position for damage in self.damages if damage.kind is DamageKind.BAD_CRC}
        count = len({damage.position for damage in self.damages if damage.kind in _INSIDE} - invalid)
        return f", records lost inside {count} batch{'es' if count > 1 else ''}" if count else ""

    def falls(self) -> list[str]:
        """Return the places where offsets don't rise, in words, if the rendering notes them."""
        shown = [f"offsets-fall: offset {offset} after {last}" for last, offset in self.gaps[:SHOWN_FALLS]]
        more = len(self.gaps) - len(shown)
        return [*shown, f"offsets-fall: {plural(more, 'more time')}"] if more else shown


class Rendering(NamedTuple):
    """Settings of the kernel's renderer: its program, decoders, rule for gaps in offsets, and walk of the file.

    redaction: of headers; the decoder redacts keys and values. is_continued: `last_offset` is the one before a part
    of a file that begins inside it. in_threads: whether bodies may be decompressed in threads.
    """

    program: Program
    decode: "Decode | None" = None
    decode_control: "DecodeControl | None" = None
    gap_rule: GapRule = GapRule.FALLS
    last_offset: int | None = None
    limit: int = DEFAULT_LIMIT
    as_kafka: bool = False
    record_filter: "RecordFilter | None" = None
    redaction: "Redaction | None" = None
    is_continued: bool = False
    in_threads: bool = True

    @property
    def is_deep(self) -> bool:
        """True if records are read."""
        return any(self.program.record)

    def renderer(self, output: "Output", base_offset: int | None = None) -> "Renderer":
        """Return the renderer of a file; `base_offset` is the lowest offset that it should hold."""
        last_offset = self.last_offset
        if self.gap_rule is GapRule.FALLS and base_offset is not None and not self.is_continued:
            last_offset = base_offset - 1
        return kernel.load().Renderer(
            self.program,
            output,
            decode=self.decode,
            decode_control=self.decode_control,
            gap_rule=self.gap_rule,
            last_offset=last_offset,
            record_filter=self.record_filter,
        )


def new_output(write: Callable[[memoryview], object]) -> "Output":
    """Return a buffer that the kernel fills and `write` empties."""
    return kernel.load().Output(write, OUTPUT_SIZE)


class RenderedLog:
    """A log whose batches and records are printed piece by piece.

    summary: of the printed part.
    """

    def __init__(
        self,
        log_file: LogFile,
        rendering: Rendering,
        output: "Output",
        source: Iterator[Run | Damage] | None = None,
        show_progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        """Take the log, without printing.

        Args:
            log_file: the log.
            rendering: the form of its records.
            output: the destination.
            source: the parts to print; None for the complete log.
            show_progress: called with the file's name, bytes read, and total bytes.
        """
        self._log_file, self._show_progress = log_file, show_progress
        self._items = rendered_items(log_file, rendering, source)
        self._is_deep = rendering.is_deep
        self._renderer = rendering.renderer(output, None if log_file.is_joined else log_file.base_offset)
        self._batches = 0
        self._damages: list[Damage] = []
        self._invalid_size = 0

    def events(self) -> Iterator[Damage | None]:
        """Print piece after piece; yield each damage at its place in the output, and None after a piece."""
        for item in self._items:
            if self._renderer.is_full:
                return
            if isinstance(item, Slice):
                self._batches += item.last - item.first
                if self._show_progress is not None:
                    self._show_progress(self._log_file.path.name, item.run.position, self._log_file.size)
            for damage in render_item(self._renderer, self._log_file, item):
                if not _is_cut_by_limit(damage, self._log_file):
                    self._damages.append(damage)
                    if isinstance(item, Slice) and damage.kind is DamageKind.BAD_CRC:
                        self._invalid_size += item.run.rows[SIZE]
                    yield damage
            yield None

    @property
    def summary(self) -> "LogSummary":
        """The summary of the printed part."""
        return LogSummary(
            self._batches,
            self._renderer.records if self._is_deep else None,
            self._log_file.size,
            self._damages,
            self._renderer.gaps,
            self._invalid_size,
        )


def render_log(log_file: LogFile, rendering: Rendering, output: "Output") -> LogSummary:
    """Print all of the batches of a log and records."""
    rendered = RenderedLog(log_file, rendering, output)
    for _ in rendered.events():
        pass  # the summary has the damages
    return rendered.summary


def _is_cut_by_limit(damage: Damage, log_file: LogFile) -> bool:
    """Return True if the user's limit caused the damage: reading ended there, and the file continues."""
    return damage.size > 0 and damage.position + damage.size == log_file.size < log_file.file_size


def walk_log(log_file: LogFile, rendering: Rendering, start: int = 0) -> Iterator[Run | Damage]:
    """Yield the runs and damages of a log from a batch's position on, as the rendering reads them."""
    return log_file.runs_as_kafka(start) if rendering.as_kafka else log_file.runs(start)


def rendered_items(
    log_file: LogFile, rendering: Rendering, source: Iterator[Run | Damage] | None
) -> Iterator[Slice | Damage]:
    """Yield the items of a source, or of the complete log, with decompressed bodies if records are read."""
    runs = walk_log(log_file, rendering) if source is None else source
    if rendering.is_deep:
        slices = with_bodies(runs, log_file.stored_size, rendering.limit, in_threads=rendering.in_threads)
        if rendering.redaction is None:
            return slices
        from kseg.dump.checked_batches import redacted_slices

        return redacted_slices(slices, rendering.redaction)
    return (Slice(item, 0, item.row_count, None) if isinstance(item, Run) else item for item in runs)


def render_item(renderer: "Renderer", log_file: LogFile, piece: Slice | Damage) -> Iterator[Damage]:
    """Render a slice; yield each damage after the data before it, including its batch, is printed."""
    if isinstance(piece, Damage):
        yield piece
        return
    run, row, last, bodies, damages, _ = piece
    if not run.rows[VALID]:
        renderer.render(run.buffer, run.rows, row, last, run.position, bodies, row)
        yield log_file.crc_damage(run.position, run.rows[SIZE])
        yield from (problem_damage(problem) for problem in _take_problems(renderer))
        return
    waiting = deque(damages)  # in the order of their rows
    while row < last and not renderer.is_full:
        end = waiting[0][0] + 1 if waiting else last
        row = renderer.render(run.buffer, run.rows, row, end, run.position, bodies, piece.first)
        if waiting and row > waiting[0][0]:
            yield waiting.popleft()[1]
            renderer.problems.clear()  # records that end with the body are expected
        yield from (problem_damage(problem) for problem in _take_problems(renderer))


def _take_problems(renderer: "Renderer") -> list[RecordProblem]:
    problems = list(renderer.problems)
    renderer.problems.clear()
    return problems


def _is_wrong(damages: list[Damage], log: Path) -> bool:
    from kseg.findings.kinds import id_of_damage, status_of
    from kseg.log.partition import was_closed

    is_last = not any(damage.kind is DamageKind.ZERO_TAIL for damage in damages) or not was_closed(log)
    return any(status_of(id_of_damage(damage.kind, is_last=is_last)) for damage in damages)


class WholeLines:
    """Joins the kernel's output into complete lines; of very long lines only the beginning."""

    def __init__(self, largest: int, on_line: Callable[[bytes], object], on_long: Callable[[bytes], object]) -> None:
        """Take the largest size of a line, and two functions: for lines, and for the first piece of a longer line."""
        self._largest = largest
        self._on_line = on_line
        self._on_long = on_long
        self._rest: list[bytes] = []
        self._rest_size = 0

    def take(self, piece: memoryview) -> None:
        """Take some bytes, which may end inside a line."""
        *lines, rest = bytes(piece).split(b"\n")
        for line in lines:
            self._keep(line)
            self._end_line()
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        """Keep a part of a line; only the first part if the line is too long."""
        self._rest_size += len(part)
        if self._rest_size <= self._largest or not self._rest:
            self._rest.append(part)
        else:
            del self._rest[1:]

    def _end_line(self) -> None:
        if self._rest_size <= self._largest:
            self._on_line(b"".join(self._rest))
        else:
            self._on_long(self._rest[0])
        self._rest.clear()
        self._rest_size = 0
