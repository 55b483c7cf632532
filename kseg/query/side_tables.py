"""The tables beside the topics' views: what kseg knows of batches, segments, partitions, groups, transactions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kseg.arrow import TIMESTAMP
from kseg.errors import OpenError
from kseg.export.filter_bounds import FilterBounds
from kseg.findings.finding_kinds import id_of_damage, status_of
from kseg.findings.findings import Finding
from kseg.formats.codes import codec_name
from kseg.formats.header_fields import PRODUCER_NAMES, camel_case
from kseg.formats.names import parse_partition_directory, plain_text
from kseg.index.headers import checked_headers
from kseg.kafka_defaults import BOOTSTRAP_SERVER, MAXIMUM_TRANSACTION_MS
from kseg.kernel.contract import MOST
from kseg.log.partition.cleaning import CleaningSettings
from kseg.log.partition.listing import ListingSettings
from kseg.log.partition.listing_rows import Row, Rows
from kseg.log.partition.log_dir import find_partitions
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.replicas import one_of_each
from kseg.log.partition.roll import RetentionSettings
from kseg.log.partition.segment_files import SegmentFiles
from kseg.log.verify.verification_plan import plan_verification
from kseg.output.listing_columns import ListingColumns
from kseg.output.row_writer import Section
from kseg.query.query_log import QueryLog
from kseg.query.row_table import RowColumn, RowTable, columns_of
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader
from kseg.selection import EVERYTHING
from kseg.times import now_ms
from kseg.views.chosen_commits import groups_with_commits_for
from kseg.views.group import Group
from kseg.views.group_columns import COMMITS, GROUPS, MEMBERS, commit_rows, member_rows
from kseg.views.groups import read_groups
from kseg.views.judged_findings import judged_findings
from kseg.views.listings import Lister
from kseg.views.transaction_columns import COORDINATOR_TRANSACTIONS, TRANSACTIONS
from kseg.views.transaction_rows import TransactionRows

_DEEP = frozenset({"records", "batches", "compressionRatio", "producerIds", "openTransactions"})
"""Columns of segments for which every header is read."""


@dataclass(frozen=True, slots=True)
class QueriedDirectories:
    """What the tables are of: paths of this machine, and which partitions of them are meant."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    log: QueryLog

    def partitions(self, bounds: FilterBounds) -> Iterator[PartitionLog]:
        """The partitions for which a condition may hold."""
        for place in find_partitions(self.paths, self.log.refuse_once, self.choice):
            if bounds.may_be_of(plain_text(place.topic or place.directory_name), place.partition):
                yield place


def tables_of(directories: QueriedDirectories) -> list[RowTable]:
    """The tables; nothing is read before a query asks."""
    return [
        RowTable("batches", _BATCH_COLUMNS, _Batches(directories)),
        *(RowTable(f"{by}s", columns_of(_listing(by)), _ListingRows(directories, by)) for by in _LISTED),
        *(
            RowTable(name, columns_of(section), _Grouped(directories, rows))
            for name, (section, rows) in _GROUP_TABLES.items()
        ),
        RowTable("transactions", columns_of(TRANSACTIONS), _Transactions(directories)),
        RowTable(
            "transactional_ids", columns_of(COORDINATOR_TRANSACTIONS, {"partitions"}), _TransactionalIds(directories)
        ),
        RowTable("findings", _FINDING_COLUMNS, _Findings(directories)),
    ]


# --- batches ----------------------------------------------------------------------------------------------------------


class BatchRow(NamedTuple):
    """A batch with its partition and segment."""

    topic: str
    partition: int | None
    segment: str
    header: BatchHeader


def _of_header(name: str) -> Callable[[BatchRow], object]:
    return attrgetter(f"header.{name}")


def _number(name: str, attribute: str) -> RowColumn:
    return RowColumn(name, pa.int64(), _of_header(attribute))


