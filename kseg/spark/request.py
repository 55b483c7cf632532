"""What a query asks of the data source: the values of its options, and the partitions that they mean."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from kseg.errors import UsageError
from kseg.export.copies import Copies, find_replicas, require_replicas
from kseg.export.settings import Isolation, Mode, ReadOptions
from kseg.log.partition.log_dir import Refuse
from kseg.output.talk import talk
from kseg.spark.source_options import PARTITION_CHOICES, parse_options, unused

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
            everything = find_replicas(self.sources())
            require_replicas(everything, self.sources())
            topics = sorted({topic for topic, _ in everything})
            raise UsageError(f"none of the partitions asked for is there; topics: {', '.join(topics)}")
        return copies

    def find_present(self, refuse: Refuse | None = None) -> Copies:
        """Those of the partitions asked for that are there. `refuse` takes the errors that are raised without it."""
        copies = find_replicas(self.sources(), refuse)
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
