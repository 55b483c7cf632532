"""Options of the data source, and the bounds of a query in each partition."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import unquote

from kseg.cluster.copies import Copies, PartitionCopy, copies_of, find_replicas, require_replicas
from kseg.cluster.directories import Refuse
from kseg.cluster.lookup import look_up_in_copies
from kseg.cluster.replicas import Copy, CopyStatus, PartitionReplicas
from kseg.errors import KsegError, UsageError
from kseg.export.settings import MIB, Isolation, Mode, OffsetRange, ReadOptions
from kseg.output.progress import talk

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
    "table": "records",
}
"""The options and their defaults."""
STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""Options that a batch query ignores."""
BATCH_ONLY = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
"""Options that a stream refuses, as the connector does."""
_UNUSED = (
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "maxRecordsPerPartition",
    "pushdown",
)
"""Options without effect: the connector's that have no meaning for files, and `pushdown`.

Spark up to 4.3 gives the partitions of a query with pushed filters to all other queries of the same DataFrame, so kseg
takes none. Source: PythonScanBuilder.pushFilters, PythonDataSourceV2.setReadInfo.
"""
_CONSUMERS = "kafka."
"""Prefix of the connector's settings for Kafka's consumer."""
_KNOWN = {name.lower(): name for name in (*DEFAULTS, *_UNUSED)}


def parse_options(given: Mapping[str, str]) -> dict[str, str | None]:
    """Return the options by lower-case names, with defaults.

    Raises UsageError if they are unknown or contradictory.
    """
    own = {name.lower(): value for name, value in given.items()}
    for name in own:
        if name not in _KNOWN and not name.startswith(_CONSUMERS):
            raise UsageError(_unknown_option(name))
    if len([name for name in PARTITION_CHOICES if name.lower() in own]) > 1:
        raise UsageError(f"only one of {', '.join(PARTITION_CHOICES)} can be given")
    return {name.lower(): own.get(name.lower(), default) for name, default in DEFAULTS.items()}


def find_unused(given: Iterable[str], also: Iterable[str]) -> list[str]:
    """Return the names of given options that have no effect on files or are in `also`."""
    useful = {name.lower() for name in DEFAULTS} - {name.lower() for name in also}
    return sorted(_KNOWN.get(name.lower(), name) for name in given if name.lower() not in useful)


def _unknown_option(name: str) -> str:
    near = get_close_matches(name, _KNOWN, 1)
    hint = f"did you mean {_KNOWN[near[0]]}?" if near else f"its options are {', '.join(DEFAULTS)}"
    return f"the data source has no option {name!r}; {hint}"


Key = tuple[str, int | None]
"""A partition: topic and number."""
_LOCAL = re.compile("file:(//)?(?=/)")
"""Pattern of the URLs that Spark's catalog makes of paths."""
_NO_PATH = (
    "the query has no path; give one with load('kafka-logs/') or option('path', …). "
    "Spark doesn't pass on the path of a table that was created with its own columns"
)


