"""Logs that are followed as they grow, and selected records that are missing."""

import time
from collections.abc import Callable, Sequence
from datetime import tzinfo
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kseg import kernel
from kseg.diff.comparison import HeldRecords
from kseg.diff.differences import Copies
from kseg.dump.log_steps import new_output
from kseg.dump.options import escaped_control_json
from kseg.errors import OpenError
from kseg.index.header_scan import header_of
from kseg.kernel.contract import Program, RecordFilter
from kseg.layouts.record_columns import PLACE_COLUMNS, fields_program, json_program
from kseg.layouts.template import zone_table, zoned_program
from kseg.log.segments import read_tail
from kseg.output.streams import flush_stdout
from kseg.reading.bodies import Slice, with_bodies
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from kseg.dump.options import DumpContext, Part


PAUSE = 0.2
"""Seconds between two looks at the files."""


class _Followed:
    """A directory that is followed: the segment that is read, and up to where.

    It begins where its part was printed to, or where the last segment ended then.
    """

    def __init__(self, part: "Part") -> None:
        self.part = part
        segments = part.selector.partition.segments
        self._base_offset = segments[-1].base_offset if segments else -1
        self._position = 0
        if segments and part.last_path == str(segments[-1].path):
            self._position = part.end
        elif segments and part.selector.selection.tail is not None:
            last = read_tail(segments[-1]).last
            self._position = 0 if last is None else last.end

    def poll(self, context: "DumpContext", dump_one: Callable[[StrPath, "DumpContext"], None]) -> bool:
        """Prints what is new; gives whether anything was."""
        # Listed before the current one is read: when there is a next one, the current one doesn't grow any more.
        try:
            self.part.selector.list_again()
        except OpenError:
            return False
        has_new = False
        for segment in self.part.selector.partition.segments:
            if segment.base_offset < self._base_offset or self.part.is_full:
                continue
            if segment.base_offset > self._base_offset:
                self._base_offset, self._position = segment.base_offset, 0
            if segment.path.stat().st_size > self._position:
                has_new |= self._print(segment.path, context, dump_one)
        return has_new

    def _print(self, path: Path, context: "DumpContext", dump_one: Callable[[StrPath, "DumpContext"], None]) -> bool:
        before = self._position
        self.part.start = before
        context.part = self.part
        try:
            dump_one(path, context)
        finally:
            context.part = None
        self._position = max(self.part.end, before)
        return self._position > before


def follow(parts: list["Part"], context: "DumpContext", dump_one: Callable[[StrPath, "DumpContext"], None]) -> None:
    """Prints what is appended to the logs of some directories, until their limit is reached, or for ever."""
    followed = [_Followed(part) for part in parts]
    context.is_following = True
    while any(not each.part.is_full for each in followed):
        has_new = []
        for each in followed:
            has_new.append(not each.part.is_full and each.poll(context, dump_one))
            for other in followed:
                other.part.left = each.part.left
        context.output.flush()
        flush_stdout()
        if not any(has_new):
            time.sleep(PAUSE)


CSV_FIELDS = (*PLACE_COLUMNS, "partitionLeaderEpoch", "offset", "timestamp", "time", "key", "value", "headers")
_TEXT_FIELDS = ("offset", "time", "key", "value", "headers")
_FOR_PEOPLE = ("text", "table")


def held_text(form: str, zone: tzinfo, copies: Copies, held: HeldRecords) -> bytes:
    """The lines of some records in a form: text, json, csv, SAFE_CSV.

    In text, and for a table, a line before them says which copies have them.
    """
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
        return json_program(log, batches=False, places=PLACE_COLUMNS, beside=beside)
    if form in _FOR_PEOPLE:
        return fields_program("text", _TEXT_FIELDS, log)
    return fields_program(form, CSV_FIELDS, log)
