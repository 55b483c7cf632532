"""Options of the data source, checked, pushed filters, and where a query begins and ends in each partition."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote

from kseg.cluster.copies import Copies, PartitionCopy, copies_of, find_replicas, require_replicas
from kseg.cluster.directories import Refuse
from kseg.cluster.lookup import look_up_in_copies
from kseg.cluster.replicas import Copy, CopyStatus, PartitionReplicas
from kseg.errors import KsegError, UsageError
from kseg.export.settings import MIB, Isolation, Mode, OffsetRange, ReadOptions
from kseg.output.progress import talk

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from kseg.export.plan import FilterBounds


SPLIT_SIZE = 128 * MIB
PARTITION_CHOICES = ("subscribe", "subscribePattern", "assign")
DEFAULTS: dict[str, str | None] = {
    "path": None,
    "paths": None,
    "subscribe": None,
    "subscribePattern": None,
    "assign": None,
    "startingOffsets": None,
    "startingOffsetsByTimestamp": None,
    "startingTimestamp": None,
    "startingOffsetsByTimestampStrategy": "error",
    "endingOffsets": None,
    "endingOffsetsByTimestamp": None,
    "endingTimestamp": None,
    "includeHeaders": "false",
    "includeBatch": "false",
    "includeControl": "false",
    "failOnDataLoss": "true",
    "mode": None,
    "minPartitions": "1",
    "maxOffsetsPerTrigger": None,
    "minOffsetsPerTrigger": None,
    "maxTriggerDelay": "15m",
    "kafka.isolation.level": "read_uncommitted",
    "splitSize": str(SPLIT_SIZE),
    "pushdown": "false",
    "table": "records",
}
"""Each option and its default."""
STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""Those that a batch query doesn't use."""
BATCH_ONLY = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
"""Those that a stream refuses, as the connector's does."""
_UNUSED = (
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "maxRecordsPerPartition",
)
"""Options of the connector that ask nothing of files."""
_CONSUMERS = "kafka."
"""Begins the names of the connector's settings for Kafka's consumer."""
_KNOWN = {name.lower(): name for name in (*DEFAULTS, *_UNUSED)}


def parse_options(given: Mapping[str, str]) -> dict[str, str | None]:
    """The options with their defaults, by names in small letters.

    Raises UsageError if they are unknown, or contradict each other.
    """
    own = {name.lower(): value for name, value in given.items()}
    for name in own:
        if name not in _KNOWN and not name.startswith(_CONSUMERS):
            raise UsageError(_unknown(name))
    if len([name for name in PARTITION_CHOICES if name.lower() in own]) > 1:
        raise UsageError(f"only one of {', '.join(PARTITION_CHOICES)} can be given")
    return {name.lower(): own.get(name.lower(), default) for name, default in DEFAULTS.items()}


def unused(given: Iterable[str], also: Iterable[str]) -> list[str]:
    """The names of options that ask nothing of files, and of those in `also`."""
    useful = {name.lower() for name in DEFAULTS} - {name.lower() for name in also}
    return sorted(_KNOWN.get(name.lower(), name) for name in given if name.lower() not in useful)


def _unknown(name: str) -> str:
    near = get_close_matches(name, _KNOWN, 1)
    hint = f"did you mean {_KNOWN[near[0]]}?" if near else f"it has {', '.join(DEFAULTS)}"
    return f"the data source has no option {name!r}; {hint}"


_COMPARISONS = {
    "EqualTo": "equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqual": "greater_equal",
    "LessThan": "less",
    "LessThanOrEqual": "less_equal",
}
"""Pyspark's filters by name, since old releases have none; and Arrow's functions that mean the same, nulls included."""
_SEARCHES = {"StringStartsWith": "starts_with", "StringEndsWith": "ends_with", "StringContains": "match_substring"}
_VALUES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "binary": (bytes, bytearray),
    "int32": int,
    "int64": int,
    "bool": bool,
    "timestamp[us, tz=UTC]": datetime,
}
"""The Python types that filters' values must have: Arrow would cut a number to fit."""


