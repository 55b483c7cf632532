"""Generated selections of golden partitions, and a filter over the complete dump to compare them with."""

import json
import re
from base64 import b64decode
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests import golden, run

Object = dict[str, Any]


class Wanted(NamedTuple):
    """An option, and its records: of each the object with its batch's."""

    arguments: list[str]
    takes: Callable[[Object], bool]


class Chosen(NamedTuple):
    """A golden partition, and options."""

    partition: str
    options: list[Wanted]

    @property
    def arguments(self) -> list[str]:
        """All arguments of the options."""
        return [argument for option in self.options for argument in option.arguments]

    def records(self) -> list[Object]:
        """Return the records that all options select."""
        return [one for one in records_of(self.partition) if all(option.takes(one) for option in self.options)]


PARTITIONS = sorted(
    # Directories of a remote tier aren't partitions' own: tests/tiered/ compares these.
    {path.parent.relative_to(golden.ROOT).as_posix() for path in golden.files(".log") if "-remote" not in str(path)}
)
NOTHING: Object = {"offset": 0, "timestamp": 0, "key": None, "value": None, "producerId": -1, "headers": []}


@cache
def records_of(partition: str) -> list[Object]:
    """Return all records of a partition, with the members of their batches."""
    found, batch = [], {}
    for line in run.kseg(["dump", partition, "-q", "-o", "json"], golden.ROOT).stdout.splitlines():
        members = json.loads(line)
        if members["type"] == "batch":
            batch = members
        elif members["type"] == "record":
            found.append({**batch, **members})
    return found


def timestamp_of(record: Object) -> int:
    return -1 if record["timestamp"] is None else record["timestamp"]


def text_of(record: Object, name: str) -> bytes | None:
    if f"{name}Base64" in record:
        return b64decode(record[f"{name}Base64"])
    return None if record[name] is None else record[name].encode()


def from_offset(record: Object, more: int) -> Wanted:
    number = record["offset"] + more
    return Wanted(["--from-offset", str(number)], lambda one: one["offset"] >= number)


def to_offset(record: Object, more: int) -> Wanted:
    number = record["offset"] + more
    return Wanted(["--to-offset", str(number)], lambda one: one["offset"] < number)


def from_time(record: Object, more: int) -> Wanted:
    time = max(timestamp_of(record) + more, 0)
    return Wanted(["--from-time", f"{time}ms"], lambda one: timestamp_of(one) >= time)


def to_time(record: Object, more: int) -> Wanted:
    time = max(timestamp_of(record) + more, 0)
    return Wanted(["--to-time", f"{time}ms"], lambda one: 0 <= timestamp_of(one) < time)


def key(record: Object, _: int) -> Wanted:
    text = text_of(record, "key") or b""
    return Wanted(["--key", f"hex:{text.hex()}"], lambda one: text_of(one, "key") == text)


def key_regex(_: Object, more: int) -> Wanted:
    pattern = f"{'abk1-'[more + 2]}.*[0-9]$"
    return Wanted(["--key-regex", pattern], lambda one: is_found(pattern, text_of(one, "key")))


def is_found(pattern: str, text: bytes | None) -> bool:
    return text is not None and re.search(pattern, text.decode("utf-8", "surrogateescape")) is not None


def grep(record: Object, _: int) -> Wanted:
    """Select by a piece of the value that is valid as an argument and as a regular expression; else by an `e`."""
    text = (record.get("value") or "")[1:4]
    text = text if text and text.isprintable() and re.escape(text) == text else "e"
    return Wanted(["--grep", text], lambda one: text.encode() in (text_of(one, "value") or b""))


def header(record: Object, _: int) -> Wanted:
    name = next((each["key"] for each in record["headers"] if each.get("key")), "trace")
    return Wanted(["--header", name], lambda one: any(each.get("key") == name for each in one["headers"]))


def producer(record: Object, _: int) -> Wanted:
    number = producer_of(record)
    return Wanted(["--producer-id", str(number)], lambda one: producer_of(one) == number)


def producer_of(record: Object) -> int:
    return -1 if record["producerId"] is None else record["producerId"]


def transactional(_: Object, __: int) -> Wanted:
    return Wanted(["--transactional-only"], lambda one: bool(one["isTransactional"]))


def control(_: Object, __: int) -> Wanted:
    return Wanted(["--control"], lambda one: bool(one["isControl"]))


def no_control(_: Object, __: int) -> Wanted:
    return Wanted(["--no-control"], lambda one: not one["isControl"])


OPTIONS = (from_offset, to_offset, from_time, to_time, key, key_regex, grep, header, producer, transactional)
CONTROL_OPTIONS = (control, no_control)
PLACES = 1 << 16


@st.composite
def selections(draw: st.DrawFn, options: tuple[Callable[[Object, int], Wanted], ...] = OPTIONS) -> Chosen:
    """Return a partition, and one to three of the options.

    Their numbers and texts are from one of its records, or near it.
    """
    partition = PARTITIONS[draw(st.integers(0, len(PARTITIONS) - 1))]
    records = records_of(partition) or [NOTHING]
    numbers = draw(st.lists(st.integers(0, len(options) - 1), min_size=1, max_size=3, unique=True))
    places, more = st.integers(0, PLACES - 1), st.integers(-2, 2)
    if {control, no_control} <= {options[number] for number in numbers}:  # of one option, the last one counts
        numbers.remove(options.index(control))
    wanted = [options[number](records[draw(places) * len(records) // PLACES], draw(more)) for number in numbers]
    return Chosen(partition, wanted)
