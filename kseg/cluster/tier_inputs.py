"""Partitions in remote tiers as the directories of a broker: their files are read from the objects' places."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import META_PROPERTIES, find_log_dirs, pass_over
from kseg.cluster.metadata_copy import TopicIds
from kseg.cluster.mirror import Mirror, holds_tier, is_partition, split_url
from kseg.errors import FileError, OpenError, UsageError
from kseg.formats.checkpoints import EpochStart, LeaderEpochCheckpoint, build_leader_epoch_checkpoint
from kseg.formats.file_names import FileKind, parse_file_name, parse_partition_directory
from kseg.kernel.contract import MOST
from kseg.log.lineage import noted_epochs
from kseg.log.partition import CHECKPOINT_OF_FIELD, LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, PartitionLog
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.log.side_files import StandingFiles, build_metadata
from kseg.store.location import (
    DirectoryStore,
    ObjectStore,
    StoredObject,
    StoreKind,
    is_remote,
    leads_inside,
    parse_url,
    place_of,
    without_file_scheme,
)
from kseg.store.remote_files import open_store
from kseg.system.new_directory import scratch_directory
from kseg.system.placed_path import PlacedPath, Placement, StrPath, as_path
from kseg.tiered.placed_tiers import Epochs, PlacedPartition, choose, lineage_of
from kseg.tiered.places import TierLayout, tier_at, url_of
from kseg.tiered.remote_segment import RemotePartition, RemoteSegment
from kseg.tiered.segment_bytes import PrivateKeys
from kseg.tiered.segments import find_remote_partitions

_TELLING = (TierLayout.LOCAL, TierLayout.CONFLUENT)
"""Layouts with uploads that may overlap, while only the records show the end of each."""
_NAME_KEPT = 40
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
MOST_SAID = 20
"""The most problems of a tier that are reported one by one."""
_OF_A_LOG_DIRECTORY = (META_PROPERTIES, *CHECKPOINT_OF_FIELD.values())


def store_at(root: StrPath) -> ObjectStore:
    """Return the store at a URL or in a directory."""
    return open_store(root) if isinstance(root, str) and is_remote(root) else DirectoryStore(root)


class RemoteLogs:
    """Remote tiers' partitions, placed in a scratch directory; a context manager that removes them at its end.

    problems: the number of unusable segments.
    """

    def __init__(
        self, keys: Mapping[str, Path], say: Callable[[str], None], choice: PartitionChoice = EVERY_PARTITION
    ) -> None:
        """Place nothing yet.

        Args:
            keys: files of private keys by their ids.
            say: takes unusable parts.
            choice: the partitions to place; all if it is empty.
        """
        self._choice = choice
        self._keys = PrivateKeys(keys)
        self._say = say
        self._stack = ExitStack()
        self._scratch: Path | None = None
        self._found: dict[StrPath, tuple[ObjectStore, list[RemotePartition]]] = {}
        self._placed_paths: dict[StrPath, PlacedPath] = {}
        self._files = StandingFiles(self._keys)
        self._mirror = Mirror(self._files, choice)
        self._listings: dict[StrPath, tuple[ObjectStore, list[StoredObject]]] = {}
        self._count = self._reported_count = 0
        self.problems = 0

    def __enter__(self) -> "RemoteLogs":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def unreadable_objects(self) -> list[OpenError]:
        """Objects that can't be files here."""
        return self._mirror.refused

    def partitions_at(self, root: StrPath) -> tuple[ObjectStore, list[RemotePartition]]:
        """Return the store at a root, and the tiers' partitions in it; none if it holds no tier.

        Raises the store's errors.
        """
        if root not in self._found:
            store, objects = self._list_objects(root)
            self._found[root] = store, find_remote_partitions(store, objects, self._choice.takes)
        return self._found[root]

    def _list_objects(self, root: StrPath) -> tuple[ObjectStore, list[StoredObject]]:
        if root not in self._listings:
            store = store_at(root)
            self._listings[root] = store, list(store.objects())
        return self._listings[root]

    def _of_url(self, url: str) -> PlacedPath:
        """Return the path of a URL's file or directory."""
        folder, name = split_url(url)
        if parse_file_name(name).kind is FileKind.UNKNOWN:
            return self.place(url)
        parsed = parse_url(url)
        if parsed.kind is not StoreKind.HTTP and parse_partition_directory(split_url(folder)[1]) is not None:
            path = self.place(folder) / name
        else:
            path = self._new_directory(folder, is_far=True) / name
            self._mirror.place_files(folder, [name], path.parent)
        if not path.exists():
            raise OpenError("isn't there", url)
        return path

    def mirror_directory(self, url: str) -> PlacedPath:
        """Return the directory of a broker's own files at a URL; next to a partition, its log directory's files.

        Raises the store's errors.
        """
        store, objects = self._list_objects(url)
        folder, name = split_url(url)
        if not objects and leads_inside(url):
            raise OpenError("kseg reads archives on this machine only; copy it here first", url)
        if folder.endswith("/"):  # a bucket, whose name says nothing of a partition
            directory = self._new_directory(url, is_far=True)
            self._mirror.place(store, objects, directory)
            return directory
        above = self._new_directory(folder, is_far=True)
        if is_partition(url):
            self._mirror.place_files(folder, _OF_A_LOG_DIRECTORY, above)
        directory = Placement(above / name, url.rstrip("/"), above.placement).path
        directory.mkdir()
        self._mirror.place(store, objects, directory)
        return directory

    def local(self, path: StrPath, remotes: Sequence[str] = ()) -> StrPath:
        """Return the path to read: of a placed tier, or of local partitions joined with remote tiers.

        Raises like `place` and `join`.
        """
        if not isinstance(path, PlacedPath):
            given = without_file_scheme(url_of(os.fspath(path)))
            if is_remote(given):
                return self._of_url(given)
            path = given if isinstance(path, str) else Path(given)
        found = tier_at(os.fspath(path))
        if found is None:
            return self.join(path, remotes) if remotes else path
        inner = found[1]
        root: StrPath = path / found[0] if isinstance(path, PlacedPath) else found[0]
        if inner.endswith(".log") and "/" not in inner:
            return self.place_file(root, inner)
        return self.place(root) / inner

    def place(self, root: StrPath) -> PlacedPath:
        """Return the directory that stands for a tier.

        Raises OpenError if there is none at the root, and the store's errors.
        """
        if root not in self._placed_paths:
            store, objects = self._list_objects(root)
            if isinstance(root, str) and is_remote(root) and not holds_tier(store, objects):
                self._placed_paths[root] = self.mirror_directory(root)
                return self._placed_paths[root]
            store, partitions = self.partitions_at(root)
            if not partitions:
                raise OpenError("no segments of tiered storage here", root)
            directory = self._new_directory(str(root), is_far=not store.is_near)
            names = Counter(each.directory_name for each in partitions)
            for partition in partitions:
                is_only = names[partition.directory_name] == 1
                log_dir = directory if is_only else _free_folder(directory, partition)
                self._place(store, partition, log_dir / partition.directory_name)
            self._placed_paths[root] = directory
        return self._placed_paths[root]

    def fetch_all(self) -> None:
        """Fetch all bytes of the placed files. Raises OpenError if they aren't available."""
        self._files.fetch_all()

    def place_file(self, root: StrPath, name: str) -> PlacedPath:
        """Return a file of the only partition at a root. Raises OpenError if it doesn't exist, and like `place`."""
        found = [each / name for each in sorted(self.place(root).iterdir()) if (each / name).is_file()]
        if not found:
            raise OpenError("can't be used; run `kseg verify` on its directory to see why", f"{root}/{name}")
        return found[0]

    def join(self, local: StrPath, roots: Sequence[str]) -> PlacedPath:
        """Return the directory that stands for local partitions and their earlier parts in remote tiers.

        Raises OpenError if there is no local partition, and the store's errors.
        """
        key = "\0".join((os.fspath(local), *roots))
        if key not in self._placed_paths:
            remote = {
                (each.topic, each.partition): (store, each)
                for root in roots
                for store, partitions in (self.partitions_at(root),)
                for each in partitions
            }
            if not remote:
                raise OpenError("no segments of tiered storage here", ", ".join(roots))
            self._placed_paths[key] = self._join_local(as_path(local).absolute(), str(local), remote)
        return self._placed_paths[key]

    def _join_local(
        self, path: Path, name: str, remote: dict[tuple[str, int], tuple[ObjectStore, RemotePartition]]
    ) -> PlacedPath:
        found = find_log_dirs(path) if path.is_dir() else []
        is_partition = path.is_dir() and not found
        topic_ids = TopicIds(Cluster((path,), pass_over))
        above = os.path.dirname(name.rstrip("/")) or "."  # noqa: PTH120
        is_far = not all(store.is_near for store, _ in remote.values())
        directory = self._new_directory(above if is_partition else name, is_far=is_far)
        if is_partition:
            self._join_partition(PartitionLog(path), directory / path.name, remote, topic_ids)
            _link(path.parent, directory, _OF_A_LOG_DIRECTORY)
            return directory / path.name
        for log_dir in found:
            target = directory / log_dir.path.relative_to(path)
            target.mkdir(parents=True, exist_ok=True)
            _link(log_dir.path, target, _OF_A_LOG_DIRECTORY)
            for place in log_dir.directories:
                self._join_partition(PartitionLog(place), target / place.name, remote, topic_ids)
        if not found:
            raise OpenError("no partition here to join with --tier", name)
        return directory

    def _join_partition(
        self,
        local: PartitionLog,
        target: PlacedPath,
        remote: dict[tuple[str, int], tuple[ObjectStore, RemotePartition]],
        topic_ids: TopicIds,
    ) -> None:
        found = remote.get((local.topic or "", local.partition or 0)) if local.state is None else None
        if found is None:
            target.symlink_to(local.path)
            return
        store, partition = found
        topic_id = topic_ids.of(local)
        if None not in (topic_id, partition.topic_id) and topic_id != partition.topic_id:
            what = f"has topic id {topic_id}, but the remote partition at {partition.folder} has {partition.topic_id}"
            raise UsageError(f"{what}, so that is another topic of the same name", local.path)
        self._place(store, partition, target, local)

    def _place(
        self, store: ObjectStore, partition: RemotePartition, target: PlacedPath, local: PartitionLog | None = None
    ) -> None:
        """Create the directory of a partition, of its remote segments and the local ones that follow."""
        target.mkdir()
        segments = self._measure_segments(store, partition)
        partition = replace(partition, segments=segments)
        own = None if local is None else noted_epochs(local, MOST).starts
        lineage = lineage_of((each.history for each in segments), own or ())
        local_start = None if local is None or not local.base_offsets else local.base_offsets[0]
        choices = choose(segments, lineage, local_start)
        placed = PlacedPartition(partition, store, self._keys, lineage, choices, local_start)
        target = target.standing_for(placed)
        self._name_problems(placed)
        if lineage and lineage != own:  # the local one may begin where the local log does
            _write_lineage(lineage, target)
        for choice, following in zip_longest(placed.used, placed.used[1:]):
            self._files.place_segment(store, choice, target)
            next_base = local_start if following is None else following.segment.base_offset
            self._files.place_snapshot(store, choice, target, next_base)
        if local is None:
            _write_metadata(partition, target)
        else:
            _link(local.path, target, sorted(os.listdir(local.path)))  # noqa: PTH208  names alone

    def _measure_segments(self, store: ObjectStore, partition: RemotePartition) -> tuple[RemoteSegment, ...]:
        """Return the segments, with their last offsets if only the records show these and others may overlap."""
        if partition.layout not in _TELLING:
            return partition.segments
        pool = self._new_directory(partition.folder, is_far=not store.is_near)
        return tuple(
            each if each.log is None else self._files.measure(store, each, pool / str(number))
            for number, each in enumerate(partition.segments)
        )

    def _name_problems(self, placed: PlacedPartition) -> None:
        """Report the unusable parts of a partition."""
        for segment in placed.remote.segments:
            for problem in segment.problems:
                self.problems += not segment.is_unfinished
                self._reported_count += 1
                if self._reported_count <= MOST_SAID:
                    self._say(f"kseg: {place_of(placed.store, problem.key)}: {problem.sentence}")
                elif self._reported_count == MOST_SAID + 1:
                    self._say("kseg: there are more such objects; run `kseg verify` to list all")

    def _new_directory(self, name: str, *, is_far: bool) -> PlacedPath:
        """Return an empty directory that is shown under a name."""
        if self._scratch is None:
            try:
                self._scratch = self._stack.enter_context(scratch_directory()).resolve()
            except OSError as error:
                raise OpenError(f"no temporary directory can be created for it: {error.strerror}", name) from error
        self._count += 1
        directory = Placement(self._scratch / str(self._count), name.rstrip("/"), is_far=is_far).path
        directory.mkdir()
        return directory