@dataclass
class PushedFilters:
    """The filters taken of a query. They hold for each row that is read; what they exclude isn't read, if possible.

    schema: the columns of the rows that are filtered. has_offsets: whether these are records, and no other table.
    """

    schema: "pa.Schema"
    has_offsets: bool = True
    taken: list["Filter"] = field(default_factory=list)

    def take(self, wanted: "Filter") -> bool:
        """Takes a filter if the answer is exactly Spark's own; False if Spark must filter itself."""
        import pyarrow as pa

        try:
            _answer(wanted, pa.RecordBatch.from_pylist([], schema=self.schema))
        except (KeyError, TypeError, pa.ArrowException):
            return False  # another kind of filter, value or column
        self.taken.append(wanted)
        return True

    def apply(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """The rows for which all filters are true."""
        for wanted in self.taken:
            batch = batch.filter(_answer(wanted, batch))
        return batch

    def find(self, copies: Copies) -> Copies:
        """The partitions that may have such rows."""
        return self._bounds.find(copies)

    def narrow(self, offsets: OffsetRange) -> OffsetRange:
        """The offsets of a range that such rows may have."""
        return offsets.common(self._offsets) if self.has_offsets else offsets

    def first_time(self) -> int | None:
        """The least time that such rows may have, in milliseconds since 1970; None if any."""
        time = self._bounds.first_time() if self.has_offsets else None
        return time if time is not None and time > 0 else None

    @property
    def _bounds(self) -> "FilterBounds":
        from kseg.export.plan import FilterBounds

        conditions = [_answer(wanted, _Fields(self.schema)) for wanted in self.taken]
        return FilterBounds(reduce(and_, conditions) if conditions else None, self.schema)

    @cached_property
    def _offsets(self) -> OffsetRange:
        """The same for all partitions: asked for when all filters are taken."""
        return self._bounds.offsets_anywhere()


class _Columns(Protocol):
    """Columns by their names: those of a batch, or what stands for them in an expression. Raises KeyError."""

    def column(self, name: str | None) -> Any:
        """The values."""

    @property
    def schema(self) -> "pa.Schema":
        """Their types."""


class _Fields:
    """Columns in an expression."""

    def __init__(self, schema: "pa.Schema") -> None:
        self.schema = schema

    def column(self, name: str | None) -> Any:
        """What stands for the column."""
        import pyarrow.compute as pc

        return pc.field(name)


def _column(wanted: Any) -> str | None:
    """The column that a filter looks at; None if it isn't one of these kinds."""
    attribute: tuple[str, ...] = getattr(wanted, "attribute", ())
    return attribute[0] if len(attribute) == 1 else None


def _answer(wanted: Any, columns: _Columns) -> Any:
    """For each row true, false or, as in SQL, null. Raises KeyError and others for what can't be answered so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = type(wanted).__name__
    if kind == "Not":
        return pc.invert(_answer(wanted.child, columns))
    name = _column(wanted)
    values, own = columns.column(name), columns.schema.field(name).type
    match kind:
        case "IsNull":
            return pc.is_null(values)
        case "IsNotNull":
            return pc.is_valid(values)
        case "In":
            listed = pa.array([_checked(value, own) for value in wanted.value], own)
            return pc.if_else(pc.is_valid(values), pc.is_in(values, value_set=listed), pa.scalar(None, pa.bool_()))
        case "EqualNullSafe" if wanted.value is None:
            return pc.is_null(values)
        case "EqualNullSafe":
            return pc.coalesce(pc.equal(values, _scalar(wanted.value, own)), pa.scalar(False))
        case _ if kind in _SEARCHES:
            return getattr(pc, _SEARCHES[kind])(values, wanted.value)
    return getattr(pc, _COMPARISONS[kind])(values, _scalar(wanted.value, own))


def _scalar(value: Any, kind: "pa.DataType") -> Any:
    import pyarrow as pa

    return pa.scalar(_checked(value, kind), kind)


def _checked(value: Any, kind: "pa.DataType") -> Any:
    expected = _VALUES[str(kind)]
    is_number = expected is int and isinstance(value, bool)
    if not isinstance(value, expected) or is_number or (isinstance(value, datetime) and value.tzinfo is None):
        raise TypeError(f"{value!r} is no {kind}")
    return value


class FilterOffer:
    """What Spark calls to offer filters: it returns those that Spark must apply itself.

    Spark fails a query whose reader takes filters while `spark.sql.python.filterPushdown.enabled` is off. It sees that
    by the function behind `pushFilters`. So this one shows the function of a reader that takes none: where it is off,
    nothing is offered and Spark filters; where it is on, this is called all the same.
    """

    def __init__(self, filters: PushedFilters) -> None:
        self._filters = filters

    @property
    def __func__(self) -> object:
        """The function of a reader that takes no filters."""
        from pyspark.sql.datasource import DataSourceReader

        return DataSourceReader.pushFilters

    def __call__(self, filters: list["Filter"]) -> Iterable["Filter"]:
        """Takes what can be answered exactly; gives the others back."""
        return [wanted for wanted in filters if not self._filters.take(wanted)]


Key = tuple[str, int | None]
"""A partition: topic and number."""
_LOCAL = re.compile("file:(//)?(?=/)")
"""Begins the URLs that Spark's catalog makes of paths."""
_NO_PATH = (
    "give the directories to read: load('kafka-logs/') or option('path', …); "
    "Spark doesn't pass on the path of a table that was created with columns of its own"
)


@dataclass(frozen=True)
class Request:
    """Options by their names in small letters, with defaults for all that weren't given."""

    options: Mapping[str, str | None]
    given: frozenset[str]

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "Request":
        """The request of a query's options. Raises UsageError if they are unknown, or contradict each other."""
        return cls(parse_options(given), frozenset(given))

    def text(self, name: str) -> str | None:
        """An option as it is given."""
        return self.options[name.lower()]

    def choice(self, name: str, values: Sequence[str]) -> str:
        """An option that is one of some words."""
        text = (self.text(name) or "").lower()
        if text not in values:
            raise UsageError(f"{name} is {text!r}; it can be {' or '.join(values)}")
        return text

    def flag(self, name: str) -> bool:
        """An option that is true or false."""
        return self.choice(name, ("true", "false")) == "true"

    def number(self, name: str) -> int | None:
        """An option that is a number."""
        text = self.text(name)
        if text is not None and not re.fullmatch("[0-9]+", text):
            raise UsageError(f"{name} is {text!r}, and no number")
        return None if text is None else int(text)

    def by_partition(self, name: str, copies: Copies) -> dict[Key, int]:
        """An option that has a number for each partition, as JSON. Raises UsageError if it doesn't name all of them."""
        given = _json(name, self.text(name) or "")
        found: dict[Key, int] = {}
        for topic, partition in copies:
            number = given.get(topic, {}).get(str(partition))
            if not isinstance(number, int):
                raise UsageError(f"{name} must name all partitions; {topic}-{partition} is missing")
            found[topic, partition] = number
        return found

    @property
    def is_of_damages(self) -> bool:
        """Whether rows are damages, and no records."""
        return self.choice("table", ("records", "damages")) == "damages"

    def sources(self) -> list[str]:
        """Paths, globs and URLs: `load()` gives one as `path`, several as JSON."""
        several, one = self.text("paths"), self.text("path")
        if several is None and one is not None and one.startswith("["):
            several, one = one, None
        found = [*(_json("paths", several) if several else ()), *([one] if one else ())]
        if not found:
            raise UsageError(_NO_PATH)
        return [unquote(_LOCAL.sub("", path)) if _LOCAL.match(path) else path for path in found]

    def reading(self, columns: Iterable[str] | None = None) -> ReadOptions:
        """How records are read: with what the options say; or what these columns need."""
        level, mode = self.text("kafka.isolation.level"), self.text("mode")
        if level not in list(Isolation) or mode not in (None, *Mode):
            raise UsageError(f"isolation level {level!r}, mode {mode!r}; there are {', '.join((*Isolation, *Mode))}")
        is_strict = self.flag("failOnDataLoss") and not self.is_of_damages
        asked = ReadOptions(
            headers=self.flag("includeHeaders"),
            batch_columns=self.flag("includeBatch"),
            control=self.flag("includeControl"),
            isolation=Isolation(level),
            mode=(Mode.FAILFAST if is_strict else Mode.PERMISSIVE) if mode is None else Mode(mode),
        )
        return asked if columns is None else _needed(asked, set(columns))

    def find(self) -> Copies:
        """The partitions asked for. Raises UsageError if there are none, OpenError for paths that can't be listed."""
        copies = self.find_present()
        if not copies:
            everything = copies_of(find_replicas(self.sources()))
            require_replicas(everything, self.sources())
            topics = sorted({topic for topic, _ in everything})
            raise UsageError(f"none of the partitions asked for is there; topics: {', '.join(topics)}")
        return copies

    def find_present(self, refuse: Refuse | None = None) -> Copies:
        """Those of the partitions asked for that are there. `refuse` takes the errors that are raised without it."""
        copies = copies_of(find_replicas(self.sources(), refuse))
        return {key: replicas for key, replicas in copies.items() if self._is_wanted(*key)}

    def _is_wanted(self, topic: str, partition: int | None) -> bool:
        names, pattern, assigned = (self.text(name) for name in PARTITION_CHOICES)
        if names is not None:
            return topic in {name.strip() for name in names.split(",")}
        if pattern is not None:
            return re.fullmatch(pattern, topic) is not None
        return assigned is None or partition in _json("assign", assigned).get(topic, ())

    def note_unused(self, also: Iterable[str] = ()) -> None:
        """Names on stderr the options that were given for nothing, these too if they were given."""
        if names := unused(self.given, also):
            talk(f"kseg: ignored, since these options mean nothing to files: {', '.join(names)}")

    def refuse(self, names: Iterable[str], reason: str) -> None:
        """Raises UsageError if one of these options was given."""
        given = {name.lower() for name in self.given}
        if found := [name for name in names if name.lower() in given]:
            raise UsageError(f"{found[0]}: {reason}")


def _needed(asked: ReadOptions, columns: set[str]) -> ReadOptions:
    has_batches = not columns <= set(replace(asked, headers=True, batch_columns=False).schema().names)
    return replace(asked, headers="headers" in columns, batch_columns=has_batches)


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name} isn't JSON: {error}") from error


