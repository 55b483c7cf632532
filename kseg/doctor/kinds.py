"""Kinds of findings of the doctor, the next step for each, and impossible timestamps."""

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from kseg import kernel
from kseg.findings.finding_kind import FindingKind, Severity
from kseg.findings.kinds import FINDINGS
from kseg.findings.tier_kinds import TIER_FINDINGS
from kseg.formats.codes import NO_TIMESTAMP
from kseg.formats.file_names import FileKind, parse_file_name, parse_partition_directory
from kseg.index.header_scan import header_of
from kseg.kernel.contract import ROW, VALID
from kseg.log.partition import LEADER_EPOCH_CHECKPOINT, METADATA_TOPIC, PARTITION_METADATA, PartitionLog
from kseg.log.segment_listing import SegmentListing
from kseg.log.segments import SegmentFiles
from kseg.reading.batch import BatchHeader
from kseg.reading.bodies import Slice

_FIRST_RECORDS = 5


class Place(NamedTuple):
    """The place of a finding.

    directory: of the partition; None for a log directory's own trouble. log_dirs: all examined ones; none if a
    partition was given directly. has_log: the partition has a log. size: bytes concerned.
    """

    id: str
    file: Path
    directory: Path | None
    log_dirs: tuple[Path, ...] = ()
    topic: str | None = None
    producer_id: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    size: int | None = None
    has_log: bool = True


Words: TypeAlias = list[str] | None
"""The arguments of kseg; None if nothing is needed."""
NextStep: TypeAlias = Callable[[Place], Words]


def command_line(words: Sequence[str]) -> str:
    """Return the shell's line for these arguments of kseg; without control characters, whatever names have."""
    return " ".join(["kseg", *map(_quote, words)])


def _quote(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # bash, zsh and ksh read such a string; it is harmless to a terminal
    shown = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\x{byte:02x}" for byte in os.fsencode(word)
    )
    return f"$'{''.join(shown)}'"


def path_word(path: Path) -> str:
    """Return a path as given, in a form that no command reads as an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


def _where(place: Place) -> str:
    return path_word(place.file if place.directory is None else place.directory)


def nothing(_: Place) -> Words:
    """Return no command: nothing is needed."""
    return None


def explain(place: Place) -> Words:
    """Return the command that explains the kind of finding: only words can describe the step."""
    return ["doctor", "--explain", place.id]


def salvage(place: Place) -> Words:
    """Return the dry run that shows the recoverable and the lost records."""
    return ["salvage", _where(place), "--dry-run"] if place.has_log else explain(place)


def salvage_readable(place: Place) -> Words:
    """Return a dry run without batches that block consumers: the report has lines that move consumers past these."""
    return ["salvage", _where(place), "--drop-unreadable", "--dry-run"] if place.has_log else explain(place)


def reindex(place: Place) -> Words:
    """Return the dry run that shows the files to rebuild from the log."""
    if not place.has_log:
        return explain(place)
    where = path_word(place.file.parent) if place.file.name in _REBUILT else _where(place)
    return ["reindex", where, "--dry-run"]


_REBUILT = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
"""Small files that can be rebuilt; they may be missing."""


def mend_text(place: Place) -> Words:
    """Return the dry run that rebuilds two of the small files; the explanation for others."""
    return reindex(place) if place.file.name in _REBUILT else explain(place)


def look_up(place: Place) -> Words:
    """Return the lookup of the batches around missing offsets."""
    if place.first_offset is None:
        return explain(place)
    return ["lookup", _where(place), "--offset", str(place.first_offset)]


def list_ends(place: Place) -> Words:
    """Return the listing of offsets and sizes, to compare the partition's end with the other replicas'."""
    return ["ls", _where(place)] if place.has_log else explain(place)


def free_space(place: Place) -> Words:
    """Return the command that shows the topics whose retention to lower; without a size, the partitions by size."""
    if not place.size:
        return ["ls", _where(place), "--sort", "size"]
    return ["retain", _where(place), "--free", str(place.size)]


def _homes(place: Place) -> list[Path]:
    """Return the directories of one partition in all log directories, and the one in question."""
    found = parse_partition_directory(place.file)
    name = place.file.name if found is None else f"{found.topic}-{found.partition}"
    homes = (log_dir / name for log_dir in place.log_dirs if (log_dir / name).is_dir())
    return list(dict.fromkeys([*homes, place.file]))


def compare_copies(place: Place) -> Words:
    """The copies of one partition on several brokers, or on several disks of one."""
    return ["diff", *map(path_word, _homes(place))]


def show_metadata(show: str) -> NextStep:
    """Return the step that shows a kind of rows of the metadata found."""

    def step(place: Place) -> Words:
        if not any((log_dir / f"{METADATA_TOPIC}-0").is_dir() for log_dir in place.log_dirs):
            return explain(place)
        found = parse_partition_directory(place.file) if show == "partitions" else None
        chosen = [] if found is None else ["--topic", found.topic, "--partition", str(found.partition)]
        return ["metadata", *map(path_word, place.log_dirs), "--show", show, *chosen]

    return step


def open_transactions(place: Place) -> Words:
    """Return the command that shows the topic's open transactions, hanging ones with the command that aborts them."""
    if not place.log_dirs or place.topic is None:
        return ["txns", _where(place), "--open"]
    return ["txns", *map(path_word, place.log_dirs), "--open", "--topic", place.topic]