def _free_folder(directory: PlacedPath, partition: RemotePartition) -> PlacedPath:
    """Return a log directory for one of several partitions of a name: topics of their own, or copies of a tier."""
    name = _UNSAFE.sub("_", partition.topic_id or partition.folder.rstrip("/").rpartition("/")[0][-_NAME_KEPT:])
    folder, number = directory / name, 1
    while (folder / partition.directory_name).exists():
        number += 1
        folder = directory / f"{name}.{number}"
    folder.mkdir(exist_ok=True)
    return folder


def _link(source: Path, target: Path, names: Iterable[str]) -> None:
    """Link files next to existing ones, which keep their names."""
    for name in names:
        if (source / name).is_file() and not (target / name).exists():
            (target / name).symlink_to(source / name)


def _write_lineage(lineage: Epochs, target: Path) -> None:
    starts = tuple(EpochStart(*each) for each in lineage)
    content = build_leader_epoch_checkpoint(LeaderEpochCheckpoint(0, starts))
    (target / LEADER_EPOCH_CHECKPOINT).write_bytes(content)


def _write_metadata(partition: RemotePartition, target: Path) -> None:
    if partition.topic_id is None:
        return
    try:
        content = build_metadata(partition.topic_id)
    except FileError:
        return  # names of objects may be invalid as uuids
    (target / PARTITION_METADATA).write_bytes(content)