EARLIEST, LATEST = -2, -1
"""Offsets that aren't offsets. Source: JsonUtils of spark-sql-kafka."""
_NAMES = {"earliest": EARLIEST, "latest": LATEST}


class _Bound(NamedTuple):
    """One end of a query: its three options, that which wins first, and its default.

    refused: the end of the log that it can't be in a batch query.
    """

    timestamp: str
    by_timestamp: str
    offsets: str
    default: int
    refused: int


_STARTING = _Bound("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets", EARLIEST, LATEST)
_ENDING = _Bound("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets", LATEST, EARLIEST)


def batch_ranges(request: Request, copies: Copies) -> dict[Key, OffsetRange]:
    """The offsets that a batch query reads of each partition.

    Raises UsageError if an option doesn't name all partitions, or what it names isn't there; KsegError if offsets asked
    for aren't in the log, unless `failOnDataLoss` is false.
    """
    starts, ends = (_positions(request, bound, copies, is_batch=True) for bound in (_STARTING, _ENDING))
    ranges = {}
    for key, replicas in copies.items():
        first = log_end(replicas[0]) if starts[key] == LATEST else starts[key]
        ranges[key] = OffsetRange(None if first == EARLIEST else first, None if ends[key] == LATEST else ends[key])
        if request.flag("failOnDataLoss"):
            _require_held(replicas[0], ranges[key])
    return ranges