def keep_commits(place: Place) -> Words:
    """Return the command that saves the groups' commits as a CSV for resetting them."""
    return ["groups", _where(place), "-o", "reset-csv"]


def show_commits(place: Place) -> Words:
    """Return the command that shows the groups' commits, with the ends of logs and lags."""
    return ["groups", *map(path_word, place.log_dirs or [place.file]), "--show", "commits"]


def show_batches(place: Place) -> Words:
    """Return the command that shows the headers of the batches in question."""
    if place.first_offset is None or place.last_offset is None or parse_file_name(place.file).kind is not FileKind.LOG:
        return explain(place)
    ends = ["--from-offset", str(place.first_offset), "--to-offset", str(place.last_offset + 1)]
    return ["dump", path_word(place.file), "-o", "json", "--only", "batches", *ends]


def show_records(place: Place) -> Words:
    """Return the command that shows the first records in question, whose contents identify the application."""
    words = ["dump", _where(place), "-o", "json", "--only", "records", "--from-offset", str(place.first_offset or 0)]
    if place.producer_id is not None and place.producer_id >= 0:
        words += ["--producer-id", str(place.producer_id)]
    return [*words, "--limit", str(_FIRST_RECORDS)]


def show_retention(place: Place) -> Words:
    """Return the command that shows the segments that retention deletes, and when.

    The settings of one log directory apply to all.
    """
    return ["retain", *map(path_word, place.log_dirs or [place.file])]


COMMIT_BEYOND_END = "commit-beyond-end"
FUTURE, SECONDS, MICROSECONDS, NANOSECONDS = "future-times", "second-times", "microsecond-times", "nanosecond-times"
AHEAD_MS = 3_600_000
"""The most that a producer's clock may be ahead: the default of `message.timestamp.after.max.ms` from 4.0 on."""
MOST_PRODUCERS = 256
"""The most producers of a partition that are kept apart; the batches of others are reported together."""
_FIRST_SECOND = 1_000_000_000
"""September 2001 in seconds. As milliseconds it is a day of January 1970, before Kafka existed."""
_UNITS_BY_MS = ((NANOSECONDS, 1_000_000), (MICROSECONDS, 1000))


def unit_of(timestamp: int, now_ms: int) -> str | None:
    """Return the problem of a timestamp that should be in milliseconds, or None if there isn't one.

    A timestamp in other units is recognised by its value in these: between 2001 and now.
    """
    if timestamp > now_ms + AHEAD_MS:
        for name, factor in _UNITS_BY_MS:
            if _FIRST_SECOND * 1000 <= timestamp // factor <= now_ms + AHEAD_MS:
                return name
        return FUTURE
    return SECONDS if _FIRST_SECOND <= timestamp <= (now_ms + AHEAD_MS) // 1000 else None


class Author(NamedTuple):
    """The author of a timestamp: a producer, -1 one without an id, None an unknown one; or a broker itself."""

    producer_id: int | None
    is_broker: bool = False


