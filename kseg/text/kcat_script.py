"""A shell script that sends records to a cluster with kcat: what kcat's options can say of each, and what they can't.

One run of kcat has one partition, one list of headers, and one meaning of empty. So records in a row that agree in
these share a run. Source: producer_run and add_header of kcat 1.7.1.
"""

import re
from base64 import encodebytes
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import count
from typing import NamedTuple

from kseg.errors import counted

TopicPartition = tuple[str, int]
Header = tuple[bytes, bytes | None]
HEAD = """\
#!/bin/sh
# Sends records of Kafka's logs to a cluster, in their order, by kcat (1.7.0 or later).
# Usage: sh FILE HOST:9092 [OPTION OF KCAT]...
# kcat can't send times: each record gets the time at which it is sent.
[ $# -gt 0 ] || { echo "usage: sh FILE HOST:9092 [OPTION OF KCAT]..." >&2; exit 2; }
server=$1
shift
options="-X message.max.bytes=1000000000 -X enable.idempotence=true"
send() {
    what=$1
    shift
    base64 -d | kcat -P -b "$server" $options "$@" || { echo "$what: not all of it was sent" >&2; exit 1; }
}
"""
CHUNK = 1 << 20
"""Bytes of records from which on a run of kcat gets no more of them."""
FRAME = 64
"""Bytes that a record counts for at least, however short it is."""
LARGEST_RECORD = 100 << 20
"""Bytes of a record's key and value: no broker takes more without settings of its own."""
LARGEST_HEADERS = 100_000
"""Bytes of a record's headers: a process gets 128 KiB per argument."""
SHOWN_REFUSALS = 20
_LIKE_DELIMITER = re.compile(rb"(?=\x1e[km]([0-9]{8}))")


class Content(Enum):
    """What a key or a value is."""

    NULL = "null"
    EMPTY = "empty"
    BYTES = "bytes"


class Meaning(Enum):
    """What kcat takes an empty key or value for, by its options."""

    EMPTY = ""
    NULL = "-Z "
    EMPTY_KEY_NULL_VALUE = "-Z -k '' "


_EMPTY, _NULL, _MIXED = Meaning.EMPTY, Meaning.NULL, Meaning.EMPTY_KEY_NULL_VALUE
MEANINGS: dict[tuple[Content, Content], frozenset[Meaning]] = {
    (Content.NULL, Content.NULL): frozenset({_NULL}),
    (Content.NULL, Content.EMPTY): frozenset(),  # kcat passes over an empty message
    (Content.NULL, Content.BYTES): frozenset({_EMPTY, _NULL}),
    (Content.EMPTY, Content.NULL): frozenset({_MIXED}),
    (Content.EMPTY, Content.EMPTY): frozenset({_EMPTY}),
    (Content.EMPTY, Content.BYTES): frozenset({_EMPTY, _MIXED}),
    (Content.BYTES, Content.NULL): frozenset({_NULL, _MIXED}),
    (Content.BYTES, Content.EMPTY): frozenset({_EMPTY}),
    (Content.BYTES, Content.BYTES): frozenset(Meaning),
}
"""Key and value, to the meanings under which kcat sends both as they are."""


class SentRecord(NamedTuple):
    """A record as far as it can be sent; its time, in milliseconds since 1970, can't."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")

    @property
    def meanings(self) -> frozenset[Meaning]:
        """Under which kcat sends it as it is."""
        return MEANINGS[_content(self.key), _content(self.value)]

    def refusal(self) -> str | None:
        """Why kcat can't send it; None if it can."""
        if not self.meanings:
            return "it has no key and an empty value, which kcat passes over"
        if self.size > LARGEST_RECORD:
            return f"it has {counted(self.size, 'byte')}, more than {LARGEST_RECORD}"
        if sum(len(name) + len(value or b"") for name, value in self.headers) > LARGEST_HEADERS:
            return f"its headers have more than {LARGEST_HEADERS} bytes"
        if any(not name or b"=" in name for name, _ in self.headers):
            return "a header's name is empty, or has a = in it"
        if any(b"\0" in name + (value or b"") for name, value in self.headers):
            return "a header has a zero byte"
        return None


def _content(part: bytes | None) -> Content:
    if part is None:
        return Content.NULL
    return Content.BYTES if part else Content.EMPTY


