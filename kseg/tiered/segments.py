"""Search for segments of remote tiers among a store's objects, by object names and manifests."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kseg.errors import FileError, plural
from kseg.formats.checkpoints import parse_leader_epoch_checkpoint, parse_partition_metadata
from kseg.formats.codes import stored_offset
from kseg.formats.file_names import FileKind
from kseg.store.location import ObjectStore, StoredObject
from kseg.system.run_usage import in_threads
from kseg.tiered.manifest import LARGEST_MANIFEST, SegmentManifest, parse_manifest
from kseg.tiered.placed_tiers import Epochs
from kseg.tiered.places import INDEXES, MANIFEST, PINTEREST_MARK, SIDE_FILES, ObjectName, TierLayout, parse_object_name
from kseg.tiered.remote_segment import ObjectProblem, RemotePartition, RemoteSegment
from kseg.tiered.segment_bytes import StoredPart

REQUESTS = 16
"""Concurrent requests."""
LARGEST_CHECKPOINT = 1 << 20
_OFFSET_SIZE = 8


class FoundObject(NamedTuple):
    """An object of a tier, and the parts of its key."""

    stored: StoredObject
    name: ObjectName


Upload = dict[str, FoundObject]
"""The objects of a segment by suffix."""


def find_remote_partitions(
    store: ObjectStore, objects: Iterable[StoredObject], takes: Callable[[str, int], bool]
) -> list[RemotePartition]:
    """Return the partitions of all tiers among some objects; manifests and small checkpoints are read concurrently.

    `takes` decides by topic and number whether a partition is wanted. If none is, all are returned, so that callers can
    report what exists. Raises ClusterError if the store fails.
    """
    uploads: dict[tuple[TierLayout, str], dict[tuple[int | None, str | None], Upload]] = defaultdict(dict)
    for stored in objects:
        name = parse_object_name(f"{store.address}/{stored.key}")
        if name is not None:
            segments = uploads[name.layout, name.folder]
            segments.setdefault((name.base_offset, name.segment_id), {})[name.suffix] = FoundObject(stored, name)
    wanted = {key: each for key, each in uploads.items() if _is_wanted(_any_name(each), takes)}
    found = [_partition(store, layout, folder, each) for (layout, folder), each in sorted((wanted or uploads).items())]
    return [partition for partition in found if partition is not None]


def _partition(
    store: ObjectStore, layout: TierLayout, folder: str, uploads: dict[tuple[int | None, str | None], Upload]
) -> RemotePartition | None:
    beside = uploads.pop((None, None), {})
    if not uploads:
        return None
    read = partial(_OF_LAYOUT.get(layout, _plain_segment), store)
    found = [each for each in in_threads(read, uploads.values(), REQUESTS) if each is not None]
    name = _any_name(uploads)
    topic, topic_id = _topic(store, name, [each.topic for each in found], beside)
    if layout is TierLayout.PLAIN and PINTEREST_MARK in beside:
        layout = TierLayout.PINTEREST
    segments = sorted((each.segment for each in found), key=lambda each: (each.base_offset, each.segment_id or ""))
    return RemotePartition(layout, folder, topic, topic_id, name.partition, tuple(segments))


def _any_name(uploads: dict[tuple[int | None, str | None], Upload]) -> ObjectName:
    return next(iter(next(iter(uploads.values())).values())).name


def _is_wanted(name: ObjectName, takes: Callable[[str, int], bool]) -> bool:
    """Return True if a partition may be wanted.

    A key's prefix needn't end in a slash, so the topic may be any suffix of the name.
    """
    starts = range(len(name.topic)) if name.layout is TierLayout.AIVEN else range(1)
    return any(takes(name.topic[start:], name.partition) for start in starts)


class _FoundSegment(NamedTuple):
    """A segment, and the topic that its manifest names."""

    segment: RemoteSegment
    topic: str | None = None


def _topic(
    store: ObjectStore, name: ObjectName, by_manifests: list[str | None], beside: Upload
) -> tuple[str, str | None]:
    """Return a topic name and id, from a manifest if one has them: a key's prefix needn't end in a slash."""
    topic = next((each for each in by_manifests if each is not None and name.topic.endswith(each)), name.topic)
    topic_id = name.topic_id
    if topic_id is None and SIDE_FILES[1] in beside:
        try:
            topic_id = parse_partition_metadata(_whole(store, beside[SIDE_FILES[1]].stored)).topic_id
        except (FileError, OSError):
            topic_id = None
    return topic, topic_id


def _whole(store: ObjectStore, stored: StoredObject) -> bytes:
    return store.read(stored.key, 0, min(stored.size, LARGEST_CHECKPOINT))


# --- unchanged files --------------------------------------------------------------------------------------------------


def _plain_segment(store: ObjectStore, upload: Upload) -> _FoundSegment | None:
    """Return a segment whose objects are its unchanged files."""
    files: dict[FileKind, StoredPart] = {
        each.name.kind: StoredPart(each.stored.key, 0, each.stored.size)
        for each in upload.values()
        if each.name.kind is not FileKind.UNKNOWN
    }
    first = next(iter(upload.values()))
    log = files.get(FileKind.LOG)
    base = first.name.base_offset
    if base is None and log is not None:
        base = _first_offset(store, log)
    if base is None or not files:
        return None
    key = first.stored.key.rpartition(".")[0]
    problems = tuple(_missing_files(first.name.layout, key, files))
    epochs: Epochs = ((first.name.epoch, base),) if first.name.epoch is not None else ()
    if FileKind.LEADER_EPOCH_CHECKPOINT in files:
        epochs, problems = _known_epochs(store, files[FileKind.LEADER_EPOCH_CHECKPOINT], problems)
    segment = RemoteSegment(
        base_offset=base,
        segment_id=first.name.segment_id,
        key=key,
        files=files,
        stored_size=sum(each.stored.size for each in upload.values()),
        modified_ms=max(each.stored.modified_ms for each in upload.values()),
        epochs=_epochs_from(epochs, base),
        problems=problems,
        history=epochs,
    )
    return _FoundSegment(segment)


_ALWAYS_THERE = {
    FileKind.TIME_INDEX: "timeindex",
    FileKind.PRODUCER_SNAPSHOT: "snapshot",
    FileKind.LEADER_EPOCH_CHECKPOINT: "leader_epoch_checkpoint",
}
"""Files that a broker always uploads with a log; only the time index may be empty. Source: LogSegmentData."""


def _missing_files(layout: TierLayout, key: str, files: dict[FileKind, StoredPart]) -> Iterator[ObjectProblem]:
    """Yield the missing files of a segment: its log and, in Kafka's own store, each file that a broker always uploads.

    `.index` has its own check.
    """
    if FileKind.LOG not in files:
        yield ObjectProblem("remote-missing", f"{key}.log", "the segment's log isn't there")
    for kind, suffix in _ALWAYS_THERE.items() if layout is TierLayout.LOCAL else ():
        if kind not in files:
            yield ObjectProblem("remote-missing", f"{key}.{suffix}", f"the segment's {kind} isn't there")
        elif not files[kind].size and kind is not FileKind.TIME_INDEX:
            yield ObjectProblem("remote-missing", f"{key}.{suffix}", f"the segment's {kind} is empty")


def _first_offset(store: ObjectStore, log: StoredPart) -> int | None:
    """Return the offset of a log's first batch, or None if it doesn't exist."""
    try:
        first = store.read(log.key, 0, min(log.size, _OFFSET_SIZE))
    except OSError:
        return None
    return max(stored_offset(first), 0) if len(first) == _OFFSET_SIZE else None


def _known_epochs(
    store: ObjectStore, part: StoredPart, problems: tuple[ObjectProblem, ...]
) -> tuple[Epochs, tuple[ObjectProblem, ...]]:
    """Return the epochs of a segment from its checkpoint, which has the earlier ones too."""
    try:
        if part.size > LARGEST_CHECKPOINT:
            raise FileError(f"it has {plural(part.size, 'byte')}; kseg reads checkpoints of up to {LARGEST_CHECKPOINT}")
        content = store.read(part.key, 0, part.size)
        return tuple(
            (each.epoch, each.start_offset) for each in parse_leader_epoch_checkpoint(content).entries
        ), problems
    except FileError as error:
        return (), (*problems, ObjectProblem("remote-manifest", part.key, f"can't be read: {error.message}"))
    except OSError as error:
        return (), (*problems, ObjectProblem("remote-manifest", part.key, f"can't be read: {error.strerror}"))


def _epochs_from(history: Epochs, base: int) -> Epochs:
    """Return the epochs of a segment from a history, from its base offset on."""
    before = [each for each in history if each[1] <= base][-1:]
    return (*((epoch, base) for epoch, _ in before), *(each for each in history if each[1] > base))


# --- Aiven's plugin ---------------------------------------------------------------------------------------------------


def _aiven_segment(store: ObjectStore, upload: Upload) -> _FoundSegment | None:
    """Return a segment of Aiven's plugin, by its manifest."""
    first = next(iter(upload.values()))
    key = first.stored.key.rpartition(".")[0]
    segment = RemoteSegment(
        base_offset=first.name.base_offset or 0,
        segment_id=first.name.segment_id,
        key=key,
        files={},
        stored_size=sum(each.stored.size for each in upload.values()),
        modified_ms=max(each.stored.modified_ms for each in upload.values()),
    )
    if MANIFEST not in upload:
        there = " and ".join(f".{suffix}" for suffix in sorted(upload))
        sentence = f"there is no manifest next to {there}, so its upload never ended, and kseg can't read it"
        problem = ObjectProblem("remote-unfinished", f"{key}.{MANIFEST}", sentence)
        return _FoundSegment(replace(segment, problems=(problem,), is_unfinished=True))
    try:
        manifest = _read_manifest(store, upload[MANIFEST])
        _check_key(manifest, first.name)
        if "log" in upload:
            _check_chunks(manifest, upload["log"].stored.size)
    except FileError as error:
        problem = ObjectProblem("remote-manifest", f"{key}.{MANIFEST}", error.message)
        return _FoundSegment(replace(segment, problems=(problem,)))
    files = {FileKind.LOG: manifest.log(f"{key}.log", upload["log"].stored.size)} if "log" in upload else {}
    if INDEXES in upload:
        files |= manifest.files_in(f"{key}.{INDEXES}", upload[INDEXES].stored.size)
    segment = replace(
        segment,
        files=files,
        end_offset=manifest.end_offset,
        epochs=manifest.epochs,
        history=manifest.epochs,
        max_timestamp=manifest.max_timestamp,
        event_timestamp=manifest.event_timestamp,
        broker_id=manifest.broker_id,
        problems=tuple(_wrong_objects(manifest, key, upload)),
    )
    return _FoundSegment(segment, manifest.topic)


