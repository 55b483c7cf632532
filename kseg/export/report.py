"""The report of an export: accounts, damages, files."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv

from kseg.cluster.taken import Taken
from kseg.errors import OpenError
from kseg.export.changes import ChangeCounts
from kseg.export.commit.formats import PARQUET
from kseg.export.coverage import Coverage
from kseg.export.destination import Destination
from kseg.export.results import LostOffsets, Result, Tally, find_damaged
from kseg.export.settings import NOTHING, ColumnDecoding, OffsetRange
from kseg.export.topic_runs import RunRecord
from kseg.export.undecoded import (
    NONE_ACCEPTED,
    DeadLetters,
    DecodedPart,
    UndecodedLimit,
    UndecodedPart,
    joined_parts,
    new_parts,
    undecoded_of_topics,
)
from kseg.formats.file_names import plain_text
from kseg.times import iso_time

Key = tuple[str, int | None]
NO_REMOTE: Mapping[Key, OffsetRange] = MappingProxyType({})


@dataclass(slots=True)
class PartitionReport:
    """The accounts of a partition, which count each offset from `from_offset` to below `to_offset` once.

    records_in: intact records read. gaps: offsets without a record, as compaction leaves them. lost: offsets lost to
    damage. missed: offsets that had disappeared from the log since the last run. withheld: offsets from the start of an
    open transaction on. unasked: offsets outside of every run's selection. new_lost, new_missed: offsets that no
    earlier run reported.

    topic_id: tells topics of one name apart; None if unknown. is_gone: whether the partition was deleted or its topic
    recreated; exported records stay.

    records_out: records of records_in that were written; control, aborted, superseded, unselected: those omitted.
    passed_over: further records with the offset of another one. disordered: records with an offset that isn't above all
    previous ones. undecoded: keys and values that don't decode; undecoded_records: their records. without_time: records
    with a timestamp outside of the years 1 to 9999, which is null in the table. decoded: counts of keys and values that
    were to be decoded, of each result; new_decoded: of this run, one for keys and one for values.

    has_lost_more: whether damage is followed by no known offset. recovered: offsets damaged or missing in one copy and
    taken from another. unexplained: offsets and records that don't add up.

    has_new_losses: whether this run found losses, disorder, or damage without lost offsets.

    open_from, open_since, open_producer_id: of the oldest open transaction at the end of this run. is_open_unknown:
    whether damage at the log's end may hide one. withheld_records: withheld records according to batch headers.

    holes: gaps that may be missing batches: between orders, and in logs whose offsets don't rise. remote: ranges of
    offsets that only the remote tier has. damages: the damage and its positions. bytes: of log. seconds: of all tasks.
    notes: files that were disregarded for transactions, and the reasons.
    """

    topic: str
    partition: int | None
    topic_id: str | None = None
    is_gone: bool = False
    from_offset: int | None = None
    to_offset: int | None = None
    records_in: int = 0
    gaps: int = 0
    lost: int = 0
    new_lost: int = 0
    missed: int = 0
    new_missed: int = 0
    withheld: int = 0
    unasked: int = 0
    records_out: int = 0
    control_records: int = 0
    aborted: int = 0
    superseded: int = 0
    unselected: int = 0
    passed_over: int = 0
    disordered: int = 0
    undecoded: int = 0
    undecoded_records: int = 0
    without_time: int = 0
    has_lost_more: bool = False
    recovered: int = 0
    unexplained: int = 0
    has_new_losses: bool = False
    open_from: int | None = None
    open_since: str | None = None
    open_producer_id: int | None = None
    is_open_unknown: bool = False
    withheld_records: int = 0
    bytes: int = 0
    file_count: int = 0
    seconds: float = 0.0
    holes: list[tuple[int, int]] = field(default_factory=list)
    lost_offsets: list[tuple[int, int]] = field(default_factory=list)
    missed_offsets: list[tuple[int, int]] = field(default_factory=list)
    remote: list[tuple[int, int]] = field(default_factory=list)
    damages: list[LostOffsets] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    decoded: list[DecodedPart] = field(default_factory=list)
    new_decoded: list[DecodedPart] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)

    @property
    def has_losses(self) -> bool:
        """True if offsets were lost or missed, or don't add up."""
        return bool(self.lost or self.has_lost_more or self.missed or self.unexplained)

    @property
    def is_whole(self) -> bool:
        """True if everything is exported: nothing is lost, missed, withheld, or only in the remote tier."""
        return not (self.has_losses or self.withheld or self.remote)

    @property
    def is_sound(self) -> bool:
        """True if nothing was lost, and no other problem was found, such as bytes between batches or disorder."""
        has_costless = any(loss.count == 0 and not loss.is_harmless for loss in self.damages)
        return not (self.has_losses or self.disordered or has_costless)

    def to_json(self) -> dict[str, Any]:
        """Return the accounts as JSON's values."""
        members = {own: getattr(self, name) for name, own in _MEMBERS}  # asdict would copy each value
        members["damages"] = list(map(asdict, self.damages))
        members["decoded"] = [each.to_json() for each in joined_parts(self.decoded)]
        members["newDecoded"] = [each.to_json() for each in self.new_decoded]
        return members


