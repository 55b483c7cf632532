"""Lines of a broker's log that indicate findings, and the reading of such a log (`server.log`)."""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import NamedTuple, cast

from kseg.errors import UnreadableError, UsageError, reason
from kseg.system.files import open_regular


class KnownLine(NamedTuple):
    """A message in a broker log that indicates findings.

    words: the broker's own; `…` is anything, `{file}`, `{dir}`, `{partition}` and `{offset}` stand for names. ids: of
    the findings, the likeliest first. place: the file or directory to check. under: words that the entry's first line
    must have, if its exception alone is ambiguous. release: the release with these words, if releases differ.
    refuses_at: patterns of `PATH: SENTENCE`; a broker logs the words when it refuses to start at a finding that has
    one of them.
    """

    words: str
    ids: tuple[str, ...]
    place: str = "{file}"
    under: str = ""
    release: str = ""
    refuses_at: tuple[str, ...] = ()

    @property
    def readable(self) -> str:
        """The words with the variable parts in capitals."""
        words = re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), self.words)
        return f"{words} (Kafka {self.release})" if self.release else words


_PROPERTIES = "meta.properties"
_IN_DIRECTORY = "{dir}/meta.properties"
_METADATA = "__cluster_metadata-0"
_SEGMENT = "{dir}/{partition}/{offset}.log"
_STARTING = "starting SharedServer"
_LOADING = "during logs loading"

_TEXT = ("unreadable-text", "other-owner", "unreadable")
_CUT = ("bad-crc", "torn-tail", "unclean-tail", "cut-segment", "bad-length", "zero-tail", "bad-magic", "offsets-fall")
_CUT_METADATA = ("metadata-log", "zero-tail", "torn-tail")
_SHORT = ("unclean-zeros", "cut-segment", "bad-length", "zero-tail", "torn-tail", "bad-crc", "bad-magic")
_IMAGE = ("metadata-checkpoint", "metadata-log", "metadata-missing")
_STRAY = (
    *("not-in-metadata", "topic-id-missing", "other-topic-id", "copy-missing", "unreadable-text"),
    *("metadata-checkpoint", "metadata-missing"),
)
_INDEX = ("index-rebuilt", "unclean-index", "index-preallocated", "index-cut", "index-unsorted", "index-entry")
_READ_BY_CHANNEL = (
    *("*.log: *", "*.index: *", "*.timeindex: *", "*.txnindex: *", "*.snapshot: *", "*/[0-9]*.checkpoint: *"),
    *("*/quorum-state: *", "*/partition.metadata: *"),
)

