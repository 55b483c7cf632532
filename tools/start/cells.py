"""The measured cases: files of a disk, and the faults of each, as tables. A cell is one file with one fault."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from start import faults, leftovers
from start.faults import ABSENT, ANOTHERS, COMMON, NotApplicable, Place, Recipe

STOPS = ("clean", "killed")
WHICH = ("first", "middle", "last")
SEGMENT_FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
METADATA = "__cluster_metadata-0"
COPIES = {"transactional": 36, "plain": 8, "compacted": 8}
"""Topics of each kind, all of one kind written alike. The last of a kind has no fault, and is the donor of files."""
DONOR_KIND = {"transactional": "plain", "plain": "compacted", "compacted": "transactional"}
LOG_FAULTS: dict[str, Recipe] = {
    "one bit changed": faults.changed(faults.flip_in_records),
    "one bit of a base offset changed": faults.changed(faults.flip_in_base_offset),
}


class Target(NamedTuple):
    """A file of the disk and its donor.

    find: returns the file in a log directory or a partition's. donor: another file of the disk. own: faults of this
    file, which precede the common ones of the same name. common: faults that it shares with other files.
    """

    find: Callable[[Path], Path]
    donor: Callable[[Path], Path] | None = None
    own: Mapping[str, Recipe] = {}
    common: Mapping[str, Recipe] = COMMON

    @property
    def faults(self) -> Mapping[str, Recipe]:
        """All faults of the file, by name."""
        return {**self.common, **self.own}


class Cell(NamedTuple):
    """A file with a fault. kind: of the file's topic, or None for files of the log directory and the metadata."""

    file: str
    fault: str
    kind: str | None = None


def named(name: str) -> Callable[[Path], Path]:
    """Return a function that finds a file by its name."""
    return lambda directory: directory / name


def itself(directory: Path) -> Path:
    """Return the directory itself."""
    return directory


