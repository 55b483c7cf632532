"""Dead letters of an export: Parquet files with the records whose key or value doesn't decode.

They are an export of their own with its own manifest, made after the table's commit. It reads only ranges of offsets in
which the table's accounts have such records, and which it hasn't covered yet. So if a run is killed between the two
commits, the next one adds what is missing, and nothing is added twice.
"""

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.export.commit.manifest import Key
from kseg.export.commit.order import Execute
from kseg.export.commit.protocol import NO_TABLE
from kseg.export.destination import overlap
from kseg.export.planning import Export
from kseg.export.report import PartitionReport, Report
from kseg.export.rounds import Progress
from kseg.export.run import run_export
from kseg.export.settings import FileOptions, KeptRaw, LogSelection, OffsetRange
from kseg.export.undecoded import DeadLetters, UndecodedLimit

NO_LIMIT = UndecodedLimit(100, is_share=True)


class _Place(NamedTuple):
    """The destination of dead letters. is_used: whether an earlier run has committed there."""

    url: str
    is_used: bool


def run_with_dead_letters(export: Export, execute: Execute, progress: Progress | None = None) -> Report:
    """Export, then add the table's undecoded records to the dead letters, if these are wanted.

    The table keeps these records. Raises the errors of `run_export`; those about the destination of the dead letters
    before anything is written.
    """
    if export.dead_letters is None:
        return run_export(export, execute, progress)
    letters = _export_of_letters(export, export.dead_letters)
    place = _check_place(export, letters)
    report = run_export(export, execute, progress)
    ranges = _undecoded_ranges(report.partitions)
    if not ranges and not place.is_used:
        return replace(report, dead_letters=DeadLetters(place.url, 0, 0, added={}))
    read = replace(letters.read, decode=replace(letters.read.decode, columns=report.decode.columns))
    selection = LogSelection(export.selection.partitions, offsets_of=ranges or _no_ranges())
    added = run_export(replace(letters, read=read, selection=selection), execute, progress)
    return replace(report, dead_letters=_compare(place, report, added))


def _export_of_letters(export: Export, destination: str) -> Export:
    """Return the export of undecoded records; its columns and ranges are known after the table's."""
    decode = replace(export.read.decode, keep_raw=KeptRaw.ALL, is_flat=False, drops_raw=False)
    files = FileOptions(
        target_size=export.files.target_size,
        row_group_size=export.files.row_group_size,
        compression=export.files.compression,
    )
    return replace(
        export,
        destination=destination,
        read=replace(export.read, decode=decode, undecoded_only=True),
        files=files,
        table=NO_TABLE,
        undecoded_limit=NO_LIMIT,
        dead_letters=None,
        runs_table=None,
    )


def _check_place(export: Export, letters: Export) -> _Place:
    """Return the place of the dead letters.

    Raises the errors about it: its contents, or a table or source within or around it.
    """
    commits = letters.commits()
    commits.place.keep_outside([os.fspath(each) for each in export.sources])
    if overlap(letters.destination, export.destination):
        raise UsageError(
            "is within the table's directory, or around it; specify --dead-letter another directory", commits.place.url
        )
    state = commits.read_state(letters.read, letters.files, overwrite=letters.overwrite)
    return _Place(commits.place.url, state.previous.number > 0)


def _undecoded_ranges(partitions: Iterable[PartitionReport]) -> dict[Key, OffsetRange]:
    """Return the offsets from the first undecoded record of each partition to the last one."""
    ranges: dict[Key, OffsetRange] = {}
    for partition in partitions:
        for each in partition.decoded:
            if each.first_offset is None or each.last_offset is None:
                continue
            key = (partition.topic, partition.partition)
            known = ranges.get(key, OffsetRange(each.first_offset, each.last_offset))
            ranges[key] = OffsetRange(
                min(known.first or 0, each.first_offset), max(known.end or 0, each.last_offset + 1)
            )
    return ranges


def _no_ranges() -> dict[Key, OffsetRange]:
    """Return ranges of no partition: an empty mapping would mean all offsets."""
    return {("", None): OffsetRange(0, 0)}


def _compare(place: _Place, report: Report, added: Report) -> DeadLetters:
    """Return the dead letters of the table's partitions; the destination may have those of other tables."""
    keys = {(each.topic, each.partition) for each in report.partitions}
    own = [each for each in added.partitions if (each.topic, each.partition) in keys]
    records = sum(each.records_out for each in own)
    undecoded = sum(each.undecoded_records for each in report.partitions)
    has_news = added.new_files > 0 or not place.is_used or any(each.has_new_losses for each in own)
    is_new = has_news or any(each.undecoded for partition in report.partitions for each in partition.new_decoded)
    facts = added.commit
    new = None if facts is None else {each.topic: each.rows for each in facts.record.topics}
    return DeadLetters(place.url, records, undecoded, records < undecoded and is_new, new)
