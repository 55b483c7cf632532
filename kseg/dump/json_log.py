"""Prints a log as JSON lines: batches, records, damages, and a summary last."""

import json
from collections.abc import Callable

from kseg.dump.log import LogSummary, Rendering, dump_log
from kseg.dump.options import DumpContext
from kseg.kernel.contract import Program
from kseg.layouts.json import json_program
from kseg.log_file import Damage, LogFile


def dump_log_as_json(path: str, context: DumpContext) -> None:
    """Prints a log file's objects; with `only`, damages and the summary go to stderr.

    Raises OpenError if it can't be opened.
    """
    from kseg.dump.decoders import control_json

    options = context.options
    only = options.only

    def say(value: dict[str, object]) -> None:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if only is None:
            context.line(text)
        else:
            context.talk(text)

    program = _program(path, context)
    with LogFile(path, options.max_bytes) as log_file:
        rendering = Rendering(program, decode_control=control_json, limit=options.max_decompressed)
        summary = dump_log(
            log_file, rendering, context.output, on_damage=_sayer(say), on_progress=context.show_progress
        )
    context.found_wrong |= bool(summary.damages)
    say(summary_object(path, summary))


def _program(path: str, context: DumpContext) -> Program:
    only = context.options.only
    return json_program(
        path, batches=only != "records", records=only != "batches", file_on_records=context.several_files
    )


def _sayer(say: Callable[[dict[str, object]], None]) -> Callable[[Damage], None]:
    return lambda damage: say(damage_object(damage))


def damage_object(damage: Damage) -> dict[str, object]:
    """A damage as JSON tells it."""
    return {
        "type": "damage",
        "kind": str(damage.kind),
        "position": damage.position,
        "size": damage.size,
        "detail": damage.detail,
        "nextOffset": damage.next_offset,
    }


def summary_object(path: str, summary: LogSummary) -> dict[str, object]:
    """The last object of a file; `bytes` is its size, `lost` how many of them no batch holds."""
    return {
        "type": "summary",
        "file": path,
        "batches": summary.batches,
        "records": summary.records,
        "bytes": summary.size,
        "lost": summary.lost,
    }
