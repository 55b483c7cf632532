"""Faults of folders: files of interrupted deletions, cleanings and moves, unknown files, a second log directory."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from start import faults
from start.faults import ABSENT, NotApplicable, Place, Recipe

SEGMENT = (".log", ".index", ".timeindex", ".txnindex")
TOKEN = "0123456789abcdef0123456789abcdef"
"""Part of the name of each folder that is deleted, moved or stray."""
OTHER_ID = "b3RoZXJvdGhlcm90aGVyMQ"
OTHER_DIRECTORY = {"directory.id": OTHER_ID}
OTHER_CLUSTER = {"cluster.id": OTHER_ID}
OTHER_NODE = {"node.id": "7", "broker.id": "7"}
"""Lines of meta.properties, which name the node in one of two ways."""
Change = Callable[[Path, Path], object]
"""A function that moves or copies."""


def second_directory(disk: Path) -> Path:
    """Return the second log directory of a disk, which a broker uses if it exists."""
    return disk.parent / f"{disk.name}-second"


def segment_to(suffix: str, change: Change, *, recipe: Recipe | None = None) -> Recipe:
    """Return a recipe that adds a suffix to a segment's files, or to copies of them, and damages the log among them."""

    def put(place: Place) -> None:
        for each in SEGMENT:
            path = place.path.with_suffix(each)
            if path.exists():
                change(path, path.with_name(path.name + suffix))
        if recipe:
            recipe(place._replace(path=place.path.with_name(place.path.name + suffix)))

    return put


def folder_to(suffix: str, change: Change) -> Recipe:
    """Return a recipe that gives a partition folder, or a copy of it, another name next to the old one."""
    return lambda place: _void(change(place.path, place.path.with_name(f"{place.path.name}.{TOKEN}-{suffix}")))


def folder_to_second(change: Change, suffix: str = "") -> Recipe:
    """Return a recipe that moves or copies a partition folder to a second log directory."""

    def put(place: Place) -> None:
        add_second(OTHER_DIRECTORY)(place)
        change(place.path, second_directory(place.disk) / f"{place.path.name}{suffix}")

    return put


def add_second(changes: Mapping[str, str]) -> Recipe:
    """Return a recipe that adds a log directory with some changed properties of the first."""

    def put(place: Place) -> None:
        second = second_directory(place.disk)
        second.mkdir()
        shutil.copy(place.disk / "meta.properties", second)
        if changes:
            faults.with_properties(changes)(Place(place.disk, second / "meta.properties"))

    return put


def add_unformatted(place: Place) -> None:
    """Add an empty second log directory."""
    second_directory(place.disk).mkdir()


def with_file(name: str) -> Recipe:
    """Return a recipe that puts a file of another program into a folder."""
    return lambda place: _void((place.path / name).write_bytes(b"not Kafka's\n"))


def with_folder(name: str) -> Recipe:
    """Return a recipe that puts a folder of another program into a folder."""

    def put(place: Place) -> None:
        (place.path / name).mkdir()
        with_file("notes.txt")(place._replace(path=place.path / name))

    return put


def with_copy(name: str, topic_id: str | None = None) -> Recipe:
    """Return a recipe that copies a partition folder to another name, and can change the topic id in it."""

    def put(place: Place) -> None:
        source = min(place.disk.glob("plain-*-0"), default=None)
        if source is None:
            raise NotApplicable(ABSENT)
        shutil.copytree(source, place.path / name)
        if topic_id:
            (place.path / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")

    return put


def with_remote_cache(place: Place) -> None:
    """Leave indexes of remote segments, one complete and two incomplete."""
    cache = place.path / "remote-log-index-cache"
    cache.mkdir()
    for name in ("0_AAAAAAAAAAAAAAAAAAAAAQ.index", "0_AAAAAAAAAAAAAAAAAAAAAQ.timeindex.tmp", "7_x.txnindex.deleted"):
        (cache / name).write_bytes(b"\1" * 24)


def with_unreadable(place: Place) -> None:
    """Leave a folder that only root can read, as on some file systems."""
    path = place.path / "lost+found"
    path.mkdir()
    faults.make_unreadable(place._replace(path=path))


def empty_folder(place: Place) -> None:
    """Delete all files of a folder."""
    shutil.rmtree(place.path)
    place.path.mkdir()


def without(suffix: str) -> Recipe:
    """Return a recipe that deletes all files of a kind."""

    def put(place: Place) -> None:
        for path in place.path.glob(f"*{suffix}"):
            path.unlink()

    return put


def _void(_: object) -> None:
    """Drop the result of a call: recipes return nothing."""


OF_SEGMENTS: dict[str, Recipe] = {
    **{f"copied to {suffix}": segment_to(suffix, shutil.copy) for suffix in (".deleted", ".cleaned", ".swap")},
    **{f"renamed to {suffix}": segment_to(suffix, Path.rename) for suffix in (".deleted", ".cleaned", ".swap")},
    "renamed to .swap, cut": segment_to(".swap", Path.rename, recipe=faults.cut_in_body),
    "renamed to .swap, a log with a bit changed": segment_to(
        ".swap", Path.rename, recipe=faults.changed(faults.flip_in_records)
    ),
}
FOLDER_FAULTS: dict[str, Recipe] = {
    "absent": faults.remove,
    "empty": empty_folder,
    "unreadable": faults.make_unreadable,
    "a symbolic link": faults.link,
}
OF_FOLDERS: dict[str, Recipe] = {
    **FOLDER_FAULTS,
    **{f"copied to -{suffix}": folder_to(suffix, shutil.copytree) for suffix in ("delete", "future", "stray")},
    **{f"renamed to -{suffix}": folder_to(suffix, Path.rename) for suffix in ("delete", "future", "stray")},
    "also in a second log directory": folder_to_second(shutil.copytree),
    "only in a second log directory": folder_to_second(Path.rename),
    "copied to -future in a second log directory": folder_to_second(shutil.copytree, f".{TOKEN}-future"),
    "with an unknown file": with_file("notes.txt"),
    "with an unknown folder": with_folder("backup"),
    "with a log of another name": with_file("backup.log"),
}
OF_METADATA: dict[str, Recipe] = {
    **FOLDER_FAULTS,
    "without logs": without(".log"),
    "without checkpoints": without(".checkpoint"),
    "with an unknown file": with_file("notes.txt"),
}
OF_DISKS: dict[str, Recipe] = {
    "with an unknown file": with_file("notes.txt"),
    "with a file that is named like a partition": with_file("notes-0"),
    "with an unknown folder": with_folder("backup"),
    "with an unknown folder that is named like a partition": with_folder("backup-0"),
    "with a hidden folder": with_folder(".snapshot"),
    "with a folder that nobody can read": with_unreadable,
    "with a copy of a partition of another name": with_copy("plain-copy-0"),
    "with a copy of a partition of another number": with_copy("plain-00-1"),
    "with a partition of an unknown topic": with_copy("unknown-0", OTHER_ID),
    "with remote-log-index-cache": with_remote_cache,
    "unreadable": faults.make_unreadable,
    "with a second log directory": add_second(OTHER_DIRECTORY),
    "with an unformatted second log directory": add_unformatted,
    "with a second log directory of another cluster": add_second({**OTHER_DIRECTORY, **OTHER_CLUSTER}),
    "with a second log directory of another node": add_second({**OTHER_DIRECTORY, **OTHER_NODE}),
    "with a second log directory of the same id": add_second({}),
}