_BATCH_COLUMNS = (
    RowColumn("topic", pa.string(), attrgetter("topic")),
    RowColumn("partition", pa.int32(), attrgetter("partition")),
    RowColumn("segment", pa.string(), attrgetter("segment")),
    _number("position", "position"),
    _number("size", "size"),
    _number("baseOffset", "base_offset"),
    _number("lastOffset", "last_offset"),
    _number("count", "records_count"),
    _number("magic", "magic"),
    RowColumn("compression", pa.string(), lambda row: codec_name(row.header.codec) or str(row.header.codec)),
    _number("crc", "crc"),
    RowColumn("isValid", pa.bool_(), _of_header("is_valid")),
    _number("attributes", "attributes"),
    RowColumn("timestampType", pa.int64(), lambda row: row.header.timestamp_type.value),
    RowColumn("baseTimestamp", TIMESTAMP, _of_header("base_timestamp")),
    RowColumn("maxTimestamp", TIMESTAMP, _of_header("max_timestamp")),
    *(_number(camel_case(name), name) for name in PRODUCER_NAMES),
    _number("partitionLeaderEpoch", "partition_leader_epoch"),
    RowColumn("isTransactional", pa.bool_(), _of_header("is_transactional")),
    RowColumn("isControl", pa.bool_(), _of_header("is_control")),
)
"""Named as in `kseg dump -o json`."""


@dataclass(frozen=True, slots=True)
class _Batches:
    """All batches, also such as don't match their CRC; of several copies of a partition those of one."""

    directories: QueriedDirectories

    def __call__(self, bounds: FilterBounds, _: Sequence[str]) -> Iterator[BatchRow]:
        found = self.directories.partitions(bounds)
        for place in one_of_each(place for place in found if place.state is None):
            ends = [segment.base_offset for segment in place.segments[1:]]
            for segment, end in zip(place.segments, [*ends, MOST], strict=True):
                if segment.log is not None and bounds.may_hold(_begins_in(segment.base_offset, end)):
                    yield from self._of_segment(place, segment)

    def _of_segment(self, place: PartitionLog, segment: SegmentFiles) -> Iterator[BatchRow]:
        topic, name = plain_text(place.topic or place.directory_name), plain_text(segment.path.name)
        is_last = place.is_last(segment)
        try:
            with segment.open_log() as log_file:
                for item in checked_headers(log_file):
                    if isinstance(item, Damage):
                        self._say(item, segment.path, is_last=is_last)
                    else:
                        yield BatchRow(topic, place.partition, name, item)
        except OpenError as error:
            self.directories.log.refuse_once(error)

    def _say(self, damage: Damage, path: Path, *, is_last: bool) -> None:
        if status_of(id_of_damage(damage.kind, is_last=is_last)):
            self.directories.log.damage(f"{path}: at position {damage.position}: {damage.kind}: {damage.detail}")


def _begins_in(first: int, end: int) -> Any:
    """A batch begins in these offsets; damaged ones may lie anywhere, so that nobody should rely on theirs."""
    offset = pc.field("baseOffset")
    from_first, to_end = offset >= pa.scalar(first, pa.int64()), offset <= pa.scalar(end, pa.int64())
    return (from_first | offset.is_null()) & (to_end | offset.is_null())


# --- segments, partitions, topics -------------------------------------------------------------------------------------

_LISTED = ("segment", "partition", "topic")


def _listing(by: str) -> Section[Any]:
    return ListingColumns(by).section()


@dataclass(frozen=True, slots=True)
class _ListingRows:
    """The rows of `kseg ls --by`, by Kafka's defaults where the topics' own settings aren't known."""

    directories: QueriedDirectories
    by: str

    def __call__(self, bounds: FilterBounds, columns: Sequence[str]) -> Iterator[Row]:
        now = now_ms()
        settings = ListingSettings(
            RetentionSettings(now),
            deep=not _DEEP.isdisjoint(columns),
            cleaning=CleaningSettings(now),
        )
        lister = Lister(settings, (), EVERYTHING, self.directories.log.note)
        yield from Rows(self.by).of(lister.listings(self.directories.partitions(bounds)))


