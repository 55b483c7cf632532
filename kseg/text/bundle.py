"""Bundles for bug reports: facts about a disk as a compressed archive, without contents and names."""

import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from platform import python_version
from types import MappingProxyType
from typing import NamedTuple

from kseg.cluster.model import ClusterMetadata
from kseg.cluster.now import Now
from kseg.doctor.examination import CheckUp, Examined
from kseg.errors import plural
from kseg.formats.file_names import parse_file_name, parse_partition_directory
from kseg.log.listing import PartitionListing
from kseg.log.listing_rows import Rows
from kseg.output.rows import json_line
from kseg.redaction import PARTS, Redaction
from kseg.rewrite.redacted_names import NameKind, Names
from kseg.rewrite.redacted_records import is_readable
from kseg.sizes import human_size
from kseg.store.target import NewFile
from kseg.system.run_usage import system_name
from kseg.text.doctor_page import check_up_objects
from kseg.text.listing import ListingColumns
from kseg.text.metadata import CONFIGS, FEATURES
from kseg.times import iso_time

_LEVEL = 9
"""Compression level of zstd: bundles are small."""
_MEMBERS = MappingProxyType(
    {
        "README.txt": "this list",
        "about.json": 'versions of kseg, its kernel and Python; the system; the time used as "now"',
        "findings.jsonl": "findings by kind, file, position and offsets; disks, topics, and the forecast of a start",
        "partitions.jsonl": (
            "partitions: sizes, offsets, timestamps, and the next steps of retention and the log cleaner"
        ),
        "segments.jsonl": "segments: sizes, offsets, timestamps, codecs, numbers of records, batches and producers",
        "files.jsonl": "every file: kind, size, space on the disk, modification time",
        "settings.jsonl": "features and settings of the cluster; values only if they are numbers or Kafka's own words",
    }
)
"""Members and their contents."""
_TEXTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "finding": frozenset(("id", "severity")),
        "summary": frozenset(("result", "start", "now", "nowSource")),
        "partition": frozenset(("state", "topicId", "cleanableReason", "cleanerStop")),
        "segment": frozenset(("codecs", "indexHealth", "rolled", "retention", "standing")),
        "feature": frozenset(("name",)),
        "config": frozenset(("resourceType", "name")),
        "file": frozenset(("kind", "modifiedTime")),
        "about": frozenset(("kseg", "kernel", "python", "system", "now", "nowSource")),
    }
)
"""By type of object: members whose texts are kseg's or Kafka's own. Other texts are names, or omitted."""


class Member(NamedTuple):
    """A file of a bundle: its name, its meaning, and its content."""

    name: str
    meaning: str
    content: bytes

    @property
    def line(self) -> str:
        """Its name, size and meaning for people."""
        return f"  {self.name:<17} {human_size(len(self.content)):>9}  {self.meaning}"


class BundleFacts(NamedTuple):
    """Facts about a disk: the check-up, listings of partitions, metadata of its clusters, and the examined paths."""

    found: CheckUp
    listings: Sequence[PartitionListing]
    metadata: Sequence[ClusterMetadata]
    paths: Sequence[Path]
    is_complete: bool
    now: Now


def explain_members() -> Iterator[str]:
    """Yield a line about each member of any bundle."""
    yield "A bundle contains facts for a bug report, but no keys, values, headers or names. Its members:"
    yield from (f"  {name:<17} {meaning}" for name, meaning in _MEMBERS.items())


def bundle_members(facts: BundleFacts, names: Names) -> list[Member]:
    """Return the members of a bundle; `names` replaces everything that isn't Kafka's own."""
    redacted = _Objects(names)
    listed = {"partitions.jsonl": "partition", "segments.jsonl": "segment"}
    objects: dict[str, Iterable[Mapping[str, object]]] = {
        "about.json": [_about(facts)],
        "findings.jsonl": check_up_objects(facts.found, is_complete=facts.is_complete),
        **{name: _rows(facts.listings, by) for name, by in listed.items()},
        "files.jsonl": _file_objects(facts.paths),
        "settings.jsonl": _setting_objects(facts.metadata),
    }
    contents = {name: b"".join(map(json_line, map(redacted.of, rows))) for name, rows in objects.items()}
    contents["README.txt"] = "".join(f"{line}\n" for line in explain_members()).encode()
    return [Member(name, meaning, contents[name]) for name, meaning in _MEMBERS.items()]


def archive_of(members: Iterable[Member]) -> bytes:
    """Return a tar archive, compressed with zstd.

    The archive has no owner and no timestamps, so the same facts give the same bytes.
    """
    import zstandard

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member in members:
            info = tarfile.TarInfo(f"kseg-bundle/{member.name}")
            info.size = len(member.content)
            archive.addfile(info, io.BytesIO(member.content))
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(packed.getvalue())


