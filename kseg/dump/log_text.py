"""Prints a log file as the tool does: its first line, its batches and records, bytes left over at its end."""

from typing import TYPE_CHECKING

from kseg.dump.log_steps import LogSummary, Rendering
from kseg.dump.options import DumpContext, DumpOptions, InternalDecoder, absolute_path, class_decoder, control_json
from kseg.dump.selected import note_failures, note_findings, read_log
from kseg.formats.codes import TAIL_KINDS, DamageKind
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.layouts import release_lines as layout
from kseg.layouts.programs import DOCUMENTED, LogOptions, documented_program, release_program
from kseg.layouts.release_lines import deprecated_class_lines
from kseg.reading.blocks import Damage
from kseg.releases import value_in
from kseg.system.placed_path import StrPath, as_path

if TYPE_CHECKING:
    from kseg.decode.record_decoders import RecordDecoder
    from kseg.kernel.contract import Decode


_INSIDE = (DamageKind.BAD_CODEC, DamageKind.BAD_BODY, DamageKind.BAD_RECORD, DamageKind.BAD_COUNT)


def dump_log_file(path: StrPath, context: DumpContext) -> None:
    """Prints a `.log`, or a metadata snapshot, which is one too. Raises OpenError if it can't be opened."""
    options = context.options
    if options.like is not None:
        for line in deprecated_class_lines(options.key_decoder_class, options.value_decoder_class, options.like):
            context.line(line)
    if not context.is_following:
        context.line(_first_line(path, options))
    rendering, decoder = text_rendering(path, options)
    summary = read_log(path, context, rendering, finish=lambda _, summary: _trailing_bytes(path, summary, context))
    if summary.gaps and options.like is not None:
        context.found.reports.gaps.setdefault(absolute_path(path), []).extend(summary.gaps)
    note_findings(path, summary, context)
    if summary.damages:
        context.found.summaries += summary_lines(path, summary)
    if isinstance(rendering.decode, InternalDecoder) and rendering.decode.failures:
        context.found.is_wrong = True
        context.found.summaries.append(_failures_line(path, rendering.decode.failures))
    note_failures(path, decoder, context)


def text_rendering(path: StrPath, options: DumpOptions) -> tuple[Rendering, "RecordDecoder | None"]:
    """How a log's lines are rendered, and by which decoder of records, if any."""
    decode = _decoder(options)
    rendering = _rendering(options, decode)
    if not rendering.is_deep or (options.key_decoder, options.value_decoder, options.redaction) == (None, None, None):
        return rendering, None
    from kseg.decode.record_decoders import record_decoder

    decoder = record_decoder(options.decoding, path)
    return rendering._replace(decode=decoder or decode), decoder


def _decoder(options: DumpOptions) -> "Decode | None":
    if options.internal_decoder is not None:
        return InternalDecoder(options.internal_decoder, options.release)
    if options.key_decoder_class is None and options.value_decoder_class is None:
        return None
    return class_decoder(options.key_decoder_class, options.value_decoder_class)


def _failures_line(path: StrPath, failures: list[tuple[int, str]]) -> str:
    offset, reason = failures[0]
    return (
        f"kseg: {path}: {len(failures)} records don't decode and are shown raw; the first at offset {offset}: {reason}"
    )


def _first_line(path: StrPath, options: DumpOptions) -> str:
    name = parse_file_name(path)
    if name.kind is FileKind.METADATA_SNAPSHOT:
        if name.base_offset is None:
            return layout.BOOTSTRAP_SNAPSHOT
        return layout.SNAPSHOT_END.format(offset=name.base_offset, epoch=name.epoch)
    line = value_in(options.like or DOCUMENTED, layout.STARTING_OFFSET)
    return line.format(offset="?" if name.base_offset is None else name.base_offset)


def _rendering(options: DumpOptions, decode: "Decode | None") -> Rendering:
    like = options.like
    decodes = decode is not None or options.key_decoder is not None or options.value_decoder is not None
    printing = options.print_data_log or (decodes and value_in(options.release, layout.DECODERS_PRINT))
    if like is None:
        deep = not options.shallow
        program = documented_program(LogOptions(deep, printing, options.skip_record_metadata))
        return Rendering(program, decode, control_json, limit=options.max_decompressed)
    program = release_program(like, LogOptions(options.deep_iteration, printing, options.skip_record_metadata))
    return Rendering(
        program,
        decode,
        control_json,
        gap_rule=value_in(like, layout.GAP_RULE),
        last_offset=value_in(like, layout.OFFSET_BEFORE_FIRST),
        limit=options.max_decompressed,
        as_kafka=True,
    )


def _trailing_bytes(path: StrPath, summary: LogSummary, context: DumpContext) -> None:
    """Bytes after the last batch, as the tool counts them."""
    if context.options.max_bytes is None and summary.damages and summary.damages[-1].kind in TAIL_KINDS:
        name = context.shown(as_path(path).name)
        context.line(layout.TRAILING_BYTES.format(size=summary.damages[-1].size, name=name))


def summary_lines(path: StrPath, summary: LogSummary) -> list[str]:
    """What was wrong in a log, for stderr: a line per damage, then the counts."""
    lines = [f"kseg: {path}: {damage_text(damage)}" for damage in summary.damages]
    lines.append(
        f"kseg: {path}: {summary.size} bytes, {summary.lost} of them lost{_inside_text(summary)};"
        f" batch count is {summary.batches}, record count is {summary.records}"
    )
    return lines


def _inside_text(summary: LogSummary) -> str:
    """Batches that are there, but whose records can't all be read: no bytes count as lost there."""
    count = len({damage.position for damage in summary.damages if damage.kind in _INSIDE})
    return f", records lost inside {count} batch{'es' if count > 1 else ''}" if count else ""


def damage_text(damage: Damage) -> str:
    """A damage in words: what, where, how much, and where good data goes on."""
    where = f"at position {damage.position}"
    lost = "" if damage.kind is DamageKind.ZERO_TAIL else " lost"
    size = f", {damage.size} bytes{lost}" if damage.size else ""
    following = "" if damage.next_offset is None else f"; next good offset {damage.next_offset}"
    return f"{damage.kind} {where}: {damage.detail}{size}{following}"