class CommitFacts(NamedTuple):
    """The valid state after a run.

    number: of the last commit; version: Delta's version or Iceberg's snapshot id of it. is_new: whether this run made
    it; is_first: whether the table was new. record: the run's numbers by topic. schema: the table's columns.
    """

    number: int
    version: str | None
    is_new: bool
    is_first: bool
    record: RunRecord
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Report:
    """The accounts of an export. `export` returns one, and the destination has it as `_kseg/report.json`.

    refused: sources that couldn't be opened or listed; nothing is known about them. left_alone: other runs that may be
    running, whose files this one didn't remove. folders, table_format, table: how to read the files; folders: their
    columns, each with its Arrow type; table: the path or URL. merged: the number of files that joining small ones would
    leave, and their number now. taken_up: new files that interrupted runs wrote. decode: the decoded columns with their
    planned types. taken: the chosen copies, and the omitted parts. has_milliseconds: whether the table has the column
    `timestampMs`. undecoded_limit: the most keys, and values, of a topic that may not decode in a run. dead_letters:
    None if not requested. changes: their effects on a table of database rows. commit: facts for the table of runs and
    for lineage events; None if they aren't wanted. newest_file: a file of the last commit, which has all columns; None
    if that has no new file.
    """

    destination: str
    partitions: tuple[PartitionReport, ...]
    new_files: int
    seconds: float
    refused: tuple[OpenError, ...] = ()
    left_alone: tuple[str, ...] = ()
    folders: tuple[tuple[str, str], ...] = ()
    table_format: str = PARQUET
    merged: tuple[int, int] | None = None
    table: str = ""
    taken_up: int = 0
    decode: ColumnDecoding = NOTHING
    taken: Taken | None = None
    has_milliseconds: bool = True
    undecoded_limit: UndecodedLimit = NONE_ACCEPTED
    dead_letters: DeadLetters | None = None
    changes: ChangeCounts | None = None
    commit: CommitFacts | None = None
    newest_file: str | None = None

    @property
    def has_files(self) -> bool:
        """True if the destination has anything to read."""
        return any(partition.file_count for partition in self.partitions)

    @property
    def is_whole(self) -> bool:
        """True if everything is exported."""
        return not self.refused and all(partition.is_whole for partition in self.partitions)

    @property
    def status(self) -> int:
        """The exit status: 1 if this run found a loss or too much that doesn't decode, 2 if a source can't be opened.

        Losses that earlier runs reported don't count: an hourly job would fail forever after its first loss.
        """
        has_new_losses = any(partition.has_new_losses for partition in self.partitions)
        lacks_letters = self.dead_letters is not None and self.dead_letters.has_new_losses
        is_bad = has_new_losses or lacks_letters or bool(self.beyond_limit())
        return max([int(is_bad), *(error.status for error in self.refused)])

    def status_of(self, topic: str) -> int:
        """Return the part of the exit status that is due to a topic's records."""
        has_losses = any(each.has_new_losses for each in self.partitions if each.topic == topic)
        lacks_letters = self.dead_letters is not None and self.dead_letters.has_new_losses
        return int(has_losses or lacks_letters or any(each.topic == topic for each in self.beyond_limit()))

    def undecoded_parts(self) -> list[UndecodedPart]:
        """Return the keys and values of topics that don't decode."""
        return undecoded_of_topics((each.topic, each.partition, joined_parts(each.decoded)) for each in self.partitions)

    def beyond_limit(self) -> list[UndecodedPart]:
        """Return the keys and values of topics of which this run found more that don't decode than are accepted."""
        new = undecoded_of_topics((each.topic, each.partition, each.new_decoded) for each in self.partitions)
        return [each for each in new if self.undecoded_limit.is_exceeded(each.counts)]

    def to_bytes(self) -> bytes:
        """Return the report as JSON."""
        members = {
            "destination": self.destination,
            "isWhole": self.is_whole,
            "newFiles": self.new_files,
            "takenUp": self.taken_up,
            "seconds": round(self.seconds, 3),
            "refused": [str(error) for error in self.refused],
            "taken": None if self.taken is None else self.taken.to_json(),
            "partitions": [partition.to_json() for partition in self.partitions],
        }
        return (json.dumps(members, indent=2) + "\n").encode()


