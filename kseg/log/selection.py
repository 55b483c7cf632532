"""Selections: of partitions by topic and number, and of records by their fields."""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, tzinfo
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, Literal, Self, TypeAlias, TypedDict

from kseg.errors import UsageError, reason, shorten
from kseg.formats.file_names import parse_partition_directory, plain_text
from kseg.kernel.contract import LEAST, MOST, BatchFilter, RecordFilter
from kseg.named_tuple import NamedTuple
from kseg.system.placed_path import as_path
from kseg.times import milliseconds_of, parse_zone

TIME_DISORDER_MS = 600_000
LATE_SIZE = 8 << 20
"""Reading stops after this many consecutive bytes of log that are all late (`Selection.is_late`).

Producers set timestamps themselves, so that records of an earlier time may follow later ones. Nothing in a log shows
where the last of them is. Partitions of up to that size are always read to their end.
"""
IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]
ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
"""Kafka's `isolation.level`, the default first."""
_NUMBERS = ("from_offset", "to_offset", "from_time", "to_time", "producer_id", "limit", "tail")
_MAY_BE_BELOW_0 = ("from_offset", "to_offset", "from_time", "to_time", "producer_id")
_SPECIAL = frozenset(r"\.^$*+?{}[]|()")
_WHOLE_SHARE = 2**64