KNOWN_LINES: tuple[KnownLine, ...] = (
    # small files
    KnownLine("Malformed line in checkpoint file [{file}]: ", ("unreadable-text",), release="3.9.1 and later"),
    KnownLine("Malformed line in checkpoint file ({file}): ", ("unreadable-text",), release="2.8.2"),
    KnownLine(
        "Expected […] entries in checkpoint file [{file}], but found only",
        ("unreadable-text",),
        release="3.9.1 and later",
    ),
    KnownLine("Expected … entries in checkpoint file ({file}), but found only", ("unreadable-text",), release="2.8.2"),
    KnownLine("Malformed line in partition metadata file [{file}]: ", ("unreadable-text",)),
    KnownLine("Error while reading checkpoint file {file}", _TEXT, refuses_at=("*-checkpoint: *",)),
    KnownLine(
        "Error while reading partition metadata file {file}",
        _TEXT,
        refuses_at=("*/partition.metadata: line 2: the file has 1 line,*",),
    ),
    KnownLine("Failed to access checkpoint file {file} in dir {dir}", _TEXT, "{dir}/{file}"),
    KnownLine("Error occurred while reading {file} file of directory {dir}, resetting", _TEXT, "{dir}/{file}"),
    KnownLine(
        "QuorumStateData: unable to locate field …",
        ("unreadable-text",),
        f"{_METADATA}/quorum-state",
        refuses_at=("*/quorum-state: * is missing",),
    ),
    KnownLine(
        "Error while reading the Quorum status from the file {file}", _TEXT, refuses_at=("*/quorum-state: line *",)
    ),
    KnownLine(
        'Cannot invoke "java.lang.CharSequence.length()"',
        ("unreadable-text",),
        "partition.metadata",
        _LOADING,
        refuses_at=("*/partition.metadata: line 1: the file has 0 lines*",),
    ),
    KnownLine('Cannot invoke "java.lang.CharSequence.length()"', ("unreadable-text",), "partition.metadata", _STARTING),
    KnownLine(
        "Input string with prefix `…` is too long to be decoded",
        ("unreadable-text",),
        "partition.metadata",
        refuses_at=("*/partition.metadata: *… isn't a topic id*",),
    ),
    KnownLine(
        "Input string `…` decoded as … bytes, which is not …",
        ("unreadable-text",),
        "partition.metadata",
        refuses_at=("*/partition.metadata: * isn't a topic id*",),
    ),
    # the identity of a directory
    KnownLine("Unable to read … as a Uuid: ", ("unreadable-text",), _PROPERTIES),
    KnownLine(
        "Unknown meta.properties version number …",
        ("unreadable-text",),
        _PROPERTIES,
        refuses_at=("*/meta.properties: its version is *",),
    ),
    KnownLine(
        "Error: node ID not found in {dir}",
        ("unreadable-text",),
        _IN_DIRECTORY,
        refuses_at=("*/meta.properties: it has no *",),
    ),
    KnownLine("Error while reading meta.properties file {file}", _TEXT, refuses_at=("*/meta.properties: *",)),
    KnownLine(
        "No readable meta.properties files found.",
        ("identity-missing", "unreadable-text", "other-owner"),
        _PROPERTIES,
        refuses_at=("*/meta.properties: the file is missing*",),
    ),
    KnownLine("No `meta.properties` found in {dir} (have you run", ("identity-missing",), _IN_DIRECTORY),
    KnownLine(
        "Invalid cluster.id in: {file}. Expected …", ("identity-differs",), refuses_at=("*: its cluster.id is *",)
    ),
    KnownLine("doesn't match stored clusterId … in meta.properties", ("identity-differs",), _PROPERTIES),
    KnownLine("Unexpected error INCONSISTENT_CLUSTER_ID in", ("identity-differs",), _PROPERTIES),
    KnownLine(
        "Stored node id … doesn't match previous node id … in {file}. If you moved …",
        ("identity-differs",),
        release="3.9.1 and later",
        refuses_at=("*: its node.id is *",),
    ),
    KnownLine(
        "Configured broker.id … doesn't match stored broker.id … in meta.properties",
        ("identity-differs",),
        _PROPERTIES,
        release="2.8.2",
    ),
    KnownLine(
        "Duplicate directory ID … found. It was the ID of {dir}, but also of …",
        ("identity-differs",),
        _IN_DIRECTORY,
        refuses_at=("*: its directory.id is also the id of *",),
    ),
    # directories and files in a log directory
    KnownLine(
        "Found directory {dir}, '…' is not in the form of topic-partition",
        ("foreign-directory",),
        "{dir}",
        refuses_at=("*",),
    ),
    KnownLine(
        "Duplicate log directories for {partition} are found in both {dir} and …",
        ("partition-twice",),
        "{dir}",
        refuses_at=("*: also in *",),
    ),
    KnownLine(
        "Error while renaming dir for {partition} in log dir {dir}",
        ("partition-twice", "other-owner"),
        "{dir}/{partition}",
        refuses_at=("*: the same log directory has the partition's own directory",),
    ),
    KnownLine("Log in {dir} marked stray and renamed to", _STRAY, "{dir}"),
    KnownLine("Loaded stray log: {dir}", ("leftover-directory", "copy-missing"), "{dir}"),
    KnownLine(
        "Tried to assign topic ID … to log for topic partition __cluster_metadata-0",
        ("unreadable-text",),
        f"{_METADATA}/partition.metadata",
        refuses_at=("*/__cluster_metadata-0/partition.metadata: its topic id is *",),
    ),
    KnownLine(
        "Tried to assign topic ID … to log for topic partition {partition},",
        ("another-topics-id", "other-topic-id", "copy-missing"),
        "{partition}/partition.metadata",
    ),
    KnownLine(
        "Unable to start fetching {partition} with topic ID … due to InconsistentTopicIdException",
        ("another-topics-id", "other-topic-id", "copy-missing"),
        "{partition}/partition.metadata",
    ),
    KnownLine(
        'NumberFormatException: For input string: "',
        ("misnamed-file", "unreadable-text"),
        "",
        _LOADING,
        refuses_at=("*: its name begins with *, not with an offset*",),
    ),
    KnownLine('NumberFormatException: For input string: "', ("unreadable-text",), "leader-epoch-checkpoint", _STARTING),
    # permissions, and the disk itself
    KnownLine("IOException: Could not read file {file}", ("other-owner",), refuses_at=_READ_BY_CHANNEL),
    KnownLine("AccessDeniedException: {file}", ("other-owner",), refuses_at=("*",)),
    KnownLine("FileNotFoundException: {file} (Permission denied)", ("other-owner",)),
    KnownLine(
        "Disk error while locking directory {dir}",
        ("other-owner", "unreadable"),
        "{dir}/.lock",
        refuses_at=("*/.lock: *",),
    ),
    KnownLine("IOException: Input/output error", ("unreadable", "index-unreadable"), "", refuses_at=("*",)),
    KnownLine("IOException: No space left on device", ("disk-full",), "", refuses_at=("*",)),
    # the metadata of a node
    KnownLine(
        "Found record size … smaller than minimum record overhead (…) in file …bootstrap.checkpoint",
        ("bootstrap-checkpoint",),
        "bootstrap.checkpoint",
        refuses_at=("*/bootstrap.checkpoint: zero-tail *",),
    ),
    KnownLine(
        "… in the bootstrap metadata from the binary bootstrap metadata file: {file}",
        ("bootstrap-checkpoint",),
        refuses_at=("*",),
    ),
    KnownLine(
        "Found record size … smaller than minimum record overhead (…) in file …__cluster_metadata-0/{file}.",
        _CUT_METADATA,
        f"{_METADATA}/{{file}}",
    ),
    KnownLine(
        "Record size … is less than the minimum record overhead",
        ("metadata-checkpoint",),
        _METADATA,
        _STARTING,
        refuses_at=("*.checkpoint: zero-tail *",),
    ),
    KnownLine(
        "Record is corrupt (stored crc = …, computed crc = …)",
        ("metadata-checkpoint",),
        _METADATA,
        _STARTING,
        refuses_at=("*.checkpoint: bad-crc *", "*.checkpoint: * can't be read completely"),
    ),
    KnownLine(
        "Inconsistent snapshot state: there must be a snapshot at an offset larger then the current log start offset …",
        ("metadata-checkpoint",),
        _METADATA,
        _STARTING,
        refuses_at=("*.log: it begins at offset *",),
    ),
    KnownLine(
        "Error while loading snapshot OffsetAndEpoch…",
        ("metadata-checkpoint",),
        _METADATA,
        refuses_at=("*.checkpoint: it doesn't begin *", "*.checkpoint: torn-tail *"),
    ),
    KnownLine(
        "Unhandled fault in MetadataLoader#handleLoadSnapshot. Snapshot offset was", ("metadata-checkpoint",), _METADATA
    ),
    KnownLine("Unhandled fault in MetadataLoader#handleCommit", _IMAGE, _METADATA),
    KnownLine(
        "Error loading metadata log record from offset …",
        _IMAGE,
        _METADATA,
        refuses_at=("*.checkpoint: *belongs to another metadata log",),
    ),
    KnownLine("Unknown metadata version for FeaturesImage", _IMAGE, _METADATA),
    KnownLine("The metadata log appears to be empty", ("metadata-missing", "metadata-checkpoint"), _METADATA),
    KnownLine("Unexpected offset in append to __cluster_metadata-0", ("metadata-log",), _METADATA),
    # groups
    KnownLine("Failed to load metadata from {partition} with epoch", ("group-unloadable",), "{partition}"),
    KnownLine("IllegalStateException: Received a tombstone record to delete", ("group-unloadable",), ""),
    # logs and their indexes
    KnownLine(
        "Found invalid messages in log segment …__cluster_metadata-0/{file} at byte offset",
        _CUT_METADATA,
        f"{_METADATA}/{{file}}",
    ),
    KnownLine("Found invalid messages in log segment {file} at byte offset", _CUT),
    KnownLine(
        "partition=__cluster_metadata-0, dir={dir}] Corruption found in segment {offset}, truncating",
        _CUT_METADATA,
        f"{{dir}}/{_METADATA}/{{offset}}.log",
    ),
    KnownLine("partition={partition}, dir={dir}] Corruption found in segment {offset}, truncating", _CUT, _SEGMENT),
    KnownLine(
        "partition={partition}, dir={dir}] Found invalid offset during recovery. Deleting the corrupt segment",
        ("offsets-fall", "offset-below-base", "duplicate-batch"),
        "{dir}/{partition}",
    ),
    KnownLine(
        "Found record size … smaller than minimum record overhead (…) in file {file}.", _SHORT, refuses_at=("*: *",)
    ),
    KnownLine("Record is corrupt (stored crc = …, computed crc = …)", ("bad-crc", "metadata-log"), ""),
    KnownLine("Found invalid number of record headers", ("bad-record", "bootstrap-checkpoint"), ""),
    KnownLine(
        "Split operation is only permitted for segments with overflow, and the problem path is {file}",
        ("offset-below-base", "offset-too-far"),
        refuses_at=("*",),
    ),
    KnownLine(
        "Split operation is only permitted for segments with overflow", ("offset-below-base", "offset-too-far"), ""
    ),
    KnownLine("Unexpected offset in append to {partition}.", ("offsets-fall", "duplicate-batch"), "{partition}"),
    KnownLine(
        "Attempt to append an offset … no larger than the last offset appended (…) to {file}",
        ("offsets-fall", "duplicate-batch", "index-unsorted"),
    ),
    KnownLine(
        "Unexpected exception thrown when cleaning log …(dir={dir}, topic=",
        ("bad-crc", "bad-body", "bad-record", "bad-codec", "bad-length"),
        "{dir}",
    ),
    KnownLine(
        "__cluster_metadata-0, dir={dir}] Found an orphaned index file", ("metadata-log",), f"{{dir}}/{_METADATA}"
    ),
    KnownLine("Found an orphaned index file {file}", ("orphan-index",)),
    KnownLine("Could not find offset index file corresponding to log file {file}", ("index-missing",)),
    KnownLine("Found a corrupted index file corresponding to log file {file}", _INDEX),
    KnownLine("Corrupt index found, index file ({file}) has non-zero size", _INDEX),
    KnownLine("Index file {file} is corrupt, found … bytes", ("index-cut", "index-rebuilt")),
    KnownLine("IllegalArgumentException: newPosition > limit: (", ("unclean-index",), "", _LOADING, refuses_at=("*",)),
    KnownLine("Failed to load producer snapshot from '{file}", ("snapshot-unreadable",)),
    KnownLine(
        "dirty offset for partition {partition} is …, which is larger than the log end offset",
        ("checkpoint-stale",),
        "cleaner-offset-checkpoint",
    ),
)
"""Exact words before more general ones: of several that fit a line, the first one counts."""

