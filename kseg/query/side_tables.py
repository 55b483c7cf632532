"""Tables next to records: segments, batches, transactions, groups, and values of internal topics."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import pass_over
from kseg.cluster.listing import Lister, Turns
from kseg.cluster.now import settle_now
from kseg.cluster.replicas import PartitionReplicas
from kseg.coordinators.groups import groups_with_commits_for, read_groups
from kseg.coordinators.members import Group
from kseg.coordinators.transactions import judged_findings
from kseg.decode.internal_records import parse_framed
from kseg.errors import OpenError
from kseg.export.columns.column_types import list_of
from kseg.export.settings import COLUMNS
from kseg.findings.findings import Finding
from kseg.findings.kinds import id_of_damage, status_of
from kseg.formats.codes import BOOTSTRAP_SERVER, MAXIMUM_TRANSACTION_MS, VERSION
from kseg.formats.file_names import plain_text
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_KEYS,
    OFFSETS_VALUES_TO_4_0,
    REMOTE_LOG_RECORDS,
    SHARE_STATE_KEYS,
    SHARE_STATE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    Field,
    MessageSchema,
    message_schema,
)
from kseg.index.header_scan import checked_headers, walk_headers
from kseg.kernel.contract import MOST
from kseg.log.cleaner import CleaningSettings
from kseg.log.listing import ListingSettings
from kseg.log.listing_rows import Row, Rows
from kseg.log.partition import PartitionLog
from kseg.log.segments import RetentionSettings, SegmentFiles
from kseg.log.selection import EVERYTHING, PartitionChoice
from kseg.output.table import Section
from kseg.query.database import QueryLog
from kseg.query.filter_bounds import FilterBounds
from kseg.query.record_scan import RowTable, columns_of
from kseg.reading.blocks import Damage
from kseg.text.groups import COMMITS, GROUPS, MEMBERS, commit_rows, member_rows
from kseg.text.listing import ListingColumns
from kseg.text.query import BATCHES, FINDINGS, BatchRow
from kseg.text.transactions import COORDINATOR_TRANSACTIONS, TRANSACTIONS, TransactionRows
from kseg.verify.verify import plan_verification

_DEEP = frozenset({"records", "batches", "compressionRatio", "producerIds", "openTransactions"})
"""Columns of segments that require reading every header."""


@dataclass(frozen=True, slots=True)
class QueriedDirectories:
    """The directories of the tables: local paths, and the chosen partitions in them.

    is_quick: whether CRCs of batches stay unchecked.
    """

    paths: tuple[Path, ...]
    choice: PartitionChoice
    log: QueryLog
    is_quick: bool = False

    def partitions(self, bounds: FilterBounds) -> Iterator[PartitionLog]:
        """Yield the partitions for which a condition may hold."""
        for place in Cluster(self.paths, self.log.refuse_once).directories(self.choice):
            if bounds.may_be_of(plain_text(place.topic or place.directory_name), place.partition):
                yield place

    def replicas(self, bounds: FilterBounds) -> Iterator[PartitionReplicas[PartitionLog]]:
        """Yield the partitions for which a condition may hold, with their chosen copies."""
        for each in Cluster(self.paths, self.log.refuse_once).partitions(self.choice):
            if bounds.may_be_of(plain_text(each.topic), each.partition):
                yield each


def tables_of(directories: QueriedDirectories) -> list[RowTable]:
    """Return the tables without reading any data."""
    return [
        RowTable("batches", columns_of(BATCHES), _Batches(directories)),
        *(RowTable(f"{by}s", columns_of(_listing(by)), _ListingRows(directories, by)) for by in _LISTED),
        *(
            RowTable(name, columns_of(section), _GroupRows(directories, rows))
            for name, (section, rows) in _GROUP_TABLES.items()
        ),
        RowTable("transactions", columns_of(TRANSACTIONS), _Transactions(directories)),
        RowTable("transactional_ids", columns_of(COORDINATOR_TRANSACTIONS), _TransactionalIds(directories)),
        RowTable("findings", columns_of(FINDINGS), _Findings(directories)),
    ]


# --- batches ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Batches:
    """All batches, even those with a wrong CRC; of several copies of a partition, the batches of one."""

    directories: QueriedDirectories

    def __call__(self, bounds: FilterBounds, _: Sequence[str]) -> Iterator[BatchRow]:
        for place in (each.best for each in self.directories.replicas(bounds) if each.copies):
            ends = [*(segment.base_offset for segment in place.segments[1:]), MOST]
            for segment, end in zip(place.segments, ends, strict=False):  # without segments, MOST is left over
                if segment.log is not None and bounds.may_hold(_begins_in(segment.base_offset, end)):
                    yield from self._of_segment(place, segment)

    def _of_segment(self, place: PartitionLog, segment: SegmentFiles) -> Iterator[BatchRow]:
        topic, name = plain_text(place.topic or place.directory_name), plain_text(segment.path.name)
        is_last = place.is_last(segment)
        try:
            with segment.open_log() as log_file:
                for item in (walk_headers if self.directories.is_quick else checked_headers)(log_file):
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
    """Return a condition for batches that begin in these offsets; damaged ones may have any offset."""
    offset = pc.field("baseOffset")
    from_first, to_end = offset >= pa.scalar(first, pa.int64()), offset <= pa.scalar(end, pa.int64())
    return (from_first | offset.is_null()) & (to_end | offset.is_null())


# --- segments, partitions, topics -------------------------------------------------------------------------------------

_LISTED = ("segment", "partition", "topic")


def _listing(by: str) -> Section[Any]:
    return ListingColumns(by).section()


@dataclass(frozen=True, slots=True)
class _ListingRows:
    """The rows of `kseg ls --by`, with Kafka's defaults for unknown settings of topics."""

    directories: QueriedDirectories
    by: str

    def __call__(self, bounds: FilterBounds, columns: Sequence[str]) -> Iterator[Row]:
        cluster = Cluster(self.directories.paths, pass_over)
        now = settle_now(None, cluster).ms
        settings = ListingSettings(
            RetentionSettings(now),
            deep=not _DEEP.isdisjoint(columns),
            cleaning=CleaningSettings(now),
        )
        lister = Lister(settings, (), EVERYTHING, Turns(self.directories.log.note), cluster)
        yield from Rows(self.by).of(lister.listings(self.directories.partitions(bounds)))


