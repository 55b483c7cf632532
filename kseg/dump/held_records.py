"""Records that not every copy of a partition has, as `kseg dump` prints records."""

from collections.abc import Sequence
from datetime import tzinfo
from functools import lru_cache
from pathlib import Path

from kseg import kernel
from kseg.archive.shown_paths import shown
from kseg.dump.decoders import escaped_control_json
from kseg.dump.log import new_output
from kseg.index.headers import header_of
from kseg.kernel.contract import RecordFilter
from kseg.kernel.program import Program
from kseg.layouts.compiler import zoned_program
from kseg.layouts.json import json_program
from kseg.layouts.record_rows import fields_program
from kseg.layouts.zones import zone_table
from kseg.log.diff.comparison import HeldRecords
from kseg.log.diff.sides import Copies
from kseg.output.record_columns import PLACE_COLUMNS
from kseg.reading.bodies import Slice, with_bodies

CSV_FIELDS = (*PLACE_COLUMNS, "partitionLeaderEpoch", "offset", "timestamp", "time", "key", "value", "headers")
_TEXT_FIELDS = ("offset", "time", "key", "value", "headers")
_FOR_PEOPLE = ("text", "table")


def held_text(form: str, zone: tzinfo, copies: Copies, held: HeldRecords) -> bytes:
    """The lines of some records in a form: text, json, csv, SAFE_CSV.

    In text, and for a table, a line before them says which copies have them.
    """
    paths = tuple(shown(str(copies.partitions[number].path)) for number in held.copies)
    lines: list[bytes] = []
    output = new_output(lambda part: lines.append(bytes(part)))
    epoch = header_of(held.run, 0).partition_leader_epoch
    renderer = kernel.load().Renderer(
        zoned_program(_program(form, held.log, paths, epoch, held.is_lost), zone_table(zone)),
        output,
        decode_control=escaped_control_json,
        record_filter=RecordFilter(first_offset=held.first_offset, last_offset=held.last_offset),
    )
    if form in _FOR_PEOPLE:
        output.write(_heading(copies.name, paths, held.is_lost).encode("utf-8", "surrogateescape"))
    for piece in with_bodies(iter((held.run,)), 0):
        if isinstance(piece, Slice):
            run = piece.run
            renderer.render(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, piece.first)
    output.flush()
    return b"".join(lines)


def _heading(name: str, paths: Sequence[str], is_lost: bool | None) -> str:
    return f"{name}: only in {', '.join(paths)}{', lost under the leader' if is_lost else ''}:\n"


@lru_cache
def _program(form: str, log: Path, paths: tuple[str, ...], epoch: int, is_lost: bool | None) -> Program:
    if form == "json":
        beside = {"path": paths[0], "paths": paths, "leaderEpoch": epoch}
        beside |= {} if is_lost is None else {"isLost": is_lost}
        return json_program(str(log), batches=False, places=PLACE_COLUMNS, beside=beside)
    if form in _FOR_PEOPLE:
        return fields_program("text", _TEXT_FIELDS, log)
    return fields_program(form, CSV_FIELDS, log)
