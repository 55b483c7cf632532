"""A broker's disks in a store, as directories on this machine: of empty files, whose bytes are read where they lie."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from kseg.errors import FileError, OpenError
from kseg.formats.file_names import parse_partition_directory
from kseg.log.partition import PARTITION_METADATA
from kseg.log.side_files import StandingFiles
from kseg.store.location import ObjectStore, StoredObject, place_of
from kseg.store.remote_files import Store, open_store
from kseg.system.files import open_regular
from kseg.system.placed_path import PlacedPath, Placement
from kseg.system.run_usage import in_threads
from kseg.system.shared_work import FAR_AT_ONCE
from kseg.tiered.places import PINTEREST_MARK, TierLayout, parse_object_name


def holds_tier(store: ObjectStore, objects: Iterable[StoredObject]) -> bool:
    """Whether some of the objects are those of a remote tier, not a broker's own files."""
    for found in objects:
        name = parse_object_name(f"{store.address}/{found.key}")
        if name is not None and (name.layout is not TierLayout.PLAIN or name.suffix == PINTEREST_MARK):
            return True
    return False


def parted(url: str) -> tuple[str, str]:
    """The URL of the folder that something lies in, and its name there."""
    folder, _, name = url.rstrip("/").rpartition("/")
    return folder, name


def is_partition(url: str) -> bool:
    """Whether a URL is that of a partition's directory: what a broker knows of it is partly in the one above."""
    folder, name = parted(url)
    return not folder.endswith("/") and parse_partition_directory(name) is not None


SMALL_FILE = 4096
"""Bytes that a file has at most which every command reads of each partition: all of them are fetched at once."""


class Mirror:
    """Makes such directories. refused: objects that can't be files here."""

    def __init__(self, files: StandingFiles) -> None:
        """Takes what makes their files."""
        self._files = files
        self.refused: list[OpenError] = []

    def place(self, store: ObjectStore, objects: Iterable[StoredObject], target: PlacedPath) -> None:
        """Puts all objects below a directory that is there."""
        folders = {"": target}
        asked: list[PlacedPath] = []
        objects = list(objects)
        with_objects = {folder for found in objects for folder in _folders_above(found.key)}
        last = None
        for found in objects:
            folder, _, name = found.key.rpartition("/")
            if found.key == last and not found.size:
                continue  # the mark of a folder, of which the library leaves the slash out
            last = found.key
            if found.key in with_objects:
                if found.size:  # else it is the mark of a folder
                    why = "can't be a file here: other objects lie in a folder of its name; move it"
                    self.refused.append(OpenError(why, place_of(store, found.key)))
                continue
            try:
                path = _folder(folders, folder) / name
                self._files.place_object(store, found, path)
            except OSError as error:
                self.refused.append(OpenError(f"can't be a file here: {error.strerror}", place_of(store, found.key)))
                continue
            if name == PARTITION_METADATA and found.size <= SMALL_FILE:
                asked.append(path)
        for _ in in_threads(_fetch, asked, FAR_AT_ONCE):
            pass

    def place_named(self, url: str, names: Iterable[str], target: PlacedPath) -> None:
        """Puts those files of a store's folder into a directory that are there."""
        store = open_store(url)
        self.place(store, _those_there(store, names), target)


def _folders_above(key: str) -> Iterator[str]:
    """The folders that an object lies in, the nearest first."""
    while "/" in key:
        key = key.rpartition("/")[0]
        yield key


def _fetch(path: PlacedPath) -> None:
    """Fetches a file's bytes. One that is broken is an error where it is read."""
    with suppress(FileError):
        os.close(open_regular(path)[0])


def _those_there(store: Store, names: Iterable[str]) -> Iterator[StoredObject]:
    """The objects of these keys that are there, asked for at the same time."""
    for found in in_threads(store.stat, names):
        if found is not None:
            yield found


def _folder(folders: dict[str, PlacedPath], key: str) -> PlacedPath:
    """The directory of a key, with a placement of its own: no other's files are sent to processes with it."""
    if key not in folders:
        above, _, name = key.rpartition("/")
        path = _folder(folders, above) / name
        os.mkdir(path)  # noqa: PTH102
        folders[key] = Placement(path, str(path), path.placement).path
    return folders[key]