class Selection(NamedTuple):
    """The wanted records: all criteria must match; None, () and False set no criterion.

    from_offset, to_offset, from_time, to_time: from the first on, to before the second; times in milliseconds. A
    record without timestamp is in no range of times. key: equal. key_regex: found in the key as UTF-8; grep: in the
    value. headers: (name, value) each, any value if that is None. is_control: control records, or others.
    is_committed: no control records, no records of aborted transactions, nothing from the last stable offset on.
    limit: the number of first records in all; tail: the number of last records of each partition; sample: about this
    share of them, always the same records, chosen by their offsets. is_followed: wait for more.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    from_time: int | None = None
    to_time: int | None = None
    key: bytes | None = None
    key_regex: str | None = None
    grep: str | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    producer_id: int | None = None
    transactional_only: bool = False
    is_control: bool | None = None
    is_committed: bool = False
    limit: int | None = None
    tail: int | None = None
    sample: float | None = None
    is_followed: bool = False

    def check(self) -> "Selection":
        """Return itself. Raises UsageError for invalid criteria: a bad pattern or number, or contradictory criteria."""
        for option, pattern in (("--key-regex", self.key_regex), ("--grep", self.grep)):
            parse_pattern(pattern or "", option)
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None and not (LEAST if name in _MAY_BE_BELOW_0 else 0) <= number <= MOST:
                raise UsageError(f"{name} {number}: this number isn't valid here")
        if self.sample is not None and not 0 < self.sample <= 1:
            raise UsageError(f"sample {self.sample}: this isn't a share; specify one such as 0.01")
        if self.is_committed and self.is_control:
            raise UsageError(
                "--control can't be used with --isolation read_committed, which hides control records; omit one of them"
            )
        return self

    @property
    def is_everything(self) -> bool:
        """True without any criterion."""
        return self == EVERYTHING

    @property
    def looks_into_records(self) -> bool:
        """True if keys, values, headers or single records decide, so that headers of batches aren't enough."""
        return (self.key, self.key_regex, self.grep, self.sample) != (None,) * 4 or bool(self.headers)

    @property
    def has_times(self) -> bool:
        """True if a range of times is given."""
        return self.from_time is not None or self.to_time is not None

    @property
    def first_offset(self) -> int:
        """The lowest offset that may be wanted."""
        return LEAST if self.from_offset is None else self.from_offset

    @property
    def last_offset(self) -> int:
        """The highest offset that may be wanted."""
        return MOST if self.to_offset is None else self.to_offset - 1

    @property
    def first_timestamp(self) -> int:
        """The lowest wanted timestamp."""
        return (self.from_time or 0) if self.has_times else LEAST

    @property
    def last_timestamp(self) -> int:
        """The highest wanted timestamp."""
        return MOST if self.to_time is None else self.to_time - 1

    def to_json(self) -> dict[str, Any]:
        """Return the criteria as JSON values: bytes in hex, empty criteria omitted."""
        criteria = {name: value for name, value in self._asdict().items() if value != getattr(EVERYTHING, name)}
        if self.key is not None:
            criteria["key"] = self.key.hex()
        if self.headers:
            criteria["headers"] = [[name.hex(), None if value is None else value.hex()] for name, value in self.headers]
        return criteria

    @classmethod
    def from_json(cls, asked: Mapping[str, Any]) -> "Selection":
        """Return the selection of `to_json`."""
        members = dict(asked)
        if "key" in members:
            members["key"] = bytes.fromhex(members["key"])
        members["headers"] = tuple(
            (bytes.fromhex(name), None if value is None else bytes.fromhex(value))
            for name, value in members.get("headers", ())
        )
        return cls(**members).check()

    def is_late(self, earliest: int) -> bool:
        """Return True if batches that begin no earlier than this time are far later than the wanted ones."""
        return self.to_time is not None and earliest >= self.to_time + TIME_DISORDER_MS

    def batch_filter(self, last_offset: int = MOST) -> BatchFilter:
        """Return the criteria for headers of batches; `last_offset` limits the offsets further."""
        return BatchFilter(
            self.first_offset,
            min(self.last_offset, last_offset),
            self.first_timestamp,
            self.last_timestamp,
            self.producer_id,
            True if self.transactional_only else None,
            False if self.is_committed else self.is_control,
        )

    def record_filter(self, *, skip: int = 0, limit: int | None = None, last_offset: int = MOST) -> RecordFilter | None:
        """Return the criteria for records, or None if headers of batches are enough. The first `skip` are omitted."""
        wanted = RecordFilter(
            self.first_offset,
            min(self.last_offset, last_offset),
            self.first_timestamp,
            self.last_timestamp,
            self.key,
            _literal(self.key_regex),
            _literal(self.grep),
            self.headers,
            _share(self.sample),
            self._predicate(),
            skip,
            limit,
        )
        return None if wanted == RecordFilter() else wanted

    def _predicate(self) -> Callable[[bytes | None, bytes | None], bool] | None:
        """Return the test that the kernel calls for each record: regular expressions beyond plain text."""
        of_key, of_value = _pattern(self.key_regex), _pattern(self.grep)
        if of_key is None and of_value is None:
            return None

        def takes(key: bytes | None, value: bytes | None) -> bool:
            return _is_found(of_key, key) and _is_found(of_value, value)

        return takes


EVERYTHING = Selection()
"""The selection without criteria."""

Time: TypeAlias = str | int | datetime
"""A moment: text for `parse_time`, milliseconds since 1970, or a datetime."""


WantedHeader: TypeAlias = str | tuple[str, str | bytes | None]
"""A header in options: `NAME`, `NAME=VALUE`, or name and value; any value if that is None."""


class SelectionOptions(TypedDict, total=False):
    """A selection under the names of the commands' options; None sets no criterion.

    Texts have the same meaning as in options. key: literal bytes, or text for `parse_bytes`; header: one or several,
    each for `parse_header`, or name and value. control: only control records, or none of them. tz: the zone of times
    without one.
    """

    from_offset: int | None
    to_offset: int | None
    from_time: Time | None
    to_time: Time | None
    key: str | bytes | None
    key_regex: str | None
    grep: str | None
    header: "str | Iterable[WantedHeader] | None"
    producer_id: int | None
    transactional_only: bool
    control: bool | None
    isolation: IsolationLevel
    limit: int | None
    tail: int | None
    sample: str | float | None
    tz: str


