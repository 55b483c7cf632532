"""The next command for each kind of finding: a whole command line that works, and that changes nothing by itself."""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from kseg.formats.names import FileKind, parse_file_name
from kseg.log.partition.partition_log import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA

_FIRST_RECORDS = 5


class Place(NamedTuple):
    """Where something was found.

    directory: of the partition; None of a log directory's own trouble. log_dirs: all that are looked at; none if a
    partition was given by itself. has_log: whether the partition has any. was_stopped_cleanly: whether the broker of
    its log directory left the file that says so. size: bytes that it is about.
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
    was_stopped_cleanly: bool = False


Words: TypeAlias = list[str] | None
"""The arguments of kseg; None if nothing is to be done."""
NextStep: TypeAlias = Callable[[Place], Words]


def command_line(words: Sequence[str]) -> str:
    """The line that a shell takes for these arguments of kseg; without control characters, whatever names have."""
    return " ".join(["kseg", *map(_quoted, words)])


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # bash, zsh and ksh read such a string; nothing in it does harm to a terminal
    shown = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\x{byte:02x}" for byte in os.fsencode(word)
    )
    return f"$'{''.join(shown)}'"


def path_word(path: Path) -> str:
    """A path that no command takes for an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text


def _where(place: Place) -> str:
    return path_word(place.file if place.directory is None else place.directory)


def nothing(_: Place) -> Words:
    """Nothing is to be done."""
    return None


def explain(place: Place) -> Words:
    """What to do can only be said in words."""
    return ["doctor", "--explain", place.id]


def salvage(place: Place) -> Words:
    """What can be saved, and what is lost."""
    return ["salvage", _where(place), "--dry-run"] if place.has_log else explain(place)


def salvage_readable(place: Place) -> Words:
    """The same without batches at which consumers get stuck: the report has the lines that move them past these."""
    return ["salvage", _where(place), "--drop-unreadable", "--dry-run"] if place.has_log else explain(place)


def reindex(place: Place) -> Words:
    """Which files would be rebuilt from the log."""
    return ["reindex", _where(place), "--dry-run"] if place.has_log else explain(place)


def mend_text(place: Place) -> Words:
    """Two of the small files can be rebuilt."""
    can_be_rebuilt = place.file.name in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
    return reindex(place) if can_be_rebuilt else explain(place)


def mend_tail(place: Place) -> Words:
    """A broker that runs will have gone on, one that was killed cuts the end off; one that was stopped doesn't."""
    return salvage(place) if place.was_stopped_cleanly else ["verify", _where(place)]


def look_up(place: Place) -> Words:
    """What stands around offsets that are missing."""
    if place.first_offset is None:
        return explain(place)
    return ["lookup", _where(place), "--offset", str(place.first_offset)]


def list_ends(place: Place) -> Words:
    """Offsets and sizes of the partition, to compare its end with the other replicas'."""
    return ["ls", _where(place)] if place.has_log else explain(place)


def free_space(place: Place) -> Words:
    """Which topics' retention to lower for so much space; the partitions by size if nobody knows how much."""
    if not place.size:
        return ["ls", _where(place), "--sort", "size"]
    return ["retain", _where(place), "--free", str(place.size)]


def list_homes(place: Place) -> Words:
    """The directories of one partition on several disks of a broker."""
    name = place.file.name
    homes = [log_dir / name for log_dir in place.log_dirs if (log_dir / name).is_dir()]
    return ["ls", *map(path_word, homes or [place.file])]


def open_transactions(place: Place) -> Words:
    """The topic's open transactions: those that hang with the command that aborts them."""
    if not place.log_dirs or place.topic is None:
        return ["txns", _where(place), "--open"]
    return ["txns", *map(path_word, place.log_dirs), "--open", "--topic", place.topic]


def show_batches(place: Place) -> Words:
    """The headers of the batches in question."""
    if place.first_offset is None or place.last_offset is None or parse_file_name(place.file).kind is not FileKind.LOG:
        return explain(place)
    ends = ["--from-offset", str(place.first_offset), "--to-offset", str(place.last_offset + 1)]
    return ["dump", path_word(place.file), "-o", "json", "--only", "batches", *ends]


def show_records(place: Place) -> Words:
    """The first records in question, whose contents tell the application."""
    words = ["dump", _where(place), "-o", "json", "--only", "records", "--from-offset", str(place.first_offset or 0)]
    if place.producer_id is not None and place.producer_id >= 0:
        words += ["--producer-id", str(place.producer_id)]
    return [*words, "--limit", str(_FIRST_RECORDS)]


def show_retention(place: Place) -> Words:
    """Which segments retention would delete, and when; by settings that one log directory has for all."""
    return ["retain", *map(path_word, place.log_dirs or [place.file])]