STANDARD_INPUT = Path("-")
LONGEST_LINE = 1 << 16
"""The most bytes read of a line; the rest is skipped."""
MOST_CAUSES = 200
"""The most causes kept apart; later ones are counted with one of the same findings, if there is one."""
_LEVEL = re.compile(rb"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
_LEVEL_WITHIN = 100
_LOGGER = re.compile(r" \([\w.$]+\)$")
_AFTER_NAME = re.compile(r"[,']| due to ")
_OFFSET_DIGITS = 20
_GZIP = b"\x1f\x8b"


class LogLine(NamedTuple):
    """A line of a log that may be known; number: from 1. under: the first line of its entry, and that line's number."""

    number: int
    text: str
    under: str
    under_number: int


@dataclass(slots=True)
class NamedCause:
    """A broker's log lines about one cause.

    line: the number of the first line; text: this line. count: the number of entries about it. ids: of the possible
    findings, the likeliest first. place: the file or directory to check, empty if the line has none.
    """

    line: int
    text: str
    ids: tuple[str, ...]
    place: str
    count: int = 1

    def fits(self, other: "NamedCause") -> bool:
        """Return True if both may be the same cause."""
        return is_same_place(self.place, other.place) and not set(self.ids).isdisjoint(other.ids)

    def narrow(self, other: "NamedCause") -> None:
        """Keep the common findings, and the longer place."""
        self.ids = tuple(each for each in self.ids if each in other.ids)
        self.place = max(self.place, other.place, key=len)


def is_same_place(one: str, other: str) -> bool:
    """Return True if two paths may be of the same file: one ends like the other, or is unknown."""
    return one == other or not one or not other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def read_broker_log(path: Path) -> Iterator[LogLine]:
    """Yield the lines of a broker's log that may be known: warnings, errors, exceptions.

    `-` is standard input. Gzip files are decompressed. Raises OpenError if the file can't be opened, UnreadableError
    if it can't be read to the end.
    """
    with _open_log(path) as file:
        if file.peek(len(_GZIP))[: len(_GZIP)] != _GZIP:
            yield from _candidates(file, path)
            return
        import gzip
        import zlib

        with gzip.GzipFile(fileobj=file) as stream:
            try:
                yield from _candidates(stream, path)
            except (EOFError, zlib.error) as error:
                raise UnreadableError(
                    f"can't be decompressed: {reason(error)}; specify a complete file", path
                ) from error


def _open_log(path: Path) -> AbstractContextManager[BufferedReader]:
    if path != STANDARD_INPUT:
        return os.fdopen(open_regular(path)[0], "rb")
    if sys.stdin is None:
        raise UsageError("there is no standard input")
    return nullcontext(cast(BufferedReader, sys.stdin.buffer))


def _candidates(stream: BufferedIOBase, path: Path) -> Iterator[LogLine]:
    under, under_number, has_levels = "", 0, False
    for number, line in enumerate(_lines(stream, path), 1):
        is_first = _LEVEL.search(line, 0, _LEVEL_WITHIN) is not None
        has_levels = has_levels or is_first
        # words copied without their level are searched too
        is_candidate = not has_levels or b"WARN" in line or b"ERROR" in line or b"FATAL" in line or b"Exception" in line
        if is_first:
            under, under_number = _decode_line(line) if is_candidate else "", number
        if is_candidate:
            yield LogLine(number, under if is_first else _decode_line(line), under, under_number)


def _lines(stream: BufferedIOBase, path: Path) -> Iterator[bytes]:
    try:
        while line := stream.readline(LONGEST_LINE):
            yield line
            while len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                line = stream.readline(LONGEST_LINE)
    except OSError as error:
        raise UnreadableError(f"can't be read: {error.strerror or reason(error)}", path) from error


def _decode_line(line: bytes) -> str:
    return _LOGGER.sub("", line.decode("utf-8", "replace").rstrip())


def named_causes(lines: Iterable[LogLine]) -> list[NamedCause]:
    """Return the causes that the lines indicate, in order: each once, however often it is logged."""
    causes = _Causes()
    entry: list[NamedCause] = []
    entry_number = 0
    for line in lines:
        if line.under_number != entry_number:
            causes.join(entry)
            entry, entry_number = [], line.under_number
        cause = _cause_of(line)
        if cause is not None:
            _add_to_entry(entry, cause)
    causes.join(entry)
    return causes.all


def _add_to_entry(entry: list[NamedCause], cause: NamedCause) -> None:
    """Add a line's cause to its entry, or a more exact form of a cause that the entry has."""
    for place, known in enumerate(entry):
        if known.fits(cause):
            exact, other = (cause, known) if len(cause.ids) < len(known.ids) else (known, cause)
            exact.narrow(other)
            entry[place] = exact
            return
    if len(entry) < MOST_CAUSES:
        entry.append(cause)


class _Causes:
    """Causes of a log so far, indexed by place and by findings, since a log may repeat them very often."""

    def __init__(self) -> None:
        self.all: list[NamedCause] = []
        self._by_place: dict[str, list[NamedCause]] = {}
        self._by_ids: dict[tuple[str, ...], NamedCause] = {}

    def join(self, entry: Iterable[NamedCause]) -> None:
        """Add an entry's causes to those of earlier entries."""
        for cause in entry:
            known = self._known(cause)
            if known is not None:
                known.narrow(cause)
                known.count += 1
            elif len(self.all) >= MOST_CAUSES and cause.ids in self._by_ids:
                self._by_ids[cause.ids].count += 1
            elif len(self.all) < MOST_CAUSES:
                self.all.append(cause)
                self._by_place.setdefault(cause.place, []).append(cause)
                self._by_ids.setdefault(cause.ids, cause)

    def _known(self, cause: NamedCause) -> NamedCause | None:
        for places in (self._by_place.get(cause.place, ()), self.all):
            for each in places:
                if bool(each.place) == bool(cause.place) and each.fits(cause):
                    return each
        return None


def _cause_of(line: LogLine) -> NamedCause | None:
    for known, parts, longest in _parts():
        if longest in line.text and known.under in line.under and (names := _names(parts, line.text)) is not None:
            return NamedCause(line.number, line.text, known.ids, _place(known, names))
    return None


def _place(known: KnownLine, names: dict[str, str]) -> str:
    if "{file}" not in known.words and known.place == "{file}":
        return ""
    return known.place.format(**names)


@cache
def _parts() -> list[tuple[KnownLine, list[str], str]]:
    """Return the known lines, each with its words alternating with variable parts, and the longest of the words."""
    split = [(known, re.split(r"(…|\{\w+\})", known.words)) for known in KNOWN_LINES]
    return [(known, parts, max(parts[::2], key=len)) for known, parts in split]


def _names(parts: list[str], text: str) -> dict[str, str] | None:
    """Return the names in a line, or None without these words in this order.

    No backtracking, so that no line takes long.
    """
    end = text.find(parts[0])
    if end < 0:
        return None
    end += len(parts[0])
    names: dict[str, str] = {}
    for varying, literal in zip(parts[1::2], parts[2::2], strict=True):
        begin = end
        end = text.find(literal, begin) if literal else _end_of_name(text, begin)
        name = text[begin:end]
        if end < 0 or (varying != "…" and not name):
            return None
        names[varying[1:-1]] = name.zfill(_OFFSET_DIGITS) if varying == "{offset}" else name
        end += len(literal)
    return names


def _end_of_name(text: str, begin: int) -> int:
    """Return the end of a name after the last known words, if the line continues."""
    after = _AFTER_NAME.search(text, begin)
    return len(text) if after is None else after.start()


def lines_about(finding_id: str) -> list[str]:
    """Return a broker's words for a kind of finding, variable parts in capitals; those for it alone first."""
    known = sorted(
        (each for each in KNOWN_LINES if finding_id in each.ids), key=lambda each: each.ids.index(finding_id)
    )
    return list(dict.fromkeys(each.readable for each in known))