def stream_starts(request: Request, copies: Copies) -> dict[Key, int]:
    """Where a new stream begins; EARLIEST and LATEST stand for the log's ends. Default: LATEST, as the connector's."""
    return _positions(request, _STARTING._replace(default=LATEST), copies, is_batch=False)


def log_end(replica: PartitionCopy) -> int:
    """The next offset to write. Raises UsageError if that would take reading a remote log."""
    if replica.is_remote:
        raise UsageError("the end of a log is known of local files only: give offsets below it", replica.path)
    return replica.open().read_log_end_offset()


def _positions(request: Request, bound: _Bound, copies: Copies, *, is_batch: bool) -> dict[Key, int]:
    time, times = request.number(bound.timestamp), request.text(bound.by_timestamp)
    if time is not None:
        return {key: _at_time(request, replicas, time, bound) for key, replicas in copies.items()}
    if times is not None:
        named = request.by_partition(bound.by_timestamp, copies)
        return {key: _at_time(request, copies[key], time, bound) for key, time in named.items()}
    text = request.text(bound.offsets)
    named = dict.fromkeys(copies, bound.default)
    if text in _NAMES:
        named = dict.fromkeys(copies, _NAMES[text])
    elif text is not None:
        named = request.by_partition(bound.offsets, copies)
    for offset in named.values():
        if offset < EARLIEST or (is_batch and offset == bound.refused):
            raise UsageError(f"{bound.offsets} can't be {text!r}" + " in a batch query" * is_batch)
    return named