def selection_of(options: SelectionOptions, selection: Selection = EVERYTHING) -> Selection:
    """Return a selection with the options' criteria replacing its own. Raises UsageError for invalid criteria."""
    zone = parse_zone(options.get("tz", "UTC"))
    criteria: dict[str, Any] = {}
    for name, value in options.items():
        if name in _READ:
            field, read = _READ[name]
            criteria[field] = getattr(EVERYTHING, field) if value is None else read(value, zone)
        elif name in SelectionOptions.__annotations__ and name in Selection._fields:
            criteria[name] = value
        elif name != "tz":
            raise UsageError(f"{name}: no such option; specify one of {', '.join(SelectionOptions.__annotations__)}")
    return selection._replace(**criteria).check()


def _bytes_of(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else parse_bytes(value)


def _headers_of(value: str | Iterable[WantedHeader]) -> tuple[tuple[bytes, bytes | None], ...]:
    wanted = (value,) if isinstance(value, str) else value
    return tuple(parse_header(each) if isinstance(each, str) else _header_of(*each) for each in wanted)


def _header_of(name: str, value: str | bytes | None) -> tuple[bytes, bytes | None]:
    return name.encode("utf-8", "surrogateescape"), None if value is None else _bytes_of(value)


def _is_committed(isolation: str) -> bool:
    if isolation not in ISOLATION_LEVELS:
        raise UsageError(f"isolation {isolation!r}: no such level; specify {' or '.join(ISOLATION_LEVELS)}")
    return isolation == ISOLATION_LEVELS[1]


_READ: dict[str, tuple[str, Callable[[Any, tzinfo], Any]]] = {
    "from_time": ("from_time", milliseconds_of),
    "to_time": ("to_time", milliseconds_of),
    "key": ("key", lambda value, _: _bytes_of(value)),
    "header": ("headers", lambda value, _: _headers_of(value)),
    "sample": ("sample", lambda value, _: parse_share(str(value))),
    "control": ("is_control", lambda value, _: value),
    "isolation": ("is_committed", lambda value, _: _is_committed(value)),
}
"""Options whose values are parsed first: the selection's field, and the parser."""


def parse_pattern(text: str, option: str | None = None) -> re.Pattern[str]:
    """Parse a regular expression. Raises UsageError, which names the option, if Python can't compile it."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        place = "" if option is None else f"{option} "
        raise UsageError(f"{place}{shorten(text)}: {reason(error)}") from error


def _is_plain(pattern: str) -> bool:
    return _SPECIAL.isdisjoint(pattern)


def _literal(pattern: str | None) -> bytes | None:
    """Return the text of a pattern that is only plain text: the kernel searches it."""
    return None if pattern is None or not _is_plain(pattern) else pattern.encode("utf-8", "surrogateescape")


def _pattern(pattern: str | None) -> re.Pattern[str] | None:
    return None if pattern is None or _is_plain(pattern) else re.compile(pattern)


def _is_found(pattern: re.Pattern[str] | None, text: bytes | None) -> bool:
    if pattern is None:
        return True
    return text is not None and pattern.search(text.decode("utf-8", "surrogateescape")) is not None


def _share(sample: float | None) -> int | None:
    share = _WHOLE_SHARE if sample is None else round(sample * _WHOLE_SHARE)
    return None if share >= _WHOLE_SHARE else share


def parse_bytes(text: str) -> bytes:
    """Parse bytes given as hex (`hex:00ff`), base64 (`base64:AP8=`) or UTF-8 text.

    Raises UsageError if `hex:` or `base64:` isn't followed by valid digits.
    """
    form, colon, rest = text.partition(":")
    try:
        if colon and form == "hex":
            return bytes.fromhex(rest)
        if colon and form == "base64":
            from base64 import b64decode

            return b64decode(rest, validate=True)
    except ValueError as error:  # of binascii too
        raise UsageError(f"{text!r}: {error}") from error
    return text.encode("utf-8", "surrogateescape")


def parse_header(text: str) -> tuple[bytes, bytes | None]:
    """Parse `NAME=VALUE`, with a value for `parse_bytes`; without `=`, the value is None for any value."""
    name, equals, value = text.partition("=")
    return name.encode("utf-8", "surrogateescape"), parse_bytes(value) if equals else None


def parse_share(text: str) -> float:
    """Parse a share like `0.01` or `1%`. Raises UsageError unless it is more than 0 and at most 1."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(f"--sample {text}: this isn't a share; specify one such as 0.01 or 1%")
    return share


_SHOWN_TOPICS = 8
"""The most topics that an error lists."""
_SHOWN_NEAREST = 3
"""The most names that an error suggests instead of a missing one."""
_ONLY_ASIDE = "there are only partitions that brokers set aside"


class PartitionChoice(NamedTuple):
    """The wanted partitions, by names or globs of topics, and by numbers; empty sets no criterion.

    allow_missing: names and numbers without any partition are no error.
    """

    topics: tuple[str, ...] = ()
    numbers: tuple[range, ...] = ()
    allow_missing: bool = False

    @classmethod
    def of(cls, topics: str | Iterable[str], numbers: int | Iterable[int]) -> Self:
        """Return the choice of one or more topics and numbers; a range needs only one existing number."""
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        if isinstance(numbers, range):
            return cls(names, (numbers,))
        each_number = (numbers,) if isinstance(numbers, int) else numbers
        return cls(names, tuple(range(number, number + 1) for number in each_number))

    @property
    def is_everything(self) -> bool:
        """True if all partitions are wanted."""
        return not self.topics and not self.numbers

    def takes(self, topic: str, partition: int | None) -> bool:
        """Return True if a partition is wanted; with numbers given, one without a known number isn't."""
        return self.takes_topic(topic) and self.takes_number(partition)

    def takes_topic(self, topic: str) -> bool:
        """Return True if the partitions of a topic may be wanted."""
        return not self.topics or any(_is_named(topic, name) for name in self.topics)

    def takes_number(self, partition: int | None) -> bool:
        """Return True if a partition of this number may be wanted."""
        return not self.numbers or (partition is not None and any(partition in numbers for numbers in self.numbers))

    def takes_directory(self, path: str | os.PathLike[str]) -> bool:
        """Return True if the partition in a directory is wanted.

        A name that isn't a partition's counts as a topic's.
        """
        if self.is_everything:
            return True
        own = own_name(path)
        name = parse_partition_directory(own)
        return self.takes(own, None) if name is None else self.takes(name.topic, name.partition)

    def arguments(self) -> list[str]:
        """Return the command line options of the choice."""
        topics = [argument for topic in self.topics for argument in ("--topic", topic)]
        numbers = ["--partition", ",".join(map(_range_text, self.numbers))] if self.numbers else []
        return [*topics, *numbers, *(["--allow-missing"] if self.allow_missing else [])]

    def __str__(self) -> str:
        """Return the options that name partitions, as one text."""
        return " ".join(self._replace(allow_missing=False).arguments())

    def require(self, directories: Iterable[str | os.PathLike[str]]) -> None:
        """Raise NoSuchPartitionError if a name or number matches no partition in the given directories.

        Without any directory, nothing is known to be missing.
        """
        if self.is_everything or self.allow_missing:
            return
        names = [(own, parse_partition_directory(own)) for own in map(own_name, directories)]
        there = [((own, None) if name is None else (name.topic, name.partition)) for own, name in names]
        in_use = [each for each, (_, name) in zip(there, names, strict=True) if name is None or name.state is None]
        self.require_among(numbers_by_topic(there), numbers_by_topic(in_use))

    def require_among(
        self, there: Mapping[str, Collection[int]], shown: Mapping[str, Collection[int]] | None = None
    ) -> None:
        """Raise NoSuchPartitionError like `require`, for numbers of partitions by topic; shown: those to suggest."""
        if not there or self.allow_missing:
            return
        chosen = {topic: numbers for topic, numbers in there.items() if self.takes_topic(topic)}
        topics = tuple(name for name in self.topics if not any(_is_named(topic, name) for topic in chosen))
        numbers = tuple(each for each in self.numbers if not _has_any(each, chosen.values()))
        if topics or numbers:
            shown = there if shown is None else shown
            raise NoSuchPartitionError(
                PartitionChoice(topics or self.topics, numbers),
                topics,
                {each: shown[each] for each in shown if topics or each in chosen},
            )

    def require_topics(self, there: Collection[str]) -> None:
        """Raise UsageError if a name matches none of the existing topics. Without any, nothing counts as missing."""
        if there and not self.allow_missing:
            require_named(self.topics, there, "--topic", "topic")


EVERY_PARTITION = PartitionChoice()


def _has_any(wanted: range, found: Iterable[Collection[int]]) -> bool:
    return any(number in wanted for numbers in found for number in numbers)


def _is_named(topic: str, name: str) -> bool:
    return topic == name or fnmatchcase(topic, name)


def require_named(names: Iterable[str], there: Collection[str], option: str, thing: str) -> None:
    """Raise UsageError if a name or glob matches none of the existing names; the error suggests the nearest ones."""
    missing = [name for name in names if not any(_is_named(each, name) for each in there)]
    if missing:
        given = " ".join(f"{option} {plain_text(name)}" for name in missing)
        raise UsageError(
            f"{given}: no such {thing} here; {_suggest(missing, {each: plain_text(each) for each in there})}"
        )


class NoSuchPartitionError(UsageError):
    """Partitions exist, but not all of the wanted ones."""

    def __init__(self, choice: PartitionChoice, topics: Iterable[str], there: Mapping[str, Collection[int]]) -> None:
        """Take the part of a choice that is missing, the missing names of topics, and existing partitions by topic."""
        shown = {topic: f"{plain_text(topic)}{_numbers_text(there[topic])}" for topic in sorted(there)}
        super().__init__(f"{choice}: no such partition here; {_suggest(topics, shown)}")


def _suggest(missing: Iterable[str], there: Mapping[str, str]) -> str:
    """Return existing names as a next step: the nearest ones or, if none is near, the first ones and a count of others.

    there: texts by names, in their order.
    """
    from difflib import get_close_matches

    near = dict.fromkeys(each for name in missing for each in get_close_matches(name, there, _SHOWN_NEAREST))
    if near:
        return f"did you mean {' or '.join(there[each] for each in near)}?"
    texts = list(islice(there.values(), _SHOWN_TOPICS))
    more = len(there) - len(texts)
    return f"there are {', '.join(texts)}{f' and {more} more' if more else ''}" if texts else _ONLY_ASIDE


def numbers_by_topic(partitions: Iterable[tuple[str, int | None]]) -> dict[str, set[int]]:
    """Return the numbers of partitions by topic. A directory of segments counts as a topic without numbers."""
    found: dict[str, set[int]] = defaultdict(set)
    for topic, number in partitions:
        found[topic].update(() if number is None else (number,))
    return found


def own_name(path: str | os.PathLike[str]) -> str:
    """Return a directory name, also if it was given as `.`."""
    place = as_path(path)
    return place.name if place.name not in ("", "..") else place.resolve().name


def _numbers_text(numbers: Collection[int]) -> str:
    """Return ` (0-3,7)`; nothing without numbers."""
    ranges: list[range] = []
    for number in sorted(numbers):
        if ranges and ranges[-1].stop == number:
            ranges[-1] = range(ranges[-1].start, number + 1)
        else:
            ranges.append(range(number, number + 1))
    return f" ({','.join(map(_range_text, ranges))})" if ranges else ""


def _range_text(numbers: range) -> str:
    return str(numbers.start) if len(numbers) == 1 else f"{numbers.start}-{numbers.stop - 1}"