def reconcile(
    kept: Iterable[Result],
    new: Iterable[Result] = (),
    remote: Mapping[Key, OffsetRange] = NO_REMOTE,
    gone: Collection[tuple[str, int | None, str | None]] = (),
) -> tuple[PartitionReport, ...]:
    """Return the accounts of all partitions from orders' results, one per topic for recreated topics.

    Args:
        kept: results of earlier runs; for topics of the same name, in the topics' order.
        new: results of this run; withheld offsets come from these alone.
        remote: offsets that only the remote tier has.
        gone: deleted partitions, by topic, partition and topic's id.
    """
    by_partition: dict[Key, dict[str | None, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in kept:
        if result.tally.open_from is not None:
            result = replace(result, tally=replace(result.tally, open_from=None, withheld=None))
        by_partition[result.topic, result.partition][result.topic_id].append(result)
    for result in new:
        if result.says_something or result.tally.notes or result.tally.open_from is not None:
            by_partition[result.topic, result.partition][result.topic_id].append(result)
    keys = sorted({*by_partition, *remote}, key=lambda key: (key[0], -1 if key[1] is None else key[1]))
    return tuple(part for key in keys for part in _of_topics(key, by_partition[key], remote.get(key), gone))


def compare_reports(now: Iterable[PartitionReport], before: Iterable[PartitionReport]) -> tuple[PartitionReport, ...]:
    """Return the accounts, with their changes since those of an earlier run."""
    known = {(part.topic, part.partition, part.topic_id): part for part in before}
    found = []
    for part in now:
        topic, partition = part.topic, part.partition
        old = known.get((topic, partition, part.topic_id)) or known.get((topic, partition, None))
        old = old or PartitionReport(topic, partition)
        found.append(_compare(part, old))
    return tuple(found)


def _compare(part: PartitionReport, old: PartitionReport) -> PartitionReport:
    told = _ranges([*old.lost_offsets, *old.missed_offsets])
    new_lost, new_missed = (_ranges(each).without(told).count for each in (part.lost_offsets, part.missed_offsets))
    has_more = part.has_lost_more and not old.has_lost_more
    has_more |= part.unexplained > old.unexplained or part.disordered > old.disordered
    has_more |= any(loss.count == 0 and not loss.is_harmless and loss not in old.damages for loss in part.damages)
    has_new_losses = bool(new_lost or new_missed or has_more)
    return replace(
        part,
        new_lost=new_lost,
        new_missed=new_missed,
        has_new_losses=has_new_losses,
        new_decoded=new_parts(part.decoded, old.decoded),
    )


def _of_topics(
    key: Key,
    results: dict[str | None, list[Result]],
    remote: OffsetRange | None,
    gone: Collection[tuple[str, int | None, str | None]],
) -> Iterator[PartitionReport]:
    """Yield the accounts of a partition, one per topic that had the name in turn; the last one includes `remote`."""
    ids = list(results) or [None]
    topic, partition = key
    for topic_id in ids:
        is_last = topic_id == ids[-1]
        is_gone = not is_last or (topic, partition, topic_id) in gone
        report = PartitionReport(topic, partition, topic_id, is_gone=is_gone)
        yield _fill(report, results.get(topic_id, []), remote if is_last else None)


def _fill(report: PartitionReport, results: list[Result], remote: OffsetRange | None) -> PartitionReport:
    tallies = [result.tally for result in results]
    for result, tally in zip(results, tallies, strict=True):
        report.records_in += tally.read
        report.records_out += tally.written
        report.control_records += tally.control
        report.aborted += tally.aborted
        report.superseded += tally.superseded
        report.unselected += tally.unselected
        report.passed_over += tally.passed_over
        report.disordered += tally.disordered
        report.undecoded += tally.undecoded
        report.undecoded_records += tally.undecoded_records
        report.decoded += tally.decoded
        report.without_time += tally.without_time
        report.gaps += tally.gaps
        report.unexplained += tally.count_unexplained()
        report.bytes += result.size
        report.seconds = round(report.seconds + result.seconds, 3)
        if result.replica not in report.copies:
            report.copies.append(result.replica)
    report.file_count = len({file.attempt for result in results for file in result.files})
    report.file_count += sum(result.earlier_files for result in results)
    report.remarks = list(dict.fromkeys(note for tally in tallies for note in tally.notes))
    _account_for_offsets(report, results, remote)
    return report


def _account_for_offsets(report: PartitionReport, results: list[Result], remote: OffsetRange | None) -> None:
    tallies = [result.tally for result in results]
    report.damages = [loss for tally in tallies for loss in tally.losses]
    present = Coverage.join([tally.intact for tally in tallies])
    taken, report.has_lost_more = find_damaged(tallies, present)
    lost = taken.without(present)
    gone = Coverage.join([tally.missing_offsets for tally in tallies]).union()
    missing_since = gone.without(present + lost)
    withheld = _withheld(report, tallies, present + lost + missing_since)
    report.lost, report.missed, report.withheld = lost.count, missing_since.count, withheld.count
    report.recovered = taken.count + gone.count - report.lost - report.missed
    report.lost_offsets, report.missed_offsets = lost.pairs(), missing_since.pairs()
    report.remote = [] if remote is None else present.missing(remote).pairs()
    known = present + lost + missing_since + withheld
    hull = known.hull
    if hull is None:
        return
    report.from_offset, report.to_offset = hull.first, hull.end
    between = known.missing(hull)
    unasked = between.without(Coverage(tuple(result.wanted for result in results)))
    holes = between.without(unasked)
    report.holes, report.unasked = holes.pairs(), unasked.count
    report.gaps += holes.count
    counted = report.records_in + report.gaps + report.lost + report.missed + report.withheld + report.unasked
    report.unexplained += abs(hull.count - counted)


def _withheld(report: PartitionReport, tallies: list[Tally], present: Coverage) -> Coverage:
    """Return the withheld offsets that no other copy has, and add the reasons to the report."""
    found = next((tally.withheld for tally in tallies if tally.withheld is not None), None)
    if found is None:
        return Coverage()
    parts = present.missing(OffsetRange(found.first_offset, found.end_offset))
    if not parts.ranges:
        return parts
    report.open_from = found.first_offset
    report.open_producer_id, report.withheld_records = found.producer_id, found.records
    report.is_open_unknown = found.is_unknown
    report.open_since = None if found.since_ms is None else iso_time(found.since_ms)
    return parts


def _ranges(pairs: Iterable[tuple[int, int]]) -> Coverage:
    return Coverage(tuple(OffsetRange(*pair) for pair in pairs))


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


_MEMBERS = tuple((each.name, _camel(each.name)) for each in fields(PartitionReport))
"""Attributes of a partition's accounts, and their names in JSON."""


REPORT_NAME = "_kseg/report.json"
NAME = "_kseg/damages.csv"
"""Damages, as CSV rather than Parquet, so that readers of `**/*.parquet` get only records."""
SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("segment", pa.string()),
        pa.field("position", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("firstOffset", pa.int64()),
        pa.field("endOffset", pa.int64()),
    ]
)
"""Columns of a damage: its place, its kind, and the lost offsets from the first to before the end, null if unknown."""


def publish(report: Report, place: Destination) -> None:
    """Write the files that describe the valid state."""
    place.replace(REPORT_NAME, report.to_bytes())
    damaged = (part for part in report.partitions if part.damages)
    place.replace(NAME, to_csv(damage_rows(part.topic, part.partition, part.damages) for part in damaged))


def damage_rows(topic: str, partition: int | None, losses: Iterable[LostOffsets]) -> pa.RecordBatch:
    """Return a partition's damages."""
    rows = [
        (
            *(plain_text(topic), partition, plain_text(loss.segment), loss.position, loss.size),
            *(plain_text(str(loss.kind)), plain_text(loss.detail), _offset(loss.first), _offset(loss.end)),
        )
        for loss in losses
    ]
    columns = zip(*rows, strict=True) if rows else ([] for _ in SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _offset(offset: int | None) -> int | None:
    """Return an offset that Kafka can have, else None: sums from damaged headers may be larger."""
    return offset if offset is not None and -1 << 63 <= offset < 1 << 63 else None


def to_csv(batches: Iterable[pa.RecordBatch]) -> bytes:
    """Return a table as CSV: a line of column names, then quoted texts; nulls are empty."""
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.Table.from_batches(batches, SCHEMA), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
