"""Redaction of log directories: a new directory that a broker and kseg read like the old one, without its contents.

Offsets, times, sizes of records, ids and damage stay. Each directory's files are written before its line in the
journal, so that a run that was stopped goes on where it was.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import pass_over
from kseg.cluster.joined_log import whole_log
from kseg.cluster.metadata_copy import partition_count
from kseg.coordinators.home_partition import home_of_state
from kseg.coordinators.stored_ids import COORDINATOR_TOPICS, stored_ids
from kseg.errors import OpenError, UsageError
from kseg.formats.file_names import (
    LOG_KINDS,
    FileKind,
    parse_file_name,
    parse_partition_directory,
)
from kseg.log.partition import METADATA_TOPIC
from kseg.reading.log_file import LogFile
from kseg.redaction import PARTS, Redaction
from kseg.rewrite.redacted_files import Surroundings, redact_file
from kseg.rewrite.redacted_log import Noise, Places, redact_log
from kseg.rewrite.redacted_names import NameKind, Names
from kseg.rewrite.redacted_records import redacted_records
from kseg.store.target import check_absent, check_outside, new_directory, sync
from kseg.system.files import read_small
from kseg.system.new_directory import WriteError
from kseg.tiered.places import TierLayout, parse_object_name

JOURNAL = "redact.journal"
"""A file of an unfinished directory: a line for the key, then one for each directory whose files are all there."""
UNFINISHED = ".kseg-unfinished"
_LARGEST_KEY = 1 << 16
"""Bytes of the largest file with a key."""
_LARGEST_FILE = 256 << 20
"""Bytes of the largest file beside the logs that is read."""


class RedactSettings(NamedTuple):
    """Settings for redacting files: the key, the kinds of names to keep, and the partition counts of coordinators.

    is_key_known: whether somebody has the key, and can go on with a run that was stopped.
    """

    redaction: Redaction
    kept: tuple[NameKind, ...]
    partition_counts: Mapping[str, int]
    is_key_known: bool = True

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the key, or None for a key that nobody knows."""
        return self.redaction.fingerprint if self.is_key_known else None


class RedactOrder(NamedTuple):
    """A directory to redact: its path, its place in the new directory, the topic of its logs, and its files.

    skipped: names of entries that can't be copied, such as pipes, and of links that lead nowhere or upwards.
    """

    source: Path
    directory: Path
    place: PurePath
    topic: str | None
    files: tuple[str, ...]
    size: int
    log_size: int
    skipped: tuple[str, ...] = ()

    @property
    def target(self) -> Path:
        """Path of the new directory."""
        return self.directory / self.place


class RedactedDirectory(NamedTuple):
    """A redacted directory: its new name, replaced parts, bytes that became noise or zeros, and skipped paths."""

    source: Path
    place: PurePath
    files: int
    size: int
    batches: int = 0
    records: int = 0
    noise: Mapping[str, int] = {}
    zeros: tuple[str, ...] = ()
    skipped: tuple[Path, ...] = ()
    names: Mapping[NameKind, frozenset[str]] = {}


def key_in(path: Path) -> str:
    """Return the key in a file. Raises UsageError for an empty one, OpenError for one that can't be read."""
    key = read_small(path, _LARGEST_KEY).decode("utf-8", "surrogateescape").strip()
    if not key:
        raise UsageError(
            "is empty; write a long random key into it, such as the output of `openssl rand -hex 32`", path
        )
    return key


def redact_settings(key: str | None, kept: Sequence[NameKind], paths: Sequence[Path]) -> RedactSettings:
    """Return the settings for the given paths, whose metadata and ids tell how many partitions coordinators have."""
    redaction = Redaction.of(PARTS, key)
    assert redaction is not None
    cluster, counts = Cluster(paths, pass_over), dict[str, int]()
    for topic in COORDINATOR_TOPICS:
        replicas = [each for each in cluster.topic(topic) if each.topic == topic]
        places = [place for each in replicas for place in each.places]
        told = partition_count(cluster.own_metadata, topic, [each.partition for each in replicas])
        ids = stored_ids(topic, map(whole_log, replicas))
        counts[topic] = home_of_state(topic, "", places, told, ids).partition_count
    return RedactSettings(redaction, tuple(kept), counts, is_key_known=key is not None)