# --- groups and transactions ------------------------------------------------------------------------------------------

_GROUP_TABLES: dict[str, tuple[Section[Any], Callable[[list[Group]], Iterable[Any]]]] = {
    "groups": (GROUPS, lambda groups: groups),
    "members": (MEMBERS, member_rows),
    "commits": (COMMITS, commit_rows),
}


@dataclass(frozen=True, slots=True)
class _Grouped:
    """What `__consumer_offsets` says; nothing where that topic isn't."""

    directories: QueriedDirectories
    rows: Callable[[list[Group]], Iterable[Any]]

    def __call__(self, _: FilterBounds, __: Sequence[str]) -> Iterable[Any]:
        log = self.directories.log
        try:
            view = read_groups(self.directories.paths, None, log.refuse_once)
        except OpenError as error:
            log.note(f"no groups: {error}")
            return ()
        for unreadable in view.unreadable:
            log.damage(unreadable.line())
        for note in view.notes:
            log.note(note)
        return self.rows(list(groups_with_commits_for(self.directories.choice, view.groups)))


def _transaction_rows(directories: QueriedDirectories, bounds: FilterBounds | None) -> TransactionRows:
    """Of the partitions for which a condition may hold; the coordinators' are always among them."""
    everything = FilterBounds(None, pa.schema([]))
    found = list(directories.partitions(everything if bounds is None else bounds))
    return TransactionRows(found, None, MAXIMUM_TRANSACTION_MS, BOOTSTRAP_SERVER, only_open=False)


@dataclass(frozen=True, slots=True)
class _Transactions:
    """The rows of `kseg txns`."""

    directories: QueriedDirectories

    def __call__(self, bounds: FilterBounds, _: Sequence[str]) -> Iterator[Any]:
        reading = _transaction_rows(self.directories, bounds)
        yield from reading.rows(reading.split(self.directories.choice)[1])
        _say_notes(reading, self.directories.log)


@dataclass(frozen=True, slots=True)
class _TransactionalIds:
    """What coordinators knew of each transactional id."""

    directories: QueriedDirectories

    def __call__(self, _: FilterBounds, __: Sequence[str]) -> Iterator[Any]:
        reading = _transaction_rows(self.directories, None)
        yield from reading.coordinator_rows(reading.split(self.directories.choice)[0])
        _say_notes(reading, self.directories.log)


def _say_notes(reading: TransactionRows, log: QueryLog) -> None:
    for unreadable in reading.unreadable:
        log.damage(unreadable.line())
    for note in reading.notes(is_partial=False):
        log.note(note)


# --- findings ---------------------------------------------------------------------------------------------------------


def _place_of(finding: Finding, part: str) -> object:
    name = parse_partition_directory(finding.file if finding.file.is_dir() else finding.file.parent)
    return None if name is None else getattr(name, part)


_FINDING_COLUMNS = (
    RowColumn("id", pa.string(), attrgetter("id")),
    RowColumn("severity", pa.string(), attrgetter("severity")),
    RowColumn("topic", pa.string(), lambda row: _place_of(row, "topic")),
    RowColumn("partition", pa.int32(), lambda row: _place_of(row, "partition")),
    RowColumn("file", pa.string(), attrgetter("file")),
    RowColumn("position", pa.int64(), attrgetter("position")),
    RowColumn("firstOffset", pa.int64(), attrgetter("first_offset")),
    RowColumn("lastOffset", pa.int64(), attrgetter("last_offset")),
    RowColumn("sentence", pa.string(), attrgetter("sentence")),
)


@dataclass(frozen=True, slots=True)
class _Findings:
    """What `kseg verify` finds."""

    directories: QueriedDirectories

    def __call__(self, _: FilterBounds, __: Sequence[str]) -> Iterator[Finding]:
        log = self.directories.log
        plan = plan_verification(self.directories.paths, log.refuse_once, self.directories.choice)
        for verified in judged_findings(plan, EVERYTHING, processes=1):
            for problem in verified.problems:
                log.refuse_once(problem)
            yield from verified.findings
