"""Consequences of a start, by kind of finding. `golden/start` has the measurements."""

from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path

from kseg.findings.broker_log import KNOWN_LINES
from kseg.findings.findings import Finding
from kseg.formats.file_names import parse_file_name, parse_partition_directory
from kseg.system.placed_path import is_far


class AtStart(StrEnum):
    """The consequences for a node and its records, most severe first."""

    REFUSES = "refuses"
    EMPTY = "empty"
    LEADERLESS = "leaderless"
    """The broker runs, but fails at a partition, and leads none of the later ones, if any at all."""
    HIDES = "hides"
    """Partitions' directories become `-stray` ones, and the partitions begin as empty ones."""
    LOSES = "loses"
    "No consumer gets them: the start deletes them, or nothing of them is left to read."
    UNSERVED = "unserved"
    "Consumers don't get beyond damage that the start doesn't cut off: the records stay in the files."
    NO_GROUPS = "no-groups"
    """A partition of `__consumer_offsets` can't be loaded."""
    WRONG = "serves-wrong"
    """Some records are served twice, at wrong offsets, or although they were aborted; or lookups miss them."""
    WELL = "well"

    @property
    def rank(self) -> int:
        """The sort key, most severe first."""
        return list(AtStart).index(self)


BAD_BYTES = ("unreadable", "bad-length", "bad-magic", "bad-crc", "changed-as-text", "foreign-content")
"""Findings of bytes that aren't a batch: a recovery cuts the log there."""
UNREADABLE_RECORDS = ("bad-codec", "bad-body", "bad-record", "bad-count")
"""Findings of batches that block consumers."""
_BY_CONSEQUENCE = {
    AtStart.REFUSES: (
        *("foreign-directory", "misnamed-file", "partition-twice", "other-owner", "disk-full"),
        *("unreadable-text", "identity-missing", "identity-differs", "bootstrap-checkpoint", "metadata-checkpoint"),
        *("index-unreadable", "unclean-index", "unclean-zeros"),
    ),
    AtStart.EMPTY: ("metadata-missing",),
    AtStart.LEADERLESS: ("another-topics-id",),
    AtStart.HIDES: ("topic-id-missing",),
    AtStart.LOSES: (
        *BAD_BYTES,
        *("unclean-tail", "log-end-lost", "cut-segment", "offsets-lost", "record-offsets", "orphan-index"),
        *("emptied-files", "time-index-zeros", "leftover-log", "log-start-beyond-end", "copy-missing", "no-copy"),
        "unpadded-name",
        *("remote-manifest", "remote-missing", "remote-size", "remote-gap", "remote-lost"),
    ),
    AtStart.UNSERVED: UNREADABLE_RECORDS,  # their CRCs are right, so that a recovery doesn't cut there
    AtStart.NO_GROUPS: ("group-unloadable",),
    AtStart.WRONG: (
        *("offsets-fall", "duplicate-batch", "segment-overlap", "offset-below-base", "offset-too-far"),
        *("index-unsorted", "index-entry", "transaction-unindexed", "transaction-unfounded"),
        *("producer-state-wrong", "producer-state-missing"),
    ),
}
AT_START = {finding_id: each for each, ids in _BY_CONSEQUENCE.items() for finding_id in ids}
"""By the finding's id; other findings don't disturb a start."""
_IF_RECOVERED = {"offset-below-base": AtStart.REFUSES}
"""The consequence if the start recovers the log."""


def at_start(finding_id: str, *, is_recovered: bool | None) -> AtStart:
    """Return the consequence of a finding at a start.

    is_recovered: whether it recovers the segment, as it does after a kill from the recovery point on; None if that
    isn't known. It cuts no other segment. Source: LogLoader.recoverLog; 2.8: Log.recoverLog.
    """
    usual = AT_START.get(finding_id, AtStart.WELL)
    if is_recovered:
        return _IF_RECOVERED.get(finding_id, usual)
    return AtStart.UNSERVED if is_recovered is False and finding_id in BAD_BYTES else usual


def refusal(finding: Finding) -> str | None:
    """Return a broker's log line when it refuses to start at a finding, with names of files, or None if unknown.

    A store's files aren't a broker's: their read errors don't apply to its own disk.
    """
    if is_far(finding.file):
        return None
    for known in KNOWN_LINES:
        if finding.id in known.ids and any(
            fnmatch(f"/{finding.file}: {finding.sentence}", each) for each in known.refuses_at
        ):
            return _fill_words(known.words, finding.file, is_directory=known.place == "{dir}")
    return None


def _fill_words(words: str, file: Path, *, is_directory: bool) -> str:
    """Return the words with the names of a broker in them."""
    name = parse_partition_directory(file) or parse_partition_directory(file.parent)
    directory = file if is_directory else file.parent
    partition = file.parent.name if name is None else f"{name.topic}-{name.partition}"
    offset = parse_file_name(file).base_offset
    filled = words.format(file=file, dir=directory, partition=partition, offset=offset)
    if filled.endswith(': "'):
        return f'{filled}{file.name.partition(".")[0]}"'  # the part that a broker reads as an offset
    filled = filled.replace("'…'", f"'{file.name}'")
    return filled.rstrip(": (.")