def redact_orders(paths: Sequence[Path], directory: Path, settings: RedactSettings) -> Iterator[RedactOrder]:
    """Yield an order for each directory below some paths, the directories themselves included.

    Raises OpenError if a directory can't be listed, UsageError for a remote tier that can't be redacted.
    """
    names = _names(settings)
    for number, path in enumerate(paths, 1):
        place = PurePath() if len(paths) == 1 else PurePath(f"disk-{number}")
        is_named = parse_partition_directory(path.absolute()) is not None
        yield from _below(path, directory, place, names, is_named=is_named)


def _below(
    source: Path,
    directory: Path,
    place: PurePath,
    names: Names,
    *,
    is_named: bool,
    above: frozenset[Path] = frozenset(),
) -> Iterator[RedactOrder]:
    """Yield the orders of a directory and of those below it; `place` has its new name below it if `is_named`.

    Follows links, as brokers do. above: the resolved paths of the directories above.
    """
    try:
        entries = sorted(os.scandir(source), key=lambda entry: entry.name)
    except OSError as error:
        raise OpenError(f"can't be listed: {error.strerror}", source) from error
    topic = _topic_of(source, entries)
    if is_named:
        place /= names.directory(source.absolute().name, topic)
    above |= {source.resolve()}
    files = [entry for entry in entries if entry.is_file()]
    directories = [entry for entry in entries if entry.is_dir() and Path(entry.path).resolve() not in above]
    sizes = {entry.name: entry.stat().st_size for entry in files}
    log_size = sum(size for name, size in sizes.items() if parse_file_name(name).kind in LOG_KINDS)
    rest = {entry.name for entry in entries} - sizes.keys() - {entry.name for entry in directories}
    skipped = tuple(sorted(rest))
    yield RedactOrder(source, directory, place, topic, tuple(sizes), sum(sizes.values()), log_size, skipped)
    for entry in directories:
        yield from _below(source / entry.name, directory, place, names, is_named=True, above=above)


def _topic_of(source: Path, entries: Sequence["os.DirEntry[str]"]) -> str | None:
    """Return the topic of a partition directory, or of one in a remote tier, or None for another directory."""
    names = (parse_object_name(os.path.abspath(entry.path)) for entry in entries)  # noqa: PTH100
    found = next((name for name in names if name is not None), None)
    if found is not None and found.layout in (TierLayout.AIVEN, TierLayout.CONFLUENT):
        layout = f"{found.layout}'s remote tier"
        raise UsageError(
            f"belongs to {layout}, which kseg can't redact; omit it, or redact the output of `kseg salvage`",
            source,
        )
    if found is not None:
        return found.topic
    partition = parse_partition_directory(source.absolute())
    return None if partition is None else partition.topic


def _names(settings: RedactSettings) -> Names:
    return Names(settings.redaction.redactor(), settings.kept, settings.partition_counts)


