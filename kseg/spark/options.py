"""Options of the data source."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any
from urllib.parse import unquote

from kseg.errors import UsageError
from kseg.export.settings import MIB, Isolation, Mode, ReadOptions
from kseg.kernel.contract import MOST
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
    "respectLogStartOffset": "true",
    "mode": None,
    "minPartitions": None,
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
)
"""Options of the connector that have no meaning for files."""
_CONSUMERS = "kafka."
"""Prefix of the connector's settings for Kafka's consumer."""
_REFUSED = ("auto.offset.reset", "key.deserializer", "value.deserializer", "enable.auto.commit", "interceptor.classes")
"""Settings of the consumer that the connector refuses. Source: KafkaSourceProvider.validateGeneralOptions."""
_KNOWN = {name.lower(): name for name in (*DEFAULTS, *_UNUSED)}


def parse_options(given: Mapping[str, str]) -> dict[str, str | None]:
    """Return the options by lower-case names, with defaults.

    Raises UsageError if they are unknown or contradictory.
    """
    own = {name.lower(): value for name, value in given.items()}
    for name in own:
        if name not in _KNOWN and not name.startswith(_CONSUMERS):
            raise UsageError(_unknown_option(name))
        if name.removeprefix(_CONSUMERS) in _REFUSED:
            raise UsageError(f"{name} can't be set; startingOffsets decides where a query begins")
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
_EXAMPLE_OF_PARTITIONS = 'expected JSON such as {"orders":[0,1]}'
EXAMPLE_OF_OFFSETS = 'expected JSON such as {"orders":{"0":23,"1":-1}}'
_LOCAL = re.compile("file:(//)?(?=/)")
"""Pattern of the URLs that Spark's catalog makes of paths."""
_NO_PATH = (
    "the query has no path; specify one with load('kafka-logs/') or option('path', …). "
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
        request = cls(parse_options(given), frozenset(given))
        request.number("minPartitions", 1)
        least, most = request.number("minOffsetsPerTrigger"), request.number("maxOffsetsPerTrigger")
        if least is not None and most is not None and least > most:
            raise UsageError(f"minOffsetsPerTrigger is {least}, above maxOffsetsPerTrigger, which is {most}")
        return request

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

    def number(self, name: str, least: int = 0) -> int | None:
        """Return an option that is a number."""
        text = self.text(name)
        if text is None:
            return None
        if not re.fullmatch("-?[0-9]{1,18}", text) or int(text) < least:
            raise UsageError(f"{name} is {text!r}, expected a number from {least} on")
        return int(text)

    def partitions_by_topic(self, name: str) -> dict[str, list[int]]:
        """Return an option with numbers of partitions by topic, as JSON."""
        text = self.text(name) or ""
        given = _json(name, text)
        if not isinstance(given, dict) or not all(map(_is_list_of_numbers, given.values())):
            raise UsageError(f"{name} is {text!r}, {_EXAMPLE_OF_PARTITIONS}")
        return given

    def by_partition(self, name: str) -> dict[Key, int]:
        """Return an option with a number for each partition, as JSON."""
        text = self.text(name) or ""
        found = numbers_by_key(_json(name, text))
        if found is None:
            raise UsageError(f"{name} is {text!r}, {EXAMPLE_OF_OFFSETS}")
        return found

    @property
    def respects_log_start(self) -> bool:
        """True if records below the log start offset, which consumers can't read, are left out."""
        return self.flag("respectLogStartOffset") and not self.is_of_damages

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


def _is_list_of_numbers(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(map(_is_number, numbers))


def _is_number(number: Any) -> bool:
    return type(number) is int and -MOST <= number <= MOST


def numbers_by_key(members: Any) -> dict[Key, int] | None:
    """Return the numbers of `{"topic":{"0":5}}` by partition; None if it has another form."""
    if not isinstance(members, dict) or not all(isinstance(own, dict) for own in members.values()):
        return None
    found: dict[Key, int] = {}
    for topic, own in members.items():
        for partition, number in own.items():
            if not re.fullmatch("[0-9]{1,10}|None", partition) or not _is_number(number):
                return None
            found[topic, number_of(partition)] = number
    return found


def number_of(partition: str) -> int | None:
    """Return a partition's number; `None` is that of a directory of segments without one."""
    return int(partition) if partition.isdigit() else None


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} isn't JSON: {error}") from error