# --- groups and transactions ------------------------------------------------------------------------------------------

_GROUP_TABLES: dict[str, tuple[Section[Any], Callable[[list[Group]], Iterable[Any]]]] = {
    "groups": (GROUPS, lambda groups: groups),
    "members": (MEMBERS, member_rows),
    "commits": (COMMITS, commit_rows),
}


@dataclass(frozen=True, slots=True)
class _GroupRows:
    """The groups in `__consumer_offsets`; empty without that topic."""

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
    """Return the transactions of partitions for which a condition may hold, and of the coordinators' partitions."""
    everything = FilterBounds(None, pa.schema([]))
    found = directories.replicas(everything if bounds is None else bounds)
    log_dirs = Cluster(directories.paths, pass_over).metadata_dirs()
    return TransactionRows(found, None, MAXIMUM_TRANSACTION_MS, BOOTSTRAP_SERVER, only_open=False, log_dirs=log_dirs)


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
    """The table of transactional ids and their coordinator state."""

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


@dataclass(frozen=True, slots=True)
class _Findings:
    """The findings of `kseg verify`."""

    directories: QueriedDirectories

    def __call__(self, _: FilterBounds, __: Sequence[str]) -> Iterator[Finding]:
        log = self.directories.log
        plan = plan_verification(self.directories.paths, log.refuse_once, self.directories.choice)
        for verified in judged_findings(plan, EVERYTHING, processes=1):
            for problem in verified.problems:
                log.refuse_once(problem)
            yield from verified.findings


Messages = Mapping[int, MessageSchema]
_PREFIX_SIZE = 2
"""Bytes of the number before a coordinator's message: the key's type, or the value's version."""
MOST_ELEMENTS = 1 << 20
"""The most elements of one record's lists: each becomes an object of hundreds of bytes."""
_SCALARS: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "string": pa.string(),
    "uuid": pa.string(),
    "bytes": pa.binary(),
    "records": pa.binary(),
    "float64": pa.float64(),
}
"""Arrow types of Kafka's types; all others are integers."""
_EMBEDDED = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}
"""Fields of classic groups' members that contain a message of the consumer protocol."""
_CONSUMERS = "consumer"