def nth(suffix: str, which: str) -> Callable[[Path], Path]:
    """Return a function that finds the first, middle or last file of a kind by name.

    The bootstrap checkpoint of the metadata doesn't count.
    """

    def find(directory: Path) -> Path:
        found = sorted(path for path in directory.glob(f"*{suffix}") if path.stem[0].isdigit())
        if not found:
            raise NotApplicable(ABSENT)
        return found[{"first": 0, "middle": len(found) // 2, "last": -1}[which]]

    return find


def of_donor(find: Callable[[Path], Path]) -> Callable[[Path], Path]:
    """Return a function that finds a file in the plain topic's partition without faults."""
    return lambda disk: find(disk / f"{donor('plain')}-0")


def in_metadata(find: Callable[[Path], Path]) -> Callable[[Path], Path]:
    """Return a function that finds a file in the metadata's partition."""
    return lambda disk: find(disk / METADATA)


PARTITION_TARGETS: dict[str, Target] = {
    "partition.metadata": Target(named("partition.metadata")),
    "leader-epoch-checkpoint": Target(
        named("leader-epoch-checkpoint"), own={"offsets beyond the end": faults.with_offsets(1000)}
    ),
    **{
        f"{which} {suffix}": Target(nth(suffix, which), own=LOG_FAULTS if suffix == ".log" else {})
        for suffix in SEGMENT_FILES
        for which in WHICH
    },
    **{f"{which} segment": Target(nth(".log", which), own=leftovers.OF_SEGMENTS, common={}) for which in WHICH},
    "folder": Target(itself, own=leftovers.OF_FOLDERS, common={}),
}
KINDS = {
    "transactional": tuple(PARTITION_TARGETS),
    "plain": ("first .log", "last .log"),
    "compacted": ("first .log", "last .log", "middle segment"),
}
"""Files that get faults, by the kind of the topic, as far as the kind has them."""

CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
DISK_TARGETS: dict[str, Target] = {
    "meta.properties": Target(
        named("meta.properties"),
        own={
            "another cluster's": faults.with_properties(leftovers.OTHER_CLUSTER),
            "another node's": faults.with_properties(leftovers.OTHER_NODE),
            "another directory's": faults.with_properties(leftovers.OTHER_DIRECTORY),
            "another version": faults.with_properties({"version": "9"}),
        },
    ),
    "bootstrap.checkpoint": Target(named("bootstrap.checkpoint"), donor=in_metadata(nth(".checkpoint", "last"))),
    "quorum-state": Target(
        in_metadata(named("quorum-state")),
        own={
            "another node's": faults.with_field("leaderId", 7),
            "an earlier epoch": faults.with_field("leaderEpoch", 0),
            "a later epoch": faults.with_field("leaderEpoch", 1000),
        },
    ),
    "last metadata .checkpoint": Target(
        in_metadata(nth(".checkpoint", "last")), donor=in_metadata(nth(".checkpoint", "first"))
    ),
    "first metadata .checkpoint": Target(
        in_metadata(nth(".checkpoint", "first")), donor=in_metadata(nth(".checkpoint", "last"))
    ),
    **{
        f"{which} metadata .log": Target(
            in_metadata(nth(".log", which)), donor=of_donor(nth(".log", which)), own=LOG_FAULTS
        )
        for which in ("first", "last")
    },
    **{
        name: Target(
            named(name),
            own={
                "of other topics": faults.changed(faults.of_other_topics),
                "offsets 0": faults.with_offsets(0),
                "offsets beyond the end": faults.with_offsets(1000),
            },
        )
        for name in CHECKPOINTS
    },
    ".kafka_cleanshutdown": Target(
        named(".kafka_cleanshutdown"), own={"an earlier epoch": faults.with_field("brokerEpoch", 0)}
    ),
    **{
        f"metadata {name}": Target(in_metadata(named(name)), donor=of_donor(named(name)))
        for name in ("leader-epoch-checkpoint", "partition.metadata")
    },
    **{
        f"last metadata {suffix}": Target(in_metadata(nth(suffix, "last")), donor=in_metadata(nth(suffix, "first")))
        for suffix in (".snapshot", ".index", ".timeindex")
    },
    ".lock": Target(named(".lock")),
    METADATA: Target(named(METADATA), own=leftovers.OF_METADATA, common={}),
    "log directory": Target(itself, own=leftovers.OF_DISKS, common={}),
}


def donor(kind: str) -> str:
    """Return the topic of a kind that never has a fault."""
    return topics(kind)[-1]


def topics(kind: str) -> list[str]:
    """Return the topics of a kind."""
    return [f"{kind}-{number:02}" for number in range(COPIES[kind])]


def partition_cells() -> Iterator[Cell]:
    """Yield the cells of partitions' files: as many as there are topics can share a start."""
    for kind, names in KINDS.items():
        for name in names:
            for fault in PARTITION_TARGETS[name].faults:
                yield Cell(name, fault, kind)


def disk_cells() -> Iterator[Cell]:
    """Yield the cells of files of the log directory and the metadata: each has a start of its own."""
    for name, target in DISK_TARGETS.items():
        for fault in target.faults:
            yield Cell(name, fault)


def put_fault(cell: Cell, disk: Path, topic: str | None = None) -> Path:
    """Put a cell's fault into a disk, for a topic's file into this topic's; return the file path in the disk.

    Raises NotApplicable if the file doesn't exist, or can't have the fault.
    """
    if cell.kind is None:
        target, directory = DISK_TARGETS[cell.file], disk
    else:
        target, directory = PARTITION_TARGETS[cell.file], disk / f"{topic}-0"
    path = target.find(directory)
    other = find_other(cell, target, disk) if cell.fault == ANOTHERS else None
    faults.apply(target.faults[cell.fault], Place(disk, path, other))
    return path.relative_to(disk)


def find_other(cell: Cell, target: Target, disk: Path) -> Path | None:
    """Return the file that replaces a cell's file, if it exists."""
    try:
        if cell.kind:
            return target.find(disk / f"{donor(DONOR_KIND[cell.kind])}-0")
        return target.donor(disk) if target.donor else None
    except NotApplicable:
        return None