class _Objects:
    """Objects without names: numbers stay, and texts stay only if they are Kafka's or kseg's own."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._replace: Mapping[str, Callable[[str], str]] = {
            "topic": names.topic,
            "value": lambda text: text if is_readable(text) else "(omitted)",
            **dict.fromkeys(("file", "directory", "directories", "path"), self._path),
        }

    def of(self, members: Mapping[str, object]) -> dict[str, object]:
        """Return the part of an object that may be given away."""
        kept = _TEXTS.get(str(members["type"]), frozenset())
        found: dict[str, object] = {"type": members["type"]}
        for name, value in members.items():
            if name == "resource":
                found[name] = self._resource(str(members["resourceType"]), str(value))
            elif name != "type" and (safe := self._safe(name, value, kept)) is not None:
                found[name] = safe
        return found

    def _safe(self, name: str, value: object, kept: frozenset[str]) -> object:
        """Return a value without names, or None for an unknown value, and for one that must not be shown."""
        if value is None or isinstance(value, int | float) or name in kept:
            return value
        if isinstance(value, str):
            return self._replace[name](value) if name in self._replace else None
        if isinstance(value, list):
            safe = [self._safe(name, each, kept) for each in value]
            return None if None in safe else safe
        return None

    def _resource(self, kind: str, name: str) -> str:
        """Return the name of a topic, group or client, or the id of a broker."""
        if kind == "topic":
            return self._names.topic(name)
        return name if is_readable(name) else self._names.name(NameKind.OTHER, name)

    def _path(self, text: str) -> str:
        return "/".join(map(self._part, PurePath(text).parts))

    def _part(self, part: str) -> str:
        if part in ("/", ".."):
            return part.strip("/")
        partition = parse_partition_directory(part)
        return self._names.file(part) if partition is None else self._names.directory(part, partition.topic)


def _about(facts: BundleFacts) -> Mapping[str, object]:
    from kseg import kernel
    from kseg.version import VERSION

    return {
        "type": "about",
        "kseg": VERSION,
        "kernel": kernel.load().NAME,
        "python": python_version(),
        "system": system_name(),
        "processors": os.cpu_count(),
        "paths": len(facts.paths),
        "now": iso_time(facts.now.ms),
        "nowSource": facts.now.source.value,
    }


def _rows(listings: Sequence[PartitionListing], by: str) -> Iterator[Mapping[str, object]]:
    section = ListingColumns(by=by, deep=True).section()
    return map(section.as_object, Rows(by).of(listings))


def _file_objects(paths: Iterable[Path]) -> Iterator[Mapping[str, object]]:
    """Yield the files below some paths, in order. Files that have disappeared are skipped."""
    for top in paths:
        for directory, directories, names in os.walk(top):
            directories.sort()
            for name in sorted(names):
                path = Path(directory, name)
                try:
                    status = path.lstat()
                except OSError:
                    continue
                yield {
                    "type": "file",
                    "path": str(path),
                    "kind": str(parse_file_name(name).kind),
                    "bytes": status.st_size,
                    "allocatedBytes": 512 * getattr(status, "st_blocks", 0),
                    "modifiedTime": iso_time(status.st_mtime_ns // 1_000_000),
                }


def _setting_objects(clusters: Iterable[ClusterMetadata]) -> Iterator[Mapping[str, object]]:
    for metadata in clusters:
        yield from map(FEATURES.as_object, metadata.features)
        yield from map(CONFIGS.as_object, metadata.configs)


class Bundle:
    """Collect listings of partitions for a bundle, then write the file or show its members."""

    def __init__(self, file: NewFile, key: str | None, kept: Sequence[NameKind]) -> None:
        """Take the file, the key of the names (None: a random one), and the kinds of names that stay."""
        redaction = Redaction.of(PARTS, key)
        assert redaction is not None
        self._file, self._names = file, Names(redaction.redactor(), kept)
        self.listings: list[PartitionListing] = []

    def take(self, examined: Examined) -> None:
        """Add a partition's listing."""
        if examined.listing is not None:
            self.listings.append(examined.listing)

    def write(self, facts: BundleFacts, *, is_shown: bool) -> Iterator[str]:
        """Write the file, or only show its contents; yield lines for people."""
        members = bundle_members(facts, self._names)
        if is_shown:
            yield f"{self._file.path}: not written (dry run); its members would be:"
        else:
            archive = archive_of(members)
            self._file.write(archive)
            yield f"{self._file.path}: {human_size(len(archive))}, {plural(len(members), 'member')}:"
        yield from (member.line for member in members)
