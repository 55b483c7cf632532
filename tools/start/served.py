"""What a broker serves: records by isolation level, offsets of times, records at offsets, and a group's commits.

Kafka's own consumer reads: librdkafka ends the process at some damaged batches.
"""

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

START_MS = 1_704_067_200_000
"""2024-01-01: times of the records begin here, a minute after another."""
MINUTE_MS = 60_000
TIMES = [str(START_MS + minute * MINUTE_MS) for minute in (3, 9, 15)]
LEVELS = ("read_uncommitted", "read_committed")
GROUP = "readers"
NEW = "new"
"""The digest of a record that the reader has appended."""
READ_SECONDS = 90

Records = dict[int, str]
"""By offset: a digest of time, key and value."""


class Served(NamedTuple):
    """What a topic's only partition gives.

    records: by isolation level. sought: the first offset that comes from each of some offsets. times: the offsets of
    some times. is_appended: whether a new record was taken, and came back.
    """

    records: Mapping[str, Records]
    sought: Mapping[str, str]
    times: Mapping[str, str]
    is_appended: bool


class Answers(NamedTuple):
    """All that a broker serves: by topic, its topics but internal ones, and the group's commits."""

    topics: frozenset[str]
    served: Mapping[str, Served]
    commits: Mapping[str, str]


def read_all(kafka: Any, port: int, quiet: str, offsets: Mapping[str, Iterable[int]]) -> Answers:
    """Append a record to each topic, then read all in all ways; `offsets`: where to begin reading, too."""
    command = kafka.command("ReadDamaged", f"127.0.0.1:{port}", GROUP, *TIMES, options=[quiet])
    asked = "".join(f"{topic} {' '.join(map(str, each))}".rstrip() + "\n" for topic, each in offsets.items())
    try:
        said = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=READ_SECONDS, check=False
        ).stdout
    except subprocess.TimeoutExpired as expired:
        said = (expired.stdout or b"").decode()
    lines: dict[str, list[list[str]]] = defaultdict(list)
    for line in said.splitlines():
        kind, *words = line.split(" ")
        lines[kind].append(words)
    topics = frozenset(name for (name,) in lines["topic"] if not name.startswith("__"))
    served = {topic: _served(topic, lines) for topic in topics}
    return Answers(topics, served, dict(tuple(words) for words in lines["commit"]))


def _served(topic: str, lines: Mapping[str, list[list[str]]]) -> Served:
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
