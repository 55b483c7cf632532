"""A broker's disks in a store as directories on this machine, of empty files whose bytes are read from the store."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from kseg.errors import FileError, OpenError
from kseg.formats.file_names import parse_partition_directory
from kseg.log.partition import PARTITION_METADATA
from kseg.log.selection import PartitionChoice
from kseg.log.side_files import StandingFiles
from kseg.store.location import ObjectStore, StoredObject, place_of
from kseg.store.remote_files import Store, open_store
from kseg.system.files import open_regular
from kseg.system.placed_path import PlacedPath, Placement
from kseg.system.run_usage import in_threads
from kseg.system.shared_work import FAR_AT_ONCE
from kseg.tiered.places import PINTEREST_MARK, TierLayout, parse_object_name


def holds_tier(store: ObjectStore, objects: Iterable[StoredObject]) -> bool:
    """Return True if some objects are those of a remote tier, not a broker's own files."""
    for found in objects:
        name = parse_object_name(f"{store.address}/{found.key}")
        if name is not None and (name.layout is not TierLayout.PLAIN or name.suffix == PINTEREST_MARK):
            return True
    return False


def split_url(url: str) -> tuple[str, str]:
    """Return the URL of an object's folder, and its name there."""
    folder, _, name = url.rstrip("/").rpartition("/")
    return folder, name


def is_partition(url: str) -> bool:
    """Return True if a URL is that of a partition directory."""
    folder, name = split_url(url)
    return not folder.endswith("/") and parse_partition_directory(name) is not None


SMALL_FILE = 4096
"""The most bytes of a file that every command reads of each partition: those of the chosen are fetched at once."""


class Mirror:
    """A local copy of the directory structure of a store."""

    def __init__(self, files: StandingFiles, choice: PartitionChoice) -> None:
        """Take the maker of their files, and the partitions that are read."""
        self._files, self._choice = files, choice
        self.refused: list[OpenError] = []

    def place(self, store: ObjectStore, objects: Iterable[StoredObject], target: PlacedPath) -> None:
        """Place objects below an existing directory: all, or the ones that the choice may need and all directories."""
        folders = {"": target}
        requested_paths: list[PlacedPath] = []
        objects = list(objects)
        with_objects = {folder for found in objects for folder in _folders_above(found.key)}
        needed = self._needed_folders(with_objects)
        last = None
        for found in objects:
            folder, _, name = found.key.rpartition("/")
            if found.key == last and not found.size:
                continue  # the mark of a folder, without the slash that the library omits
            last = found.key
            if found.key in with_objects:
                if found.size:  # else it is the mark of a folder
                    why = "can't be a file here, since a folder of its name has other objects; move it"
                    self.refused.append(OpenError(why, place_of(store, found.key)))
                continue
            try:
                if not found.size and parse_partition_directory(name) is not None:
                    _folder(folders, found.key)  # the mark of an empty folder
                    continue
                directory = _folder(folders, folder)
                if folder not in needed:
                    continue
                path = directory / name
                self._files.place_object(store, found, path)
            except OSError as error:
                self.refused.append(OpenError(f"can't be a file here: {error.strerror}", place_of(store, found.key)))
                continue
            if name == PARTITION_METADATA and found.size <= SMALL_FILE and self._choice.takes_directory(path.parent):
                requested_paths.append(path)
        for _ in in_threads(_fetch, requested_paths, FAR_AT_ONCE):
            pass

    def _needed_folders(self, folders: Iterable[str]) -> set[str]:
        """Return the folders whose files may be read: of chosen topics, of names that begin with _, of no partition.

        All, if no partition is chosen: then messages list the existing ones.
        """
        known = {folder: parse_partition_directory(folder.rpartition("/")[2]) for folder in (*folders, "")}
        is_any = any(name is not None and self._choice.takes(name.topic, name.partition) for name in known.values())
        return {
            folder
            for folder, name in known.items()
            if not is_any or name is None or name.topic.startswith("_") or self._choice.takes_topic(name.topic)
        }

    def place_files(self, url: str, names: Iterable[str], target: PlacedPath) -> None:
        """Create placeholders in a directory for the existing files in a store folder."""
        store = open_store(url)
        self.place(store, _existing_objects(store, names), target)


def _folders_above(key: str) -> Iterator[str]:
    """Yield the folders above an object, nearest first."""
    while "/" in key:
        key = key.rpartition("/")[0]
        yield key


def _fetch(path: PlacedPath) -> None:
    """Fetch the contents of a file. Errors are raised when the file is read."""
    with suppress(FileError):
        os.close(open_regular(path)[0])


def _existing_objects(store: Store, names: Iterable[str]) -> Iterator[StoredObject]:
    """Yield the existing objects of these keys, requested at the same time."""
    for found in in_threads(store.stat, names):
        if found is not None:
            yield found


def _folder(folders: dict[str, PlacedPath], key: str) -> PlacedPath:
    """Return the directory of a key, with its own placement: no other files are sent to processes with it."""
    if key not in folders:
        above, _, name = key.rpartition("/")
        path = _folder(folders, above) / name
        os.mkdir(path)  # noqa: PTH102
        folders[key] = Placement(path, str(path), path.placement).path
    return folders[key]