def _at_time(request: Request, replicas: Sequence[PartitionCopy], time: int, bound: _Bound) -> int:
    """The offset of the first record of a time or later; if there is none, the end, or what the strategy says."""
    path = replicas[0].path
    if replicas[0].is_remote:
        raise UsageError("times can be asked of local files only; give offsets", path)
    found = _offset_of_time(replicas, time)
    if found is not None or bound is _ENDING:
        return LATEST if found is None else found
    strategy = request.choice("startingOffsetsByTimestampStrategy", ("error", "latest"))
    if strategy == "error":
        raise UsageError(
            f"no record has time {time} or a later one; startingOffsetsByTimestampStrategy=latest begins at the end",
            path,
        )
    return LATEST


def _offset_of_time(copies: Sequence[PartitionCopy], time: int) -> int | None:
    """The offset of the first record of a time, or of a later one, in a partition's copies, of which the best is first.

    None if there is none. Raises OpenError if a directory or a log can't be opened.
    """
    best = copies[0]
    opened = (
        Copy(each.open(), each.path, None, each.topic_id, CopyStatus.CURRENT, each.agreed_end)
        for each in copies
        if not each.is_remote
    )
    replicas = PartitionReplicas(best.topic, best.partition, best.topic_id, tuple(opened))
    found = look_up_in_copies(replicas, time, is_time=True).record
    return None if found is None else found.offset


def _require_held(replica: PartitionCopy, offsets: OffsetRange) -> None:
    lowest = replica.segments[0].base_offset
    if offsets.first is not None and offsets.first < lowest:
        raise KsegError(
            f"the log begins at {lowest}: offsets {offsets.first} to {lowest} are gone; failOnDataLoss=false goes on",
            replica.path,
        )
    if offsets.end is not None and not replica.is_remote and (end := log_end(replica)) < offsets.end:
        raise KsegError(
            f"the log ends at {end}, before the offset {offsets.end} asked for; failOnDataLoss=false goes on",
            replica.path,
        )
