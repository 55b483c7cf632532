"""Steps of a dump: runs of batches through the kernel's renderer, cut into lines."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from kseg import kernel
from kseg.codecs.bodies import DEFAULT_LIMIT
from kseg.formats.codes import DamageKind
from kseg.kernel.contract import SIZE, VALID, GapRule, Program, RecordProblem
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, problem_damage, with_bodies
from kseg.reading.log_file import LogFile, Run
from kseg.system.placed_path import StrPath, as_path

if TYPE_CHECKING:
    from kseg.kernel.contract import Decode, DecodeControl, Output, RecordFilter, Renderer
    from kseg.redaction import Redaction


SHOWN_FALLS = 20
"""The most places where offsets fall that are reported one by one."""
OUTPUT_SIZE = 1 << 18
"""Bytes collected before they are written."""


class LogSummary(NamedTuple):
    """What was met in a log; damages in file order. Of a selection only what was selected is counted.

    gaps: neighbouring offsets that should not follow one another, by the rendering's rule.
    """

    batches: int
    records: int
    size: int
    damages: list[Damage]
    gaps: list[tuple[int, int]]

    @property
    def lost(self) -> int:
        """Bytes that no batch holds; what a preallocated file hasn't been written to yet isn't lost."""
        return sum(damage.size for damage in self.damages if damage.kind is not DamageKind.ZERO_TAIL)

    def is_wrong(self, path: StrPath) -> bool:
        """Whether a damage in the log at a path asks for an exit status of 1."""
        return bool(self.damages) and _is_wrong(self.damages, as_path(path))

    def falls(self) -> list[str]:
        """Where offsets don't rise, in words; of a rendering that notes falls."""
        shown = [f"offsets-fall: offset {offset} after {last}" for last, offset in self.gaps[:SHOWN_FALLS]]
        more = len(self.gaps) - len(shown)
        return [*shown, f"offsets-fall: {more} more times"] if more else shown


class Rendering(NamedTuple):
    """How the kernel is to print: its program, decoders, rule for gaps in offsets; and whose way to walk the file.

    redaction: of headers; that of keys and values is their decoder's.
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

    @property
    def is_deep(self) -> bool:
        """Whether records are looked at."""
        return any(self.program.record)

    def renderer(self, output: "Output", base_offset: int | None = None) -> "Renderer":
        """What prints a file so; `base_offset` is the lowest that it should hold."""
        last_offset = self.last_offset
        if self.gap_rule is GapRule.FALLS and base_offset is not None:
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
    """A buffer that the kernel fills and `write` empties."""
    return kernel.load().Output(write, OUTPUT_SIZE)


Steps: TypeAlias = Generator[None, "bool | None", LogSummary]
"""Printing that stops after each piece of a log; sending it True ends it there, as if the rest weren't wanted."""


def finished(steps: Steps) -> LogSummary:
    """Takes all steps; what they return."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(LogSummary, end.value)


def dump_log(
    log_file: LogFile,
    rendering: Rendering,
    output: "Output",
    *,
    source: Iterator[Run | Damage] | None = None,
    on_damage: Callable[[Damage], None] | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> LogSummary:
    """Prints a log's batches and records.

    Args:
        log_file: what to read.
        rendering: how.
        output: where to.
        source: what is to be printed of the log; None for all of it.
        on_damage: called with each damage when the output has passed it.
        on_progress: called with the file's name, bytes read, and total bytes.
    """
    return finished(log_steps(log_file, rendering, output, source, on_damage, on_progress))


def log_steps(
    log_file: LogFile,
    rendering: Rendering,
    output: "Output",
    source: Iterator[Run | Damage] | None,
    on_damage: Callable[[Damage], None] | None,
    on_progress: Callable[[str, int, int], None] | None,
) -> Steps:
    """The same, step by step."""
    renderer = rendering.renderer(output, None if log_file.is_joined else log_file.base_offset)
    batches, damages = 0, list[Damage]()
    for item in _items(log_file, rendering, source):
        if renderer.is_full:
            break
        if isinstance(item, Slice):
            batches += item.last - item.first
            if on_progress is not None:
                on_progress(log_file.path.name, item.run.position, log_file.size)
        for damage in _render(renderer, log_file, item):
            if _is_cut_by_limit(damage, log_file):
                continue
            damages.append(damage)
            if on_damage is not None:
                on_damage(damage)
        if (yield):
            break
    return LogSummary(batches, renderer.records, log_file.size, damages, renderer.gaps)


def _is_cut_by_limit(damage: Damage, log_file: LogFile) -> bool:
    """Whether it ends where reading was to end, and the file goes on there: the user's limit cut it."""
    return damage.size > 0 and damage.position + damage.size == log_file.size < log_file.file_size


def _items(log_file: LogFile, rendering: Rendering, source: Iterator[Run | Damage] | None) -> Iterator[Slice | Damage]:
    runs = source
    if runs is None:
        runs = log_file.runs_as_kafka() if rendering.as_kafka else log_file.runs()
    if rendering.is_deep and rendering.redaction is not None:
        from kseg.dump.checked_batches import redacted_slices

        return redacted_slices(with_bodies(runs, log_file.stored_size, rendering.limit), rendering.redaction)
    if rendering.is_deep:
        return with_bodies(runs, log_file.stored_size, rendering.limit)
    return (Slice(item, 0, item.row_count, None) if isinstance(item, Run) else item for item in runs)


def _render(renderer: "Renderer", log_file: LogFile, piece: Slice | Damage) -> Iterator[Damage]:
    """Renders a slice; stops to give each damage when what lies before it is printed, its batch included."""
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
            renderer.problems.clear()  # that the records end where the body does is no news
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
    """Puts lines together, as the kernel writes them; the longest ones only begin."""

    def __init__(self, largest: int, on_line: Callable[[bytes], object], on_long: Callable[[bytes], object]) -> None:
        """Takes the largest size of a line, what is called with each line, and with a longer one's first piece."""
        self._largest = largest
        self._on_line = on_line
        self._on_long = on_long
        self._rest: list[bytes] = []
        self._rest_size = 0

    def take(self, piece: memoryview) -> None:
        """Takes some bytes, which may end inside a line."""
        *lines, rest = bytes(piece).split(b"\n")
        for line in lines:
            self._keep(line)
            self._end_line()
        self._keep(rest)

    def _keep(self, part: bytes) -> None:
        """Remembers a part of a line; of one that is too long only the first."""
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