@dataclass(frozen=True)
class Request:
    """Options by lower-case names, with defaults for missing ones."""

    options: Mapping[str, str | None]
    given: frozenset[str]

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "Request":
        """Return the request of a query's options. Raises UsageError if they are unknown or contradictory."""
        return cls(parse_options(given), frozenset(given))

    def text(self, name: str) -> str | None:
        """Return an option as given."""
        return self.options[name.lower()]

    def choice(self, name: str, values: Sequence[str]) -> str:
        """Return an option with a fixed set of words."""
        text = (self.text(name) or "").lower()
        if text not in values:
            raise UsageError(f"{name} is {text!r}, expected {' or '.join(values)}")
        return text

    def flag(self, name: str) -> bool:
        """Return an option that is true or false."""
        return self.choice(name, ("true", "false")) == "true"

    def number(self, name: str) -> int | None:
        """Return an option that is a number."""
        text = self.text(name)
        if text is not None and not re.fullmatch("[0-9]+", text):
            raise UsageError(f"{name} is {text!r}, expected a number")
        return None if text is None else int(text)

    def by_partition(self, name: str, copies: Copies) -> dict[Key, int]:
        """Return an option with a number for each partition, as JSON.

        Raises UsageError unless it names all of them.
        """
        given = _json(name, self.text(name) or "")
        found: dict[Key, int] = {}
        for topic, partition in copies:
            number = given.get(topic, {}).get(str(partition))
            if not isinstance(number, int):
                raise UsageError(f"{name} doesn't name {topic}-{partition}; name all partitions")
            found[topic, partition] = number
        return found

    @property
    def is_of_damages(self) -> bool:
        """True if rows are damages instead of records."""
        return self.choice("table", ("records", "damages")) == "damages"

    def sources(self) -> list[str]:
        """Return the paths, globs and URLs: `load()` passes one as `path`, several as JSON."""
        several, one = self.text("paths"), self.text("path")
        if several is None and one is not None and one.startswith("["):
            several, one = one, None
        found = [*(_json("paths", several) if several else ()), *([one] if one else ())]
        if not found:
            raise UsageError(_NO_PATH)
        return [unquote(_LOCAL.sub("", path)) if _LOCAL.match(path) else path for path in found]

    def reading(self, columns: Iterable[str] | None = None) -> ReadOptions:
        """Return the reading options for all columns, or only for the given ones."""
        level, mode = self.text("kafka.isolation.level"), self.text("mode")
        if level not in list(Isolation) or mode not in (None, *Mode):
            raise UsageError(
                f"isolation level {level!r} or mode {mode!r} is unknown; use {', '.join((*Isolation, *Mode))}"
            )
        is_strict = self.flag("failOnDataLoss") and not self.is_of_damages
        asked = ReadOptions(
            headers=self.flag("includeHeaders"),
            batch_columns=self.flag("includeBatch"),
            control=self.flag("includeControl"),
            isolation=Isolation(level),
            mode=(Mode.FAILFAST if is_strict else Mode.PERMISSIVE) if mode is None else Mode(mode),
        )
        return asked if columns is None else _narrow_to(asked, set(columns))

    def find(self) -> Copies:
        """Return the requested partitions.

        Raises UsageError if there are none, OpenError for paths that can't be listed.
        """
        copies = self.find_present()
        if not copies:
            everything = copies_of(find_replicas(self.sources()))
            require_replicas(everything, self.sources())
            topics = sorted({topic for topic, _ in everything})
            raise UsageError(f"none of the requested partitions exists; choose from the topics {', '.join(topics)}")
        return copies

    def find_present(self, refuse: Refuse | None = None) -> Copies:
        """Return the requested partitions that exist. `refuse` receives errors, which are raised without it."""
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
        """Print to stderr the names of given options without effect, and of given ones in `also`."""
        if names := find_unused(self.given, also):
            talk(f"kseg: ignored these options, which have no effect here: {', '.join(names)}")

    def refuse(self, names: Iterable[str], reason: str) -> None:
        """Raise UsageError if one of these options was given."""
        given = {name.lower() for name in self.given}
        if found := [name for name in names if name.lower() in given]:
            raise UsageError(f"{found[0]}: {reason}")


def _narrow_to(asked: ReadOptions, columns: set[str]) -> ReadOptions:
    has_batches = not columns <= set(replace(asked, headers=True, batch_columns=False).schema().names)
    return replace(asked, headers="headers" in columns, batch_columns=has_batches)


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name} isn't JSON: {error}") from error


EARLIEST, LATEST = -2, -1
"""Special values of offsets. Source: JsonUtils of spark-sql-kafka."""
_NAMES = {"earliest": EARLIEST, "latest": LATEST}


class _Bound(NamedTuple):
    """One end of a query: its three options, the one with precedence first, and its default.

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
    """Return the offsets that a batch query reads of each partition.

    Raises UsageError if an option doesn't name all partitions, or names a missing one; KsegError if requested offsets
    aren't in the log, unless `failOnDataLoss` is false.
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
    """Return a new stream's start; EARLIEST and LATEST are the log's ends. Default: LATEST, as in the connector."""
    return _positions(request, _STARTING._replace(default=LATEST), copies, is_batch=False)


def log_end(replica: PartitionCopy) -> int:
    """Return the next offset to write. Raises UsageError if that requires reading a remote log."""
    if replica.is_remote:
        raise UsageError("the log end is known only for local files; give offsets below it", replica.path)
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
    """Return the offset of the first record at or after a time; without one, the end, or the strategy's choice."""
    path = replicas[0].path
    if replicas[0].is_remote:
        raise UsageError("only local files can be searched by time; give offsets", path)
    found = _offset_of_time(replicas, time)
    if found is not None or bound is _ENDING:
        return LATEST if found is None else found
    strategy = request.choice("startingOffsetsByTimestampStrategy", ("error", "latest"))
    if strategy == "error":
        raise UsageError(
            f"no record has the timestamp {time} or a later one; set startingOffsetsByTimestampStrategy=latest to"
            " begin at the log end",
            path,
        )
    return LATEST


def _offset_of_time(copies: Sequence[PartitionCopy], time: int) -> int | None:
    """Return the offset of the first record at or after a time in a partition's copies, the best of which is first.

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
        gone = f"offsets {offsets.first} to {lowest - 1} no longer exist"
        raise KsegError(
            f"the log begins at offset {lowest}, so {gone}; set failOnDataLoss=false to continue",
            replica.path,
        )
    if offsets.end is not None and not replica.is_remote and (end := log_end(replica)) < offsets.end:
        raise KsegError(
            f"the log ends at offset {end}, before the requested offset {offsets.end}; set failOnDataLoss=false to"
            " continue",
            replica.path,
        )