class _ReadMessage(NamedTuple):
    """A message: its type's name, its version, its fields."""

    type: str
    version: int
    fields: Fields


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """The format of a topic's keys and values; keys is None without keys."""

    values: Messages
    keys: Messages | None = None

    def fields(self) -> tuple[pa.Field, ...]:
        """Return the columns that it adds."""
        key = [] if self.keys is None else [pa.field(COLUMNS["key"], _shape(tuple(self.keys.values())).type)]
        return (*key, pa.field(COLUMNS["value"], self._value_shape.type))

    @property
    def _value_shape(self) -> "_Shape":
        return _shape(tuple(self.values.values()))

    def add_columns(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Return the batch with some of these columns, null for unreadable records."""
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        readers: dict[str, Callable[[bytes | None, bytes | None], _ReadMessage | None]] = {
            COLUMNS["key"]: lambda key, _: self._key(key),
            COLUMNS["value"]: self._value,
        }
        for field in self.fields():
            if field.name in names:
                found = map(readers[field.name], keys, values)
                renamed = self._value_shape.renamed if field.name == COLUMNS["value"] else {}
                rows = [None if read is None else _row(read, renamed) for read in found]
                batch = batch.append_column(field, pa.array(rows, field.type))
        return batch

    def _key(self, key: bytes | None) -> _ReadMessage | None:
        if key is None or len(key) < _PREFIX_SIZE or self.keys is None:
            return None
        message = self.keys.get(VERSION.read(key))
        return None if message is None else _message(message, key, message.name.removesuffix("Key"))

    def _value(self, key: bytes | None, value: bytes | None) -> _ReadMessage | None:
        if value is None:
            return None
        if self.keys is None:
            with suppress(MessageError):
                framed = parse_framed(self.values, value)
                return _ReadMessage(framed.message.name, framed.version, framed.fields)
            return None
        if key is None or min(len(key), len(value)) < _PREFIX_SIZE:
            return None
        message = self.values.get(VERSION.read(key))
        return None if message is None else _message(message, value, message.name.removesuffix("Value"))


def _message(message: MessageSchema, data: bytes, name: str) -> _ReadMessage | None:
    version = VERSION.read(data)
    with suppress(MessageError):
        parsed = parse_message(message, version, data, _PREFIX_SIZE, most_elements=MOST_ELEMENTS)
        return _ReadMessage(name, version, parsed.value)
    return None


def _row(read: _ReadMessage, renamed: Mapping[tuple[str, str], str]) -> Fields:
    fields = {renamed.get((read.type, name), name): value for name, value in read.fields.items()}
    if read.type == "GroupMetadata" and "members" in fields:
        is_consumers = fields["protocolType"] == _CONSUMERS
        members = [_with_embedded(member, is_read=is_consumers) for member in fields["members"]]
        fields = {**fields, "members": members}
    return {**_plain(fields), "type": read.type, "version": read.version}


def _with_embedded(member: Fields, *, is_read: bool) -> Fields:
    return {**member, **{name: _parse_embedded(name, member[name]) if is_read else None for name in _EMBEDDED}}


def _parse_embedded(name: str, data: bytes) -> Fields | None:
    read = None if len(data) < _PREFIX_SIZE else _message(message_schema(_EMBEDDED[name]), data, name)
    return None if read is None else {"version": read.version, **_plain(read.fields)}


def _plain(value: Any) -> Any:
    """Return text with invalid Unicode escaped: tables have no other text."""
    match value:
        case str() if not value.isascii():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
    return value


# --- types ------------------------------------------------------------------------------------------------------------


class _Shape(NamedTuple):
    """The struct of several messages; it renames fields whose type differs from an earlier message's."""

    type: pa.DataType
    renamed: Mapping[tuple[str, str], str]


@lru_cache
def _shape(messages: tuple[MessageSchema, ...]) -> _Shape:
    merged: dict[str, pa.DataType] = {"type": pa.string(), "version": pa.int64()}
    renamed: dict[tuple[str, str], str] = {}
    for message in messages:
        kind = message.name.removesuffix("Value")
        for field in message.fields:
            try:
                _merge(merged, field.name, _type(field))
            except _UnlikeError:
                renamed[kind, field.name] = f"{field.name}Of{kind}"
                _merge(merged, renamed[kind, field.name], _type(field))
    return _Shape(pa.struct(list(merged.items())), renamed)


class _UnlikeError(Exception):
    """The error of types without a common type for their values."""


def _merge(merged: dict[str, pa.DataType], name: str, kind: pa.DataType) -> None:
    merged[name] = kind if name not in merged else _common_type(merged[name], kind)


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the common type of two fields that have the same name."""
    if one == other:
        return one
    if pa.types.is_list(one) and pa.types.is_list(other):
        return list_of(_common_type(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        merged: dict[str, pa.DataType] = {}
        for field in (*one, *other):
            _merge(merged, field.name, field.type)
        return pa.struct(list(merged.items()))
    raise _UnlikeError


def _type(field: Field) -> pa.DataType:
    if field.type.startswith("[]"):
        return list_of(_type(field._replace(type=field.type[2:])))
    if field.fields:
        return pa.struct([pa.field(inner.name, _type(inner)) for inner in field.fields])
    if field.name in _EMBEDDED and field.type == "bytes":
        own = [pa.field(inner.name, _type(inner)) for inner in message_schema(_EMBEDDED[field.name]).fields]
        return pa.struct([pa.field("version", pa.int64()), *own])
    return _SCALARS.get(field.type, pa.int64())


INTERNAL_TOPICS: dict[str, InternalTopic] = {
    "__consumer_offsets": InternalTopic(OFFSETS_VALUES_TO_4_0, OFFSETS_KEYS),
    "__transaction_state": InternalTopic(TRANSACTION_VALUES, TRANSACTION_KEYS),
    "__share_group_state": InternalTopic(SHARE_STATE_VALUES, SHARE_STATE_KEYS),
    "__cluster_metadata": InternalTopic(METADATA_RECORDS),
    "__remote_log_metadata": InternalTopic(REMOTE_LOG_RECORDS),
}
