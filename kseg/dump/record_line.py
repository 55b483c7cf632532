"""The text of one record as `kseg dump` prints it, through the same renderer."""

from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg import kernel
from kseg.decode.record_decoders import redacting_decoder
from kseg.dump.checked_batches import redacted_slices
from kseg.dump.decoders import control_json
from kseg.dump.log_steps import new_output
from kseg.errors import OpenError
from kseg.kernel.contract import Program, RecordFilter
from kseg.layouts.programs import LogOptions, documented_program
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile, Run

if TYPE_CHECKING:
    from kseg.redaction import Redaction


_CHANGED = "the batch found here no longer exists, since the file changed; run the command again"


class StoredRecord(NamedTuple):
    """The place of a record: its log, position and size of its batch, its offset."""

    path: Path
    position: int
    size: int
    offset: int


def record_line(stored: StoredRecord, *, print_data: bool = False, redaction: "Redaction | None" = None) -> bytes:
    """Return the line of a record, in the documentation's layout, with its line end.

    Names of headers, keys and payloads may contain line ends of their own.

    Args:
        stored: the record's place.
        print_data: adds key and payload.
        redaction: applied to the record.

    Raises:
        OpenError: if there is no such batch any more, or the record isn't in it: the file has changed meanwhile.
    """
    program = documented_program(LogOptions(deep=True, print_data=print_data))
    return _render(stored, program, redaction, keeps_raw=False)


def record_json(stored: StoredRecord, *, zone: tzinfo = UTC, redaction: "Redaction | None" = None) -> bytes:
    """Return the record as the object of `kseg dump -o json`, times in a zone. Errors are those of record_line."""
    from kseg.layouts.record_columns import json_program
    from kseg.layouts.template import zone_table, zoned_program

    program = zoned_program(json_program(None, batches=False), zone_table(zone))
    return _render(stored, program, redaction, keeps_raw=True).removesuffix(b"\n")


def _render(stored: StoredRecord, program: Program, redaction: "Redaction | None", *, keeps_raw: bool) -> bytes:
    """Return the text that the program prints of the record. `keeps_raw`: as in RecordDecoder."""
    path, position, size, offset = stored
    with LogFile(path, position + size) as log_file:
        run = next(log_file.runs(position), None)
        if not isinstance(run, Run):
            raise OpenError(_CHANGED, path, position)
        pieces = with_bodies(iter([run._replace(row_count=1)]), size)
        (piece,) = redacted_slices(pieces, redaction)
        assert isinstance(piece, Slice)
        text = bytearray()
        output = new_output(text.extend)
        renderer = kernel.load().Renderer(
            program,
            output,
            decode=redacting_decoder(redaction, keeps_raw=keeps_raw),
            decode_control=control_json,
            record_filter=RecordFilter(offset, offset, limit=1),
        )
        renderer.render(piece.run.buffer, piece.run.rows, 0, 1, piece.run.position, piece.bodies)
        output.flush()
    if not text:
        raise OpenError(_CHANGED, path, position)
    return bytes(text)
