"""The data source's options, as spark-sql-kafka has them where the meaning is the same."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kseg.errors import UsageError
from kseg.export.copies import Copies, PartitionCopy, find_replicas, require_replicas
from kseg.export.settings import MIB, Isolation, LogSelection, Mode, OffsetRange, ReadOptions

EARLIEST, LATEST = -2, -1
"""Offsets in JSON that aren't offsets. Source: JsonUtils of spark-sql-kafka."""
SPLIT_SIZE = 128 * MIB
_CHOICES = ("subscribe", "subscribePattern", "assign")
_DEFAULTS: dict[str, str | None] = {
    "path": None,
    "paths": None,
    "subscribe": None,
    "subscribePattern": None,
    "assign": None,
    "startingOffsets": None,
    "endingOffsets": "latest",
    "startingTimestamp": None,
    "endingTimestamp": None,
    "includeHeaders": "false",
    "includeBatch": "false",
    "includeControl": "false",
    "failOnDataLoss": "true",
    "mode": None,
    "minPartitions": "1",
    "maxOffsetsPerTrigger": None,
    "kafka.isolation.level": "read_uncommitted",
    "splitSize": str(SPLIT_SIZE),
    "pushdown": "false",
    "table": "records",
}
"""Each option and its default."""
_KNOWN = {name.lower() for name in _DEFAULTS}


@dataclass(frozen=True)
class Request:
    """What a query asks of the source; options by their names in small letters."""

    options: Mapping[str, str | None]

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "Request":
        """The request of a query's options. Raises UsageError if they are unknown, or contradict each other."""
        own = {name.lower(): value for name, value in given.items()}
        if unknown := sorted(set(own) - _KNOWN):
            raise UsageError(f"the data source has no option {unknown[0]!r}; it has {', '.join(_DEFAULTS)}")
        if len([name for name in _CHOICES if name.lower() in own]) > 1:
            raise UsageError(f"only one of {', '.join(_CHOICES)} can be given")
        return cls({name.lower(): own.get(name.lower(), default) for name, default in _DEFAULTS.items()})

    def text(self, name: str) -> str | None:
        """An option as it is given."""
        return self.options[name.lower()]

    def flag(self, name: str) -> bool:
        """An option that is true or false."""
        text = (self.text(name) or "").lower()
        if text not in ("true", "false"):
            raise UsageError(f"{name} is {text!r}; it can be true or false")
        return text == "true"

    def number(self, name: str) -> int | None:
        """An option that is a number."""
        text = self.text(name)
        if text is not None and not re.fullmatch("[0-9]+", text):
            raise UsageError(f"{name} is {text!r}, and no number")
        return None if text is None else int(text)

    def sources(self) -> list[str]:
        """Paths, globs and URLs: `load()` gives one as `path`, several as JSON."""
        several, one = self.text("paths"), self.text("path")
        if several is None and one is not None and one.startswith("["):
            several, one = one, None
        found = [*(_json("paths", several) if several else ()), *([one] if one else ())]
        if not found:
            raise UsageError("give the directories to read: load('kafka-logs/') or option('path', …)")
        return found

    def reading(self) -> ReadOptions:
        """How records are read."""
        level, mode = self.text("kafka.isolation.level"), self.text("mode")
        if level not in list(Isolation) or mode not in (None, *Mode):
            raise UsageError(f"isolation level {level!r}, mode {mode!r}; there are {', '.join((*Isolation, *Mode))}")
        default = Mode.FAILFAST if self.flag("failOnDataLoss") else Mode.PERMISSIVE
        return ReadOptions(
            headers=self.flag("includeHeaders"),
            batch_columns=self.flag("includeBatch"),
            control=self.flag("includeControl"),
            isolation=Isolation(level),
            mode=default if mode is None else Mode(mode),
        )

    def find(self) -> Copies:
        """The partitions asked for. Raises UsageError if there are none."""
        copies = find_replicas(self.sources())
        require_replicas(copies, self.sources())
        wanted = {key: replicas for key, replicas in copies.items() if self._is_wanted(*key)}
        if not wanted:
            topics = sorted({topic for topic, _ in copies})
            raise UsageError(f"none of the partitions asked for is there; topics: {', '.join(topics)}")
        return wanted

    def _is_wanted(self, topic: str, partition: int | None) -> bool:
        names, pattern, assigned = (self.text(name) for name in _CHOICES)
        if names is not None:
            return topic in {name.strip() for name in names.split(",")}
        if pattern is not None:
            return re.fullmatch(pattern, topic) is not None
        return assigned is None or partition in _json("assign", assigned).get(topic, ())

    def selection(self, copies: Copies) -> LogSelection:
        """Offsets and times wanted of these partitions. Raises UsageError if offsets don't name all of them."""
        starts = self.offsets("startingOffsets", copies, default="earliest")
        ends = self.offsets("endingOffsets", copies, default="latest")
        return LogSelection(
            offsets_of={key: OffsetRange(starts[key], ends[key]) for key in copies},
            first_time=self.number("startingTimestamp"),
            end_time=self.number("endingTimestamp"),
        )

    def offsets(self, name: str, copies: Copies, default: str) -> dict[tuple[str, int | None], int | None]:
        """By partition the offset that an option says; None for the default, which is an end of the log."""
        text = self.text(name) or default
        if text in ("earliest", "latest"):
            if text != default:
                raise UsageError(f"{name} can't be {text!r} in a batch query")
            return dict.fromkeys(copies)
        given = _json(name, text)
        found: dict[tuple[str, int | None], int | None] = {}
        for topic, partition in copies:
            offset = given.get(topic, {}).get(str(partition))
            if offset is None:
                raise UsageError(f"{name} must name all partitions; {topic}-{partition} is missing")
            if offset < 0 and offset != (EARLIEST if default == "earliest" else LATEST):
                raise UsageError(f"{name} can't be {offset} in a batch query")
            found[topic, partition] = None if offset < 0 else offset
        return found


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name} isn't JSON: {error}") from error


def best(copies: Copies) -> list[PartitionCopy]:
    """The best copy of each partition."""
    return [replicas[0] for replicas in copies.values()]