def redact_directory(
    order: RedactOrder,
    settings: RedactSettings,
    *,
    keep_cache: bool = True,
    on_read: Callable[[int], None] = lambda _: None,
) -> RedactedDirectory:
    """Write the files of a directory; `on_read` takes the size of each log.

    Raises OpenError if a file can't be opened, OSError if the system can't read or write.
    """
    names, redactor = _names(settings), settings.redaction.redactor()
    order.target.mkdir(parents=True, exist_ok=True)
    places: dict[str, Places] = {}
    batches = count = 0
    noise: Counter[str] = Counter()
    zeros: list[str] = []
    for name in sorted(order.files, key=_logs_first):
        parsed, source = parse_file_name(name), order.source / name
        target = order.target / names.file(name)
        target.unlink(missing_ok=True)
        own_noise = Noise(settings.redaction.key, (order.place / target.name).as_posix())
        if parsed.kind in LOG_KINDS:
            topic = METADATA_TOPIC if parsed.kind is FileKind.METADATA_SNAPSHOT else order.topic
            records = redacted_records(topic, redactor, names)
            with LogFile(source, keep_cache=keep_cache) as log:
                places[_stem(name)], tally = redact_log(log, target, records, own_noise)
                on_read(log.file_size)
            batches, count = batches + tally.batches, count + tally.records
            noise.update({str(kind): size for kind, size in tally.noise.items()})
        else:
            around = Surroundings(own_noise, names, places.get(_stem(name)))
            content = _redacted_file(source, parsed.kind, around)
            if content is None:
                zeros.append(target.name)
            _write(target, content, source.stat().st_size)
        status = source.stat()
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return RedactedDirectory(
        order.source,
        order.place,
        len(order.files),
        order.size,
        batches,
        count,
        dict(noise),
        tuple(zeros),
        tuple(order.source / name for name in order.skipped),
        names.substitutes,
    )


def _logs_first(name: str) -> tuple[bool, str]:
    return parse_file_name(name).kind not in LOG_KINDS, name


def _stem(name: str) -> str:
    """Return the part of a name that a log and its indexes share: no extension, but a suffix such as `.deleted`."""
    suffix = parse_file_name(name).suffix or ""
    return f"{name.removesuffix(suffix).rpartition('.')[0]}{suffix}"


def _redacted_file(source: Path, kind: FileKind, around: Surroundings) -> bytes | None:
    if source.stat().st_size > _LARGEST_FILE:
        return None
    return redact_file(kind, source.read_bytes(), around)


def _write(target: Path, content: bytes | None, size: int) -> None:
    """A file's bytes; None: as many zeros, which take no space."""
    with target.open("xb") as file:
        if content is None:
            file.truncate(size)
        else:
            file.write(content)


class Unfinished(NamedTuple):
    """A directory that is being filled, and the directories below it whose files an earlier run has all written."""

    directory: Path
    done: frozenset[str] = frozenset()
    journal: Path | None = None

    def is_done(self, order: RedactOrder) -> bool:
        """Return True if an earlier run has written all files of a directory."""
        return order.place.as_posix() in self.done

    def note(self, redacted: RedactedDirectory) -> None:
        """Remember that all files of a directory are written, so that a later run need not write them again."""
        if self.journal is not None:
            sync(path for path in (self.directory / redacted.place).iterdir() if path.is_file())
            _add_line(self.journal, redacted.place.as_posix())


@contextmanager
def unfinished_directory(target: Path, settings: RedactSettings, inputs: Sequence[Path]) -> Iterator[Unfinished]:
    """Yield a directory to fill, which becomes the target at the end.

    If somebody has the key, what a stopped run wrote stays for the next one; else nothing is left of it.

    Raises UsageError if the target is there, lies within the input, or was begun with another key; WriteError.
    """
    check_outside(target, inputs)
    if settings.fingerprint is None:
        with new_directory(target, inputs) as directory:
            yield Unfinished(directory)
        return
    check_absent(target)
    directory = target.with_name(f"{target.name}{UNFINISHED}")
    journal = directory / JOURNAL
    head = json.dumps({"key": settings.fingerprint, "keep": sorted(settings.kept)})
    try:
        yield Unfinished(directory, _begin(journal, head), journal)
        journal.unlink()
        sync((directory,))
        directory.rename(target)
    except OSError as error:
        raise WriteError(f"can't be written: {error.strerror}", error.filename or directory) from error


def _begin(journal: Path, head: str) -> frozenset[str]:
    if journal.exists():
        begun, *done = journal.read_text(encoding="utf-8").splitlines() or [""]
        if begun != head:
            raise UsageError(
                "was started with another key or --keep; specify the same --key-file, or remove it", journal.parent
            )
        return frozenset(done)
    journal.parent.mkdir(parents=True, exist_ok=True)
    _add_line(journal, head)
    return frozenset()


def _add_line(journal: Path, line: str) -> None:
    with journal.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())