class KcatScript:
    """Writes the script piece by piece: as soon as records can't share a run of kcat, or are many, what there is.

    sent: how many records; first_timestamp, last_timestamp: the earliest and latest of their times, None without any.
    refused: how many can't be sent.
    """

    def __init__(self, write: Callable[[bytes], object], say: Callable[[str], None]) -> None:
        """Takes what writes, and what takes a line about each of the first records that can't be sent."""
        self.sent = 0
        self.refused = 0
        self.first_timestamp: int | None = None
        self.last_timestamp: int | None = None
        self._write = write
        self._say = say
        self._has_head = False
        self._forget()

    def _forget(self) -> None:
        self._place: TopicPartition | None = None
        self._records: list[SentRecord] = []
        self._meanings = frozenset(Meaning)
        self._size = 0

    def add(self, place: TopicPartition, record: SentRecord) -> None:
        """Adds a record of a partition; those of a partition come in their order."""
        reason = record.refusal()
        if reason is not None:
            self.refuse(place, record.offset, reason)
            return
        if not self._shares_run(place, record):
            self.flush()
        self._place = place
        self._records.append(record)
        self._meanings &= record.meanings
        self._size += record.size + FRAME
        self._count(record.timestamp)

    def refuse(self, place: TopicPartition, offset: int, reason: str) -> None:
        """Counts a record that can't be sent; says so of the first ones."""
        self.refused += 1
        if self.refused <= SHOWN_REFUSALS:
            self._say(f"{place[0]}-{place[1]}: offset {offset}: not sent: {reason}")

    def _shares_run(self, place: TopicPartition, record: SentRecord) -> bool:
        if not self._records:
            return True
        is_alike = self._place == place and self._records[0].headers == record.headers
        return is_alike and bool(self._meanings & record.meanings) and self._size < CHUNK

    def _count(self, timestamp: int) -> None:
        self.sent += 1
        if timestamp >= 0:
            self.first_timestamp = min(timestamp, timestamp if self.first_timestamp is None else self.first_timestamp)
            self.last_timestamp = max(timestamp, self.last_timestamp or 0)

    def flush(self) -> None:
        """Writes the records that are there as one run of kcat.

        A shell reads what stands in braces to its end before it begins: what was cut off is never sent.
        """
        if not self._records or self._place is None:
            return
        if not self._has_head:
            self._write(HEAD.encode())
            self._has_head = True
        framing, (topic, partition) = _Framing(self._records), self._place
        self._write(self._command(topic, partition, framing))
        self._write(encodebytes(b"".join(map(framing.framed, self._records))))
        self._write(b"END\n}\n")
        self._forget()

    def _command(self, topic: str, partition: int, framing: "_Framing") -> bytes:
        """The beginning of a run of kcat."""
        what = f"{topic}-{partition}, offsets {self._records[0].offset} to {self._records[-1].offset}"
        meaning = next(each for each in Meaning if each in self._meanings).value
        words = [b"{ send", _quoted(what.encode()), f"-t {topic} -p {partition} {meaning}{framing.options}".encode()]
        for name, value in self._records[0].headers:
            words += [b"-H", _quoted(name if value is None else name + b"=" + value)]
        return b" ".join([*words, b"\"$@\" <<'END'\n"])


class _Framing:
    """Records between delimiters that none of their keys and values has.

    No delimiter begins with a part that another, or itself, ends with: each is found where it was put.
    """

    def __init__(self, records: Iterable[SentRecord]) -> None:
        parts = (part for record in records for part in (record.key, record.value) if part)
        taken = {number for part in parts for number in _LIKE_DELIMITER.findall(part)}
        number = next(number for number in map(b"%08d".__mod__, count()) if number not in taken)
        self.options = f"-K '\\x1ek{number.decode()}' -D '\\x1em{number.decode()}'"
        self._key_end = b"\x1ek" + number
        self._record_end = b"\x1em" + number

    def framed(self, record: SentRecord) -> bytes:
        """A record as kcat reads it; one with a value alone has no key."""
        if record.key is None and record.value:
            return record.value + self._record_end
        return b"".join((record.key or b"", self._key_end, record.value or b"", self._record_end))


_PLAIN = re.compile(rb"[A-Za-z0-9._=-]+")


def _quoted(word: bytes) -> bytes:
    """A word for the shell."""
    return word if _PLAIN.fullmatch(word) else b"'" + word.replace(b"'", b"'\\''") + b"'"