def _read_manifest(store: ObjectStore, found: FoundObject) -> SegmentManifest:
    if found.stored.size > LARGEST_MANIFEST:
        raise FileError(f"has {plural(found.stored.size, 'byte')}; kseg reads manifests of up to {LARGEST_MANIFEST}")
    try:
        return parse_manifest(store.read(found.stored.key, 0, found.stored.size))
    except OSError as error:
        raise FileError(f"can't be read: {error.strerror}") from error


def _check_key(manifest: SegmentManifest, name: ObjectName) -> None:
    claims = (
        ("topic id", manifest.topic_id, name.topic_id),
        ("partition", manifest.partition, name.partition),
        ("base offset", manifest.base_offset, name.base_offset),
        ("segment id", manifest.segment_id, name.segment_id),
    )
    for what, claimed, named in claims:
        if claimed != named:
            raise FileError(f"is another segment's manifest: its {what} is {claimed}, not {named}")
    if not name.topic.endswith(manifest.topic):
        raise FileError(f"is another segment's manifest: its topic is {manifest.topic!r}, not {name.topic!r}")
    if manifest.end_offset < manifest.base_offset:
        raise FileError(f"its end offset {manifest.end_offset} is below its start offset {manifest.base_offset}")


def _check_chunks(manifest: SegmentManifest, size: int) -> None:
    """Raise KsegError if a log has fewer bytes than chunks: a small object could demand a large table."""
    if manifest.chunks.count > size:
        raise FileError(f"it has {manifest.chunks.count} chunks, though the log has {plural(size, 'byte')}")


def _wrong_objects(manifest: SegmentManifest, key: str, upload: Upload) -> Iterator[ObjectProblem]:
    """Yield objects that are missing or differ in size from the manifest."""
    for suffix, size in (("log", manifest.chunks.total), (INDEXES, manifest.indexes_size)):
        if suffix not in upload:
            yield ObjectProblem(
                "remote-missing", f"{key}.{suffix}", f"isn't there, though the manifest says {plural(size, 'byte')}"
            )
        elif upload[suffix].stored.size != size:
            found = upload[suffix].stored.size
            yield ObjectProblem(
                "remote-size", f"{key}.{suffix}", f"has {plural(found, 'byte')}, but the manifest says {size}"
            )


_OF_LAYOUT = {TierLayout.AIVEN: _aiven_segment}