@dataclass(frozen=True, slots=True)
class SuspectTimes:
    """Batches of one author in a partition with timestamps of one kind.

    id: their problem. file, position: of the first one. first_offset, last_offset: of all. batches: the number; None
    if only the segments' largest timestamps were read. largest: the largest timestamp.
    """

    id: str
    author: Author
    file: Path
    position: int | None
    first_offset: int
    last_offset: int
    batches: int | None
    largest: int


@dataclass(slots=True)
class _Tally:
    file: Path
    position: int
    first_offset: int
    last_offset: int
    batches: int = 0
    largest: int = NO_TIMESTAMP

    def add(self, header: BatchHeader) -> None:
        """Add another batch."""
        self.batches += 1
        self.last_offset = max(self.last_offset, header.last_offset)
        self.largest = max(self.largest, header.max_timestamp)


@dataclass(slots=True)
class TimesWatch:
    """A watch on the timestamps of batches while a partition is read; now_ms: later timestamps are impossible."""

    now_ms: int
    _tallies: dict[tuple[str, Author], _Tally] = field(default_factory=dict)

    def take(self, segment: SegmentFiles, piece: Slice) -> None:
        """Check batches of a segment."""
        run = piece.run
        columns = kernel.load().header_columns(run.buffer, run.rows, piece.first, piece.last, run.position)
        times = memoryview(columns.column("max_timestamp")).cast("B").cast("q")
        latest, last_second = self.now_ms + AHEAD_MS, (self.now_ms + AHEAD_MS) // 1000
        if min(times) > last_second and max(times) <= latest:
            return
        for place, timestamp in enumerate(times):
            if timestamp > latest or _FIRST_SECOND <= timestamp <= last_second:
                row = piece.first + place
                if run.rows[row * ROW + VALID]:
                    self._add(segment.path, header_of(run, row))

    def _add(self, path: Path, header: BatchHeader) -> None:
        name = unit_of(header.max_timestamp, self.now_ms)
        if name is None:
            return
        is_broker = header.is_log_append_time or header.is_control
        author = Author(None, is_broker=True) if is_broker else Author(header.producer_id)
        if len(self._tallies) >= MOST_PRODUCERS and (name, author) not in self._tallies:
            author = Author(None, is_broker)
        first = header.last_offset if header.base_offset is None else header.base_offset
        tally = self._tallies.setdefault((name, author), _Tally(path, header.position, first, header.last_offset))
        tally.add(header)

    def finish(self) -> list[SuspectTimes]:
        """Return the results so far."""
        return [
            SuspectTimes(
                id=name,
                author=author,
                file=tally.file,
                position=tally.position,
                first_offset=tally.first_offset,
                last_offset=tally.last_offset,
                batches=tally.batches,
                largest=tally.largest,
            )
            for (name, author), tally in self._tallies.items()
        ]


def suspect_segments(partition: PartitionLog, rows: Iterable[SegmentListing], now_ms: int) -> list[SuspectTimes]:
    """Return suspects by the segments' largest timestamps alone, without their batches: the author is unknown."""
    logs = {segment.base_offset: segment.path for segment in partition.segments}
    found: dict[str, SuspectTimes] = {}
    for row in rows:
        name = unit_of(row.largest_timestamp, now_ms)
        if name is None or row.base_offset not in logs:
            continue
        last = row.base_offset if row.last_offset is None else row.last_offset
        known = found.get(name)
        found[name] = SuspectTimes(
            id=name,
            author=Author(None),
            file=logs[row.base_offset] if known is None else known.file,
            position=None,
            first_offset=row.base_offset if known is None else known.first_offset,
            last_offset=last,
            batches=None,
            largest=max(row.largest_timestamp, NO_TIMESTAMP if known is None else known.largest),
        )
    return list(found.values())


_PINS = (
    "Time-based retention keeps the segment and all later segments until that time has passed, so the disk fills"
    " up. Lookups by timestamp return the wrong records."
)
_WHOSE = (
    "Find the application that writes these records and fix it; the command shows the first records. To correct"
    " or reject new records, set `message.timestamp.type=LogAppendTime` for the topic, or"
    " `message.timestamp.after.max.ms` in Kafka 3.6 and later. When nobody needs the old records any more, delete"
    " them with `retention.bytes` or `kafka-delete-records.sh`."
)

