"""Prints logs: runs of batches, with their bodies, through the kernel's renderer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kseg import kernel
from kseg.bodies import with_bodies
from kseg.codecs import DEFAULT_LIMIT
from kseg.formats.codes import DamageKind
from kseg.kernel.contract import ROW, VALID, Problem, Program, RecordProblem
from kseg.log_file import Damage, Run, LogFile

if TYPE_CHECKING:
    from kseg.kernel.contract import Decode, DecodeControl, Output

OUTPUT_SIZE = 1 << 18
"""Bytes collected before they are written."""

PROBLEMS: dict[Problem, tuple[DamageKind, str]] = {
    Problem.BAD_RECORD: (DamageKind.BAD_RECORD, "record {n} can't be read, at byte {at} of the records"),
    Problem.BAD_COUNT: (DamageKind.BAD_COUNT, "the records end after {n}, at byte {at}; the header counts others"),
    Problem.BAD_CONTROL: (DamageKind.BAD_RECORD, "control record {n} has no key or value of its kind"),
}


@dataclass(slots=True)
class LogSummary:
    """What was met in a log."""

    batches: int = 0
    records: int = 0
    size: int = 0
    damages: list[Damage] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Bytes that no batch holds."""
        return sum(damage.size for damage in self.damages)


@dataclass(frozen=True, slots=True)
class Rendering:
    """How the kernel is to print: its program, decoders, rule for gaps in offsets; and whose way to walk the file."""

    program: Program
    decode: "Decode | None" = None
    decode_control: "DecodeControl | None" = None
    gap_rule: int = 0
    last_offset: int | None = None
    limit: int = DEFAULT_LIMIT
    as_kafka: bool = False


def new_output(write: Callable[[memoryview], object]) -> "Output":
    """A buffer that the kernel fills and `write` empties."""
    return kernel.load().Output(write, OUTPUT_SIZE)


def dump_log(log_file: LogFile, rendering: Rendering, output: "Output") -> LogSummary:
    """Prints a log's batches and records; damage is in the summary, in file order."""
    renderer = kernel.load().Renderer(
        rendering.program,
        output,
        rendering.decode,
        rendering.decode_control,
        rendering.gap_rule,
        rendering.last_offset,
    )
    summary = LogSummary(size=log_file.size)
    runs = log_file.runs_as_kafka() if rendering.as_kafka else log_file.runs()
    is_deep = any(rendering.program.record)
    for item in with_bodies(runs, log_file.size, rendering.limit) if is_deep else runs:
        if isinstance(item, Damage):
            summary.damages.append(item)
            continue
        if isinstance(item, Run):
            run, first, last, bodies = item, 0, item.count, None
        else:
            run, first, last, bodies, damages = item
            summary.damages.extend(damages)
        if not run.rows[VALID]:
            summary.damages.append(log_file.crc_damage(run.position, run.rows[ROW - 2]))
        renderer.render(run.buffer, run.rows, first, last, run.position, bodies)
        summary.batches += last - first
        if renderer.problems:
            summary.damages.extend(map(problem_damage, renderer.problems))
            renderer.problems.clear()
    summary.records = renderer.records
    summary.gaps = renderer.gaps
    return summary


def problem_damage(problem: RecordProblem) -> Damage:
    """The damage of a batch whose records can't all be read."""
    kind, detail = PROBLEMS[problem.problem]
    return Damage(kind, problem.position, 0, detail.format(n=problem.records_read, at=problem.body_position))
