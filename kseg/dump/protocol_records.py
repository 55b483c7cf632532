"""Record batches inside requests and responses, as the lines and objects that `kseg dump` prints."""

from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from kseg import kernel
from kseg.decode.record_decoders import redacting_decoder
from kseg.dump.decoders import control_json
from kseg.dump.json_log import damage_object
from kseg.dump.log import new_output
from kseg.dump.redacted import redacted_slices
from kseg.formats.codes import DamageKind
from kseg.kernel.contract import ROW, START, VALID
from kseg.kernel.program import Program
from kseg.layouts.compiler import zoned_program
from kseg.layouts.json import json_program
from kseg.layouts.programs import LogOptions, documented_program
from kseg.layouts.zones import zone_table
from kseg.output.json_lines import JsonText, json_line
from kseg.protocol.records import record_slices
from kseg.reading.bodies import Slice, problem_damage
from kseg.reading.damage import Damage

if TYPE_CHECKING:
    from kseg.kernel.contract import Decode
    from kseg.redaction import Redaction


def record_lines(
    records: bytes, options: LogOptions, redaction: "Redaction | None" = None
) -> tuple[bytes, list[Damage]]:
    """The lines of batches or of their records, and what is wrong with them. Positions are within the bytes."""
    text = bytearray()
    slices = redacted_slices(record_slices(records, deep=options.deep), redaction)
    decoder = redacting_decoder(redaction, keeps_raw=False)
    damages = _render(slices, documented_program(options), decoder, text)
    return bytes(text), damages


def record_objects(
    records: bytes, *, deep: bool, redaction: "Redaction | None" = None, zone: tzinfo = UTC
) -> tuple[JsonText, list[Damage]]:
    """A list of objects as of `kseg dump -o json`, without a file's name, and what is wrong: the last of these."""
    text = bytearray()
    slices = redacted_slices(record_slices(records, deep=deep), redaction)
    decoder = redacting_decoder(redaction, keeps_raw=True)
    program = zoned_program(json_program(None, records=deep), zone_table(zone))
    damages = _render(slices, program, decoder, text)
    for damage in damages:
        text += json_line(damage_object(damage))
    return JsonText(b"[" + bytes(text).removesuffix(b"\n").replace(b"\n", b",") + b"]"), damages


def _render(
    slices: Iterator[Slice | Damage], program: Program, decoder: "Decode | None", text: bytearray
) -> list[Damage]:
    output = new_output(text.extend)
    renderer = kernel.load().Renderer(program, output, decode=decoder, decode_control=control_json)
    damages = []
    for item in slices:
        if isinstance(item, Damage):
            damages.append(item)
            continue
        run, row = item.run, item.first
        damages += [damage for _, damage in item.damages]
        bad = {run.position + run.rows[each * ROW + START] for each, _ in item.damages}
        if not run.rows[item.first * ROW + VALID]:
            damages.append(
                Damage(DamageKind.BAD_CRC, run.position + run.rows[row * ROW + START], 0, "its CRC is wrong")
            )
        while row < item.last:
            row = renderer.render(run.buffer, run.rows, row, item.last, run.position, item.bodies, item.first)
            damages += [problem_damage(each) for each in renderer.problems if each.position not in bad]
            renderer.problems.clear()
    output.flush()
    return damages
