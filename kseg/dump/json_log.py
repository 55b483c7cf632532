"""Prints a log as JSON lines: batches, records, damages, and a summary last."""

from collections.abc import Callable

from kseg.decode.record_decoders import RecordDecoder, record_decoder
from kseg.dump.log import LogSummary, Rendering
from kseg.dump.options import DumpContext
from kseg.dump.selected import note_failures, note_findings, read_log
from kseg.kernel.program import Program
from kseg.layouts.compiler import zoned_program
from kseg.layouts.json import json_program
from kseg.layouts.record_rows import fields_program
from kseg.layouts.zones import zone_table
from kseg.output.json_lines import json_line
from kseg.output.record_columns import PLACE_COLUMNS
from kseg.reading.damage import Damage


def dump_log_as_json(path: str, context: DumpContext) -> None:
    """Prints a log file's objects; with `only` or fields, damages and the summary go to stderr.

    Raises OpenError if it can't be opened.
    """
    rendering, decoder, on_damage = json_rendering(path, context)
    summary = read_log(path, context, rendering, on_damage=on_damage)
    note_findings(path, summary, context)
    note_failures(path, decoder, context)
    if context.options.has_summary and not context.is_following:
        _say(summary_object(path, summary), context)


def json_rendering(path: str, context: DumpContext) -> tuple[Rendering, RecordDecoder | None, Callable[[Damage], None]]:
    """How a log's objects are rendered, by which decoder, and what takes its damages."""
    from kseg.dump.decoders import escaped_control_json

    options = context.options
    program = zoned_program(_program(path, context), zone_table(options.zone))
    decoder = record_decoder(options.decoding, path)
    rendering = Rendering(program, decoder, escaped_control_json, limit=options.max_decompressed)
    return rendering, decoder, lambda damage: _say(damage_object(damage), context)


def _say(value: dict[str, object], context: DumpContext) -> None:
    """Prints an object beside records, or reports it if only records are printed."""
    options = context.options
    if options.only is None and not options.fields and not options.is_merged:
        context.json(value)
    else:
        context.talk(json_line(value).decode().rstrip("\n"))


def _program(path: str, context: DumpContext) -> Program:
    only = context.options.only
    if context.options.fields:
        return fields_program("json", context.options.fields, path)
    given = context.given
    places = PLACE_COLUMNS if given.are_several_partitions else PLACE_COLUMNS[:1] if given.are_several_files else ()
    return json_program(path, batches=only != "records", records=only != "batches", places=places)


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
