"""A shell script that sends records to a cluster with kcat, as far as kcat's options allow.

One run of kcat has one partition, one list of headers, and one meaning of empty. Consecutive records that agree in
these share a run. Source: producer_run and add_header of kcat 1.7.1.
"""

import re
from base64 import encodebytes
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import count
from typing import NamedTuple

from kseg.errors import plural

TopicPartition = tuple[str, int]
Header = tuple[bytes, bytes | None]
HEAD = """\
#!/bin/sh
# Sends records from Kafka's logs to a cluster in order, with kcat (1.7.0 or later).
# Usage: sh FILE HOST:9092 [OPTION OF KCAT]...
# kcat can't send timestamps: each record gets the time at which it is sent.
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
"""Bytes of records after which a run of kcat ends."""
FRAME = 64
"""Fewest bytes that a record counts for."""
LARGEST_RECORD = 100 << 20
"""Most bytes of a record's key and value: a broker accepts more only with changed settings."""
LARGEST_HEADERS = 100_000
"""Most bytes of a record's headers: a process gets 128 KiB per argument."""
SHOWN_REFUSALS = 20
_LIKE_DELIMITER = re.compile(rb"(?=\x1e[km]([0-9]{8}))")


class Content(Enum):
    """Content of a key or a value."""

    NULL = "null"
    EMPTY = "empty"
    BYTES = "bytes"


class Meaning(Enum):
    """Meaning of an empty key or value, which kcat's options decide."""

    EMPTY = ""
    NULL = "-Z "
    EMPTY_KEY_NULL_VALUE = "-Z -k '' "


_EMPTY, _NULL, _MIXED = Meaning.EMPTY, Meaning.NULL, Meaning.EMPTY_KEY_NULL_VALUE
MEANINGS: dict[tuple[Content, Content], frozenset[Meaning]] = {
    (Content.NULL, Content.NULL): frozenset({_NULL}),
    (Content.NULL, Content.EMPTY): frozenset(),  # kcat skips an empty message
    (Content.NULL, Content.BYTES): frozenset({_EMPTY, _NULL}),
    (Content.EMPTY, Content.NULL): frozenset({_MIXED}),
    (Content.EMPTY, Content.EMPTY): frozenset({_EMPTY}),
    (Content.EMPTY, Content.BYTES): frozenset({_EMPTY, _MIXED}),
    (Content.BYTES, Content.NULL): frozenset({_NULL, _MIXED}),
    (Content.BYTES, Content.EMPTY): frozenset({_EMPTY}),
    (Content.BYTES, Content.BYTES): frozenset(Meaning),
}
"""By contents of key and value: the meanings under which kcat sends both unchanged."""


class SentRecord(NamedTuple):
    """The parts of a record that kcat can send. The timestamp isn't one; it is in milliseconds since 1970."""

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
        """Meanings under which kcat sends the record unchanged."""
        return MEANINGS[_content(self.key), _content(self.value)]

    def refusal(self) -> str | None:
        """Return why kcat can't send the record, or None if it can."""
        if not self.meanings:
            return "it has no key and an empty value: kcat skips it"
        if self.size > LARGEST_RECORD:
            return f"it has {plural(self.size, 'byte')}, the limit is {LARGEST_RECORD}"
        if sum(len(name) + len(value or b"") for name, value in self.headers) > LARGEST_HEADERS:
            return f"its headers have more than {LARGEST_HEADERS} bytes"
        if any(not name or b"=" in name for name, _ in self.headers):
            return "a header's name is empty or contains ="
        if any(b"\0" in name + (value or b"") for name, value in self.headers):
            return "a header contains a zero byte"
        return None


def _content(part: bytes | None) -> Content:
    if part is None:
        return Content.NULL
    return Content.BYTES if part else Content.EMPTY


class KcatScript:
    """Write the script in pieces: a piece ends when records can't share a run of kcat, or when it is large enough.

    sent: number of records. first_timestamp, last_timestamp: earliest and latest timestamp, None without any. refused:
    number of records that can't be sent.
    """

    def __init__(self, write: Callable[[bytes], object], say: Callable[[str], None]) -> None:
        """Take a writer of bytes, and a function that reports each of the first records that can't be sent."""
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
        """Add a record; records of a partition come in their order."""
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
        """Count a record that can't be sent; report the first few."""
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
        """Write the collected records as one run of kcat.

        A shell reads text in braces to its end before it begins, so a truncated run is never sent.
        """
        if not self._records or self._place is None:
            return
        if not self._has_head:
            self._write(HEAD.encode())
            self._has_head = True
        framing, (topic, partition) = _Framing(self._records), self._place
        self._write(self._command(topic, partition, framing))
        self._write(encodebytes(b"".join(map(framing.frame, self._records))))
        self._write(b"END\n}\n")
        self._forget()

    def _command(self, topic: str, partition: int, framing: "_Framing") -> bytes:
        """Return the beginning of a run of kcat."""
        what = f"{topic}-{partition}, offsets {self._records[0].offset} to {self._records[-1].offset}"
        meaning = next(each for each in Meaning if each in self._meanings).value
        words = [b"{ send", _quote(what.encode()), f"-t {topic} -p {partition} {meaning}{framing.options}".encode()]
        for name, value in self._records[0].headers:
            words += [b"-H", _quote(name if value is None else name + b"=" + value)]
        return b" ".join([*words, b"\"$@\" <<'END'\n"])


class _Framing:
    """Delimiters of records that occur in none of their keys and values.

    No delimiter begins with a part that another delimiter, or itself, ends with. So each is found at its own position.
    """

    def __init__(self, records: Iterable[SentRecord]) -> None:
        parts = (part for record in records for part in (record.key, record.value) if part)
        taken = {number for part in parts for number in _LIKE_DELIMITER.findall(part)}
        number = next(number for number in map(b"%08d".__mod__, count()) if number not in taken)
        self.options = f"-K '\\x1ek{number.decode()}' -D '\\x1em{number.decode()}'"
        self._key_end = b"\x1ek" + number
        self._record_end = b"\x1em" + number

    def frame(self, record: SentRecord) -> bytes:
        """Return a record in the form that kcat reads; a record with only a value has no key."""
        if record.key is None and record.value:
            return record.value + self._record_end
        return b"".join((record.key or b"", self._key_end, record.value or b"", self._record_end))


_PLAIN = re.compile(rb"[A-Za-z0-9._=-]+")


def _quote(word: bytes) -> bytes:
    return word if _PLAIN.fullmatch(word) else b"'" + word.replace(b"'", b"'\\''") + b"'"