OWN: dict[str, FindingKind] = {
    # the disk and its directories
    "disk-full": FindingKind(
        Severity.ERROR,
        "There is no free space left in the file system of a log directory.",
        "The next time a broker writes to the directory, it takes it offline or exits.",
        "Lower the retention of the topics listed by the command until 10% of the disk is free. A stopped broker"
        " needs some space to start, so free it outside the log directories. Never delete partition files while a"
        " broker is using them.",
    ),
    "disk-nearly-full": FindingKind(
        Severity.WARNING,
        "Less than 5% of the file system of a log directory is free.",
        "When there is no space left, a broker takes the log directory offline or exits.",
        "Lower the retention of the topics listed by the command until 10% of the disk is free, or add space.",
    ),
    "empty-directory": FindingKind(
        Severity.NOTE,
        "A partition directory doesn't contain any log files.",
        "A broker creates an empty log in the directory. If the partition had records, they are lost in this copy.",
        "If the partition had records, use an intact replica.",
    ),
    "retention-due": FindingKind(
        Severity.NOTE,
        "Some segments are due for deletion because of their age, the size of the partition, or the log start offset.",
        "This is normal on a running broker, which deletes the segments at its next check"
        " (`log.retention.check.interval.ms`). A stopped broker deletes them soon after it starts.",
        "The command lists the segments and the reason for deleting each of them. If you still need the records,"
        " copy them before you start a broker on this disk.",
    ),
    # groups
    COMMIT_BEYOND_END: FindingKind(
        Severity.WARNING,
        "The committed offset of a consumer group is beyond the end of the log.",
        "Either records were lost, or the topic was re-created. The consumer gets an OFFSET_OUT_OF_RANGE error"
        " and, depending on `auto.offset.reset`, skips to the end, reads everything again, or stops.",
        "If other brokers have the partition, add their log directories. Otherwise, stop the consumers of the"
        " group and reset it to an offset in the log (`kafka-consumer-groups.sh --reset-offsets`).",
    ),
    # clocks
    NANOSECONDS: FindingKind(
        Severity.WARNING,
        "The timestamps of some records appear to be in nanoseconds, but Kafka reads them as milliseconds.",
        _PINS,
        _WHOSE,
    ),
    MICROSECONDS: FindingKind(
        Severity.WARNING,
        "The timestamps of some records appear to be in microseconds, but Kafka reads them as milliseconds.",
        _PINS,
        _WHOSE,
    ),
    FUTURE: FindingKind(
        Severity.WARNING, "Some records have timestamps that are more than an hour in the future.", _PINS, _WHOSE
    ),
    SECONDS: FindingKind(
        Severity.WARNING,
        "The timestamps of some records appear to be in seconds. Kafka reads them as milliseconds, so they fall"
        " in January 1970.",
        "If all timestamps in a segment are in seconds, time-based retention deletes the segment at the next"
        " check. Lookups by timestamp miss the records.",
        "Find the application that writes these records and fix it; the command shows the first records. Until"
        " then, set `message.timestamp.type=LogAppendTime` for the topic, so new records get the broker's time,"
        " and set `retention.ms=-1` to keep the existing records.",
    ),
    "clock-behind": FindingKind(
        Severity.NOTE,
        "The clock of this machine is behind the modification times of some files.",
        'This is harmless, because kseg uses the latest modification time as "now" instead.',
        "Correct the clock of this machine, or specify the current time with `--now`.",
    ),
}
"""By id: the kinds that `verify` doesn't have."""

KINDS: dict[str, FindingKind] = FINDINGS | TIER_FINDINGS | OWN
"""By id."""

