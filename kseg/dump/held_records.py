"""The lines of records that only some copies of a partition have, as `kseg diff --records` prints them."""

import json
from collections.abc import Sequence
from datetime import tzinfo
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kseg import kernel
from kseg.dump.decoders import escaped_control_json
from kseg.dump.log_steps import new_output
from kseg.index.header_scan import header_of
from kseg.kernel.contract import Program, RecordFilter
from kseg.layouts.record_columns import PLACE_COLUMNS, SAFE_CSV, TIME_FIELDS, fields_program, json_program
from kseg.layouts.template import zone_table, zoned_program
from kseg.output.csv_style import CsvStyle
from kseg.output.rows import CsvWriter
from kseg.reading.bodies import Slice, with_bodies

if TYPE_CHECKING:
    from kseg.diff.comparison import HeldRecords
    from kseg.diff.differences import Copies

CSV_FIELDS = (*PLACE_COLUMNS, "partitionLeaderEpoch", "offset", "timestamp", "time", "key", "value", "headers")
_TEXT_FIELDS = ("offset", "time", "key", "value", "headers")
_FOR_PEOPLE = ("text", "table")


def held_text(form: str, csv: CsvStyle, zone: tzinfo, copies: "Copies", held: "HeldRecords") -> bytes:
    """Return the lines of records that only some copies have, in a form: text, json, csv.

    In text, and for a table, a line before them names these copies.
    """
    is_for_people = form in _FOR_PEOPLE
    if is_for_people:
        form = "text"
    elif form == "csv":
        form = "table" if csv.needs_cells else SAFE_CSV if csv.is_safe else form
    paths = tuple(str(copies.partitions[number].path) for number in held.copies)
    lines: list[bytes] = []
    output = new_output(lambda part: lines.append(bytes(part)))
    epoch = header_of(held.run, 0).partition_leader_epoch
    renderer = kernel.load().Renderer(
        zoned_program(_program(form, held.log, paths, epoch, held.is_lost), zone_table(zone)),
        output,
        decode_control=escaped_control_json,
        record_filter=RecordFilter(first_offset=held.first_offset, last_offset=held.last_offset),
    )
    if is_for_people:
        output.write(_heading(copies.name, paths, held.is_lost).encode("utf-8", "surrogateescape"))
    for piece in with_bodies(iter((held.run,)), 0):
        if isinstance(piece, Slice):
            run = piece.run
            renderer.render(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, piece.first)
    output.flush()
    return _sheet(b"".join(lines), csv, zone) if csv.needs_cells else b"".join(lines)


def _sheet(objects: bytes, csv: CsvStyle, zone: tzinfo) -> bytes:
    """Return the rows of CSV for records given as lines of JSON."""
    from kseg.dump.record_forms import sheet_cell

    rows: list[bytes] = []
    writer = CsvWriter(CSV_FIELDS, csv, dict.fromkeys(TIME_FIELDS, zone), rows.append)
    rows.clear()  # the report of differences has written the names
    for line in objects.splitlines():
        members = json.loads(line)
        writer.write(sheet_cell(members, name) for name in CSV_FIELDS)
    return b"".join(rows)


def _heading(name: str, paths: Sequence[str], is_lost: bool | None) -> str:
    return f"{name}: only in {', '.join(paths)}{', lost under the leader' if is_lost else ''}:\n"


@lru_cache
def _program(form: str, log: Path, paths: tuple[str, ...], epoch: int, is_lost: bool | None) -> Program:
    if form == "json":
        beside = {"path": paths[0], "paths": paths, "leaderEpoch": epoch}
        beside |= {} if is_lost is None else {"isLost": is_lost}
        return json_program(log, batches=False, places=PLACE_COLUMNS, beside=beside)
    return fields_program(form, _TEXT_FIELDS if form == "text" else CSV_FIELDS, log)
