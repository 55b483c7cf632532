"""The reconciliation: for each partition how every offset is accounted for."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from kseg.errors import OpenError
from kseg.export.coverage import count, damaged, intact, missing
from kseg.export.result import Result
from kseg.export.settings import OffsetRange, TableFormat
from kseg.export.tally import LostOffsets, Tally


@dataclass(slots=True)
class PartitionReport:
    """The accounts of a partition.

    from_offset, to_offset: the first offset, and the one after the last. records_in: intact records read; records_out:
    written; control, aborted, superseded, unselected: left out. undecoded: keys and values
    whose text couldn't be had. gaps: offsets that have no record, as compaction leaves
    them; holes: those gaps that lie between orders, where a missing segment would show. lost: offsets lost to damage,
    None if there was damage after which none is known. damages: where. recovered: offsets damaged in one copy and taken
    from another. bytes: of log; seconds: of all tasks. notes: which file wasn't believed about transactions, and why.
    """

    topic: str
    partition: int | None
    from_offset: int | None = None
    to_offset: int | None = None
    records_in: int = 0
    records_out: int = 0
    control: int = 0
    aborted: int = 0
    superseded: int = 0
    unselected: int = 0
    disordered: int = 0
    undecoded: int = 0
    gaps: int = 0
    lost: int | None = 0
    recovered: int = 0
    unexplained: int = 0
    open_from: int | None = None
    bytes: int = 0
    file_count: int = 0
    seconds: float = 0.0
    holes: list[tuple[int, int]] = field(default_factory=list)
    damages: list[LostOffsets] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost."""
        return self.lost == 0 and not self.unexplained

    @property
    def is_sound(self) -> bool:
        """Whether nothing was wrong either that cost no offset: bytes between batches, offsets that don't rise."""
        has_costless = any(loss.count == 0 and not loss.is_harmless for loss in self.damages)
        return self.is_whole and not self.disordered and not has_costless

    def to_json(self) -> dict[str, Any]:
        """The accounts as JSON's values."""
        return {_camel(name): value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Report:
    """The accounts of an export. Each call of `export` gives one; it is in the destination as `_kseg/report.json`.

    refused: sources that couldn't be opened or listed; nothing is known about them.
    left_alone: other runs that may be under way, whose files the call didn't remove. folders, table_format: how the
    files are to be read.
    """

    destination: str
    partitions: tuple[PartitionReport, ...]
    new_files: int
    seconds: float
    refused: tuple[OpenError, ...] = ()
    left_alone: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    table_format: TableFormat = TableFormat.PARQUET

    @property
    def has_files(self) -> bool:
        """Whether there is anything to read in the destination."""
        return any(partition.file_count for partition in self.partitions)

    @property
    def is_delta(self) -> bool:
        """Whether a Delta table's log names the files."""
        return self.table_format is TableFormat.DELTA

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost anywhere."""
        return not self.refused and all(partition.is_whole for partition in self.partitions)

    @property
    def status(self) -> int:
        """The exit status: 1 where something was lost, 2 where a source couldn't be opened at all."""
        is_sound = self.is_whole and all(partition.is_sound for partition in self.partitions)
        return max([int(not is_sound), *(error.status for error in self.refused)])

    def to_bytes(self) -> bytes:
        """The report as JSON."""
        members = {
            "destination": self.destination,
            "isWhole": self.is_whole,
            "newFiles": self.new_files,
            "seconds": round(self.seconds, 3),
            "refused": [str(error) for error in self.refused],
            "partitions": [partition.to_json() for partition in self.partitions],
        }
        return (json.dumps(members, indent=2) + "\n").encode()


def reconcile(results: Iterable[Result]) -> tuple[PartitionReport, ...]:
    """The accounts of all partitions, from what their orders say."""
    by_partition: dict[tuple[str, int | None], list[Result]] = defaultdict(list)
    for result in results:
        by_partition[result.topic, result.partition].append(result)
    keys = sorted(by_partition, key=lambda key: (key[0], -1 if key[1] is None else key[1]))
    return tuple(_of_partition(*key, by_partition[key]) for key in keys)


def _of_partition(topic: str, partition: int | None, results: list[Result]) -> PartitionReport:
    report = PartitionReport(topic, partition)
    tallies = [result.tally for result in results]
    for result, tally in zip(results, tallies, strict=True):
        report.records_in += tally.read
        report.records_out += tally.written
        report.control += tally.control
        report.aborted += tally.aborted
        report.superseded += tally.superseded
        report.unselected += tally.unselected
        report.disordered += tally.disordered
        report.undecoded += tally.undecoded
        report.gaps += tally.gaps
        report.unexplained += tally.unexplained()
        report.bytes += result.size
        report.file_count += len(result.files)
        report.seconds = round(report.seconds + result.seconds, 3)
        if result.replica not in report.copies:
            report.copies.append(result.replica)
    report.open_from = next((tally.open_from for tally in tallies if tally.open_from is not None), None)
    report.notes = list(dict.fromkeys(note for tally in tallies for note in tally.notes))
    _account_for_offsets(report, tallies)
    return report


def _account_for_offsets(report: PartitionReport, tallies: list[Tally]) -> None:
    report.damages = [loss for tally in tallies for loss in tally.losses]
    present = [part for tally in tallies for part in intact(tally)]
    taken, is_open = damaged(tallies, present)
    lost = [part for loss in taken for part in missing(loss, present)]
    lost_count = sum(map(count, lost))
    report.lost = None if is_open else lost_count
    report.recovered = sum(map(count, taken)) - lost_count
    bounds = [part for part in (*present, *lost) if part.first is not None and part.end is not None]
    if not bounds:
        return
    report.from_offset, report.to_offset = (
        min(part.first or 0 for part in bounds),
        max(part.end or 0 for part in bounds),
    )
    between = missing(OffsetRange(report.from_offset, report.to_offset), bounds)
    report.holes = [(part.first or 0, part.end or 0) for part in between]
    report.gaps += sum(end - first for first, end in report.holes)
    span = report.to_offset - report.from_offset
    report.unexplained += abs(span - (report.records_in - report.disordered + report.gaps + lost_count))


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