CARE: dict[str, NextStep] = {
    # a broker stops, or deletes data
    "disk-full": free_space,
    "identity-missing": show_metadata("brokers"),
    "identity-differs": show_metadata("brokers"),
    "bootstrap-checkpoint": show_metadata("brokers"),
    "unpadded-name": explain,
    "misnamed-file": explain,
    "unclean-index": explain,
    "metadata-missing": show_metadata("brokers"),
    "metadata-checkpoint": show_metadata("brokers"),
    "other-owner": explain,
    "partition-twice": compare_copies,
    "foreign-directory": explain,
    "copy-missing": show_metadata("partitions"),
    "time-index-zeros": reindex,
    "leftover-log": explain,
    "another-topics-id": explain,
    "topic-id-missing": reindex,
    "log-start-beyond-end": explain,
    # records are lost, or will be at the next recovery
    "unreadable": explain,
    "changed-as-text": salvage,
    "foreign-content": explain,
    "bad-length": salvage,
    "bad-magic": salvage,
    "bad-crc": salvage,
    "cut-segment": salvage,
    "emptied-files": explain,
    "unclean-tail": salvage,
    "group-unloadable": keep_commits,
    "unclean-zeros": salvage,
    "log-end-lost": list_ends,
    "orphan-index": list_ends,
    "offset-below-base": salvage,
    "offset-too-far": explain,
    "offsets-fall": salvage,
    "duplicate-batch": salvage,
    "segment-overlap": salvage,
    "remote-lost": explain,
    "remote-manifest": explain,
    "remote-missing": explain,
    "remote-size": explain,
    "remote-gap": explain,
    # consumers get stuck, or miss records
    "bad-codec": salvage_readable,
    "bad-body": salvage_readable,
    "bad-record": salvage_readable,
    "bad-count": salvage_readable,
    "record-offsets": salvage_readable,
    "offsets-lost": look_up,
    "transaction-unindexed": reindex,
    "transaction-unfounded": reindex,
    "index-unreadable": reindex,
    "index-entry": reindex,
    "index-unsorted": reindex,
    "producer-state-wrong": reindex,
    "producer-state-missing": reindex,
    "unreadable-text": mend_text,
    # warnings: problems that grow
    "disk-nearly-full": free_space,
    "directory-unknown": show_metadata("brokers"),
    "copies-diverged": compare_copies,
    "other-topic-id": list_ends,
    "not-in-metadata": list_ends,
    "metadata-log": show_metadata("brokers"),
    "metadata-checkpoint-old": show_metadata("brokers"),
    "hanging-transaction": open_transactions,
    "checkpoint-beyond-end": list_ends,
    "snapshot-beyond-end": list_ends,
    "torn-tail": explain,
    SECONDS: show_records,
    NANOSECONDS: show_records,
    MICROSECONDS: show_records,
    FUTURE: show_records,
    "long-transaction": open_transactions,
    COMMIT_BEYOND_END: show_commits,
    "offsets-missing": look_up,
    "sequence-gap": show_batches,
    "sequence-repeated": show_batches,
    "producer-epoch-falls": show_batches,
    "max-timestamp": show_batches,
    "leader-epoch-falls": show_batches,
    "leader-epoch-checkpoint": reindex,
    "leader-epoch-unsorted": reindex,
    "leader-epochs-missing": reindex,
    "time-index-ends-early": reindex,
    "time-index-entry": reindex,
    "index-cut": reindex,
    "index-inexact": reindex,
    "index-sparse": reindex,
    "index-missing": reindex,
    "snapshot-content": reindex,
    "snapshot-unreadable": reindex,
    "remote-started": explain,
    "remote-unfinished": explain,
    "remote-deleted": explain,
    "remote-unknown": explain,
    # notes: disk space first, then harmless facts
    "retention-due": show_retention,
    "leftover-directory": list_ends,
    "leftover-file": explain,
    "clock-behind": explain,
    "partial-disk": show_metadata("partitions"),
    "zero-tail": list_ends,
    "open-transaction": open_transactions,
    "empty-directory": explain,
    "leader-epoch-beyond-end": list_ends,
    "leader-epochs-cleared": nothing,
    "index-rebuilt": nothing,
    "index-old-entries": nothing,
    "index-preallocated": nothing,
    "checkpoint-stale": nothing,
    "offsets-compacted": nothing,
    "remote-overlap": nothing,
    "remote-end": nothing,
}
"""The next step of each kind; within a severity, the most urgent first."""

_ALIKE = ("bad-length", "bad-magic", "bad-crc")
"""The look of bytes that aren't a batch is chance: the first of these is the most severe."""
URGENCY: dict[str, int] = {name: place for place, name in enumerate(CARE)}
URGENCY |= dict.fromkeys(_ALIKE, URGENCY[_ALIKE[0]])
"""The place of each kind among those of its severity."""
