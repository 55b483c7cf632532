"""The data that a broker serves: records by isolation level, offsets of times, records at offsets, group commits.

Kafka's own consumer reads, since librdkafka ends the process at some damaged batches.
"""

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from threading import Timer
from typing import NamedTuple

START_MS = 1_704_067_200_000
"""2024-01-01, when the records' timestamps begin, one minute apart."""
MINUTE_MS = 60_000
TIMES = [str(START_MS + minute * MINUTE_MS) for minute in (3, 9, 15)]
LEVELS = ("read_uncommitted", "read_committed")
GROUP = "readers"
NEW = "new"
"""Digest of a record that the reader has appended."""
READ_SECONDS = 90
END = "end\n"
"""End of the reader's answer to a request."""

Records = dict[int, str]
"""By offset: a digest of time, key and value."""


class Served(NamedTuple):
    """The data of a topic's only partition.

    records: by isolation level. sought: the first offset read from each of some offsets. times: the offsets of some
    times. is_appended: whether a new record was written and read.
    """

    records: Mapping[str, Records]
    sought: Mapping[str, str]
    times: Mapping[str, str]
    is_appended: bool


class Answers(NamedTuple):
    """All data that a broker serves: by topic, its topics without internal ones, and the group's commits."""

    topics: frozenset[str]
    served: Mapping[str, Served]
    commits: Mapping[str, str]


class Reader:
    """A Java process that reads from one broker after another; it ends with this program."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def read_all(self, port: int, offsets: Mapping[str, Iterable[int]]) -> Answers:
        """Append a record to each topic, then read all in all ways; `offsets`: additional starts of reading."""
        asked = "".join(f"{topic} {' '.join(map(str, each))}".rstrip() + "\n" for topic, each in offsets.items())
        return answers(self._lines(f"127.0.0.1:{port} {GROUP} {' '.join(TIMES)}\n{asked}\n"))

    def _lines(self, request: str) -> Iterator[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        patience = Timer(READ_SECONDS, process.kill)
        patience.start()
        yield from takewhile(lambda line: line.endswith("\n") and line != END, process.stdout)
        patience.cancel()


def answers(said: Iterable[str]) -> Answers:
    """Parse the lines of a reader."""
    lines: dict[str, list[list[str]]] = defaultdict(list)
    for line in said:
        kind, *words = line.rstrip("\n").split(" ")
        lines[kind].append(words)
    topics = frozenset(name for (name,) in lines["topic"] if not name.startswith("__"))
    served = {topic: _parse_topic(topic, lines) for topic in topics}
    return Answers(topics, served, dict(tuple(words) for words in lines["commit"]))


def _parse_topic(topic: str, lines: Mapping[str, list[list[str]]]) -> Served:
    records: dict[str, Records] = {level: {} for level in LEVELS}
    is_appended = False
    for level, name, offset, digest in lines["record"]:
        if name == topic and digest != NEW:
            records[level][int(offset)] = digest
        is_appended |= name == topic and digest == NEW
    sought, times = (
        {asked: found for name, asked, found in lines[kind] if name == topic} for kind in ("sought", "time")
    )
    return Served(records, sought, times, is_appended)
