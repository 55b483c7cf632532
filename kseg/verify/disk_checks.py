"""Checks of a node's disks before its logs are read: identities, and the directories that the metadata expect."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import META_PROPERTIES, DirectoryIdentity, LogDir, read_identity
from kseg.cluster.replicas import CopyStatus, LeftOut, left_out_of, topic_id_at
from kseg.errors import FileError, plural
from kseg.findings.findings import Findings
from kseg.formats.file_names import (
    BOOTSTRAP_CHECKPOINT,
    KINDS_OF_LOG_DIR,
    LOG_KINDS,
    DirectoryState,
    FileKind,
    parse_file_name,
    parse_partition_directory,
)
from kseg.formats.foreign import what_has_name
from kseg.log.partition import METADATA_TOPIC, PARTITION_METADATA, Checkpoints
from kseg.log.selection import PartitionChoice
from kseg.system.directory_names import DirectoryNames
from kseg.system.owners import closed_to_owner

if TYPE_CHECKING:
    from kseg.cluster.model import ClusterMetadata, ClusterPartition

KRAFT_VERSION = "1"
"""The version of a `meta.properties` that a KRaft node wrote."""
_VERSIONS = ("0", KRAFT_VERSION)
_ALLOWED = frozenset({"remote-log-index-cache"})
"""Directories that a broker itself creates in a log directory. Source: LogManager.loadLogs."""
_OWN_METADATA = f"{METADATA_TOPIC}-0"


def check_log_dir(log_dir: LogDir, findings: Findings, *, is_of_kraft: bool) -> None:
    """Check a log directory's own files and directories; is_of_kraft: other given ones are a KRaft node's."""
    for problem in log_dir.problems:
        findings.add("unreadable-text", log_dir.path / Path(problem.path or "").name, problem.message)
    _check_identity(log_dir, findings, is_of_kraft=is_of_kraft)
    for path, sentence in closed_to_owner(_paths_read(log_dir), _is_written):
        findings.add("other-owner", path, sentence)
    if _has_topics(log_dir) and (log_dir.path / META_PROPERTIES).exists():
        for name in sorted(name for name in log_dir.names.directories if not _is_partitions(name)):
            what = what_has_name(name)
            beside = f": it is {what}" if what else ""
            findings.add(
                "foreign-directory", log_dir.path / name, f"its name isn't a topic with a partition number{beside}"
            )
    _check_moves(log_dir, findings)
    _check_bootstrap(log_dir.path / BOOTSTRAP_CHECKPOINT, findings)


def _check_bootstrap(path: Path, findings: Findings) -> None:
    if not path.exists():
        return
    from kseg.verify.metadata_checks import bootstrap_problem  # other disks don't need it

    if (problem := bootstrap_problem(path)) is not None:
        findings.add("bootstrap-checkpoint", path, problem)


def _check_identity(log_dir: LogDir, findings: Findings, *, is_of_kraft: bool) -> None:
    """Check `meta.properties`, which a node reads first; with ZooKeeper, it writes a missing one.

    Source: MetaProperties, MetaPropertiesVersion.
    """
    path = log_dir.path / META_PROPERTIES
    if not path.exists():
        if _is_of_kraft(log_dir.path) or (is_of_kraft and _is_of_node(log_dir)):
            findings.add("identity-missing", path, "the file is missing, but the directory has other files of a node")
        return
    try:
        identity = read_identity(log_dir.path)
    except FileError as error:
        findings.add("unreadable-text", path, error.message)
        return
    if (problem := _identity_problem(identity)) is not None:
        findings.add("unreadable-text", path, problem)


def _identity_problem(identity: DirectoryIdentity) -> str | None:
    if identity.version is None:
        return "it has no version"
    if identity.version not in _VERSIONS:
        return f"its version is {identity.version}, not {' or '.join(_VERSIONS)}"
    if identity.broker is None and identity.version == KRAFT_VERSION:
        return "it has no node id"
    if identity.cluster_id is None and identity.version == KRAFT_VERSION:
        return "it has no cluster.id"
    return None


def _is_of_kraft(log_dir: Path) -> bool:
    """Return True if a directory has files that only a KRaft node writes."""
    return any((log_dir / name).exists() for name in (BOOTSTRAP_CHECKPOINT, _OWN_METADATA))


def _is_of_node(log_dir: LogDir) -> bool:
    """Return True if a directory has files that only a node writes, outside of partitions' directories."""
    return any(parse_file_name(name).kind in KINDS_OF_LOG_DIR for name in log_dir.names.files)


def _has_topics(log_dir: LogDir) -> bool:
    """Return True if a broker uses it: a controller reads only its own partition."""
    return any(path.name != _OWN_METADATA for path in log_dir.directories)


def _is_partitions(name: str) -> bool:
    """Return True if a broker starts with a directory of this name. Source: UnifiedLog.parseTopicPartitionName."""
    if name in _ALLOWED or parse_partition_directory(name) is not None:
        return True
    topic, dash, number = name.rpartition("-")
    return bool(dash and topic and number.lstrip("+-").isdecimal())


def _check_moves(log_dir: LogDir, findings: Findings) -> None:
    """Check moves: each ends by a rename that fails if the log directory already has the partition."""
    names = {path.name for path in log_dir.directories}
    for path in log_dir.directories:
        found = parse_partition_directory(path)
        if found is not None and found.state is DirectoryState.FUTURE and f"{found.topic}-{found.partition}" in names:
            findings.add("partition-twice", path, "the same log directory has the partition's own directory")


def _paths_read(log_dir: LogDir) -> Iterator[Path]:
    """Yield a log directory, and its files and directories that a node reads."""
    yield log_dir.path
    yield from (log_dir.path / name for name in (*log_dir.names.files, *log_dir.names.directories) if _is_read(name))
    for path, names in log_dir.listed.items():
        yield from (path / name for name in names.files)


def _is_read(name: str) -> bool:
    """Return True if a node reads a file or directory of a log directory, and needs it."""
    if parse_partition_directory(name) is not None or name == BOOTSTRAP_CHECKPOINT:
        return True
    kind = parse_file_name(name).kind
    return kind in KINDS_OF_LOG_DIR and kind is not FileKind.CLEAN_SHUTDOWN


def check_emptied(log_dir: LogDir, findings: Findings, choice: PartitionChoice) -> None:
    """Report directories without log files, of partitions that had records by the checkpoints; not in a skeleton."""
    emptied = _find_emptied(log_dir)
    if 2 * len(emptied) > len(log_dir.directories):
        return
    for path, known in emptied.items():
        if choice.takes_directory(path):
            sentence = f"the recovery point is {known.recovery_point}, the high watermark {known.high_watermark}"
            findings.add("log-end-lost", path, f"it contains no log files, but {sentence}")


def _find_emptied(log_dir: LogDir) -> dict[Path, Checkpoints]:
    """Return directories without any log, of partitions that had records according to the checkpoints."""
    found: dict[Path, Checkpoints] = {}
    for path in log_dir.directories:
        name = parse_partition_directory(path)
        own = None if name is None or name.state else log_dir.checkpoints.get((name.topic, name.partition))
        if (
            own is not None
            and (own.recovery_point or 0) > 0
            and (own.high_watermark or 0) > 0
            and _is_empty(log_dir.listed.get(path))
        ):
            found[path] = own
    return found


def _is_empty(names: DirectoryNames | None) -> bool:
    """Return True if a partition directory certainly has no file with an offset in its name."""
    return names is not None and not any(parse_file_name(name).base_offset is not None for name in names.files)


def _is_written(name: str) -> bool:
    """Return True if a broker writes to a file in place; others it only reads, and replaces by new ones."""
    return parse_file_name(name).kind in _WRITTEN


_WRITTEN = frozenset(
    {FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX, FileKind.LOCK}
)


# --- several log directories ------------------------------------------------------------------------------------------


def check_disks(cluster: Cluster, findings: Findings, choice: PartitionChoice) -> None:
    """Check log directories of one node for common partitions and contradictory identities."""
    by_node: dict[int, list[LogDir]] = defaultdict(list)
    for each in cluster.log_dirs:
        if each.identity.broker is not None:
            by_node[each.identity.broker].append(each)
    for own in by_node.values():
        _compare_identities(own, findings)
    if len(cluster.log_dirs) < 2:
        return
    for left_out in left_out_of(cluster.partitions_of_all(choice)):
        _check_lineage(left_out, findings)
    disks = Counter((cluster.cluster_of(each.path), each.identity.broker) for each in cluster.log_dirs)
    if max(disks.values(), default=0) < 2:
        return
    for replicas in cluster.partitions_of_all(choice):
        first = {copy.broker: copy.place for copy in reversed(replicas.copies) if copy.status is CopyStatus.CURRENT}
        for copy in replicas.copies:
            if copy.status is CopyStatus.DUPLICATE:
                where = first[copy.broker].path.parent
                sentence = f"also in {where}, a log directory of the same broker"
                findings.add("partition-twice", copy.place.path, sentence)


def _check_lineage(left_out: LeftOut, findings: Findings) -> None:
    """Report a copy's last offsets of a lineage that the cluster abandoned."""
    if left_out.offsets is None:
        return
    first, end = left_out.offsets
    whose = f"leader epoch {left_out.leader_epoch}, which the cluster abandoned"
    if end is None:
        sentence, last = f"offsets from {first} on have {whose}", None
    else:
        sentence, last = f"offsets {first} to {end - 1}, up to {plural(end - first, 'record')}, have {whose}", end - 1
    findings.add("copies-diverged", Path(left_out.path), sentence, offsets=(first, last))


def _compare_identities(own: Sequence[LogDir], findings: Findings) -> None:
    """Compare log directories with one node id.

    With metadata of their own, they may be nodes of different clusters.
    """
    by_id: dict[str, LogDir] = {}
    by_cluster: dict[str, LogDir] = {}
    for each in own:
        identity = each.identity
        path = each.path / META_PROPERTIES
        if identity.directory_id is not None:
            first = by_id.setdefault(identity.directory_id, each)
            if first is not each:
                findings.add("identity-differs", path, f"its directory.id is also the id of {first.path}")
        if identity.cluster_id is not None:
            by_cluster.setdefault(identity.cluster_id, each)
    homes = [each for each in own if _has_metadata(each)]
    if len(by_cluster) < 2 or len({each.identity.cluster_id for each in homes}) > 1:
        return
    expected = (homes or own)[0]
    for cluster_id, each in by_cluster.items():
        if cluster_id != expected.identity.cluster_id:
            sentence = f"its cluster.id is {cluster_id}, but {expected.path} has {expected.identity.cluster_id}"
            findings.add("identity-differs", each.path / META_PROPERTIES, sentence)


def _has_metadata(log_dir: LogDir) -> bool:
    """Return True if there is a metadata log or checkpoint."""
    return any(
        parse_file_name(path).kind in LOG_KINDS
        for path in (log_dir.path / _OWN_METADATA).glob("[0-9]*")
        if path.is_file()
    )


def _is_whole(log_dir: LogDir) -> bool:
    """Return True if it is a node's own disk, not a skeleton, by files that nobody copies with a partition."""
    has_sign = any((log_dir.path / str(kind)).exists() for kind in (FileKind.CLEAN_SHUTDOWN, FileKind.LOCK))
    return has_sign and 2 * len(_find_emptied(log_dir)) <= len(log_dir.directories)


def _size_of_metadata(own: Sequence[LogDir]) -> int:
    """Return the bytes of the largest copy of the metadata."""
    return max((_size(each.path / _OWN_METADATA) for each in own if _has_metadata(each)), default=0)


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


# --- the metadata -----------------------------------------------------------------------------------------------------


def check_against_metadata(cluster: Cluster, findings: Findings, choice: PartitionChoice, largest: int | None) -> None:
    """Compare the log directories of all KRaft nodes with the cluster metadata."""
    nodes: dict[tuple[str | None, int | None], list[LogDir]] = defaultdict(list)
    for each in cluster.log_dirs:
        if each.identity.version == KRAFT_VERSION:
            nodes[each.identity.cluster_id, each.identity.broker].append(each)
    for own in nodes.values():
        _check_node(cluster, own, findings, choice, largest)


def _check_node(
    cluster: Cluster, own: Sequence[LogDir], findings: Findings, choice: PartitionChoice, largest: int | None
) -> None:
    is_large = largest is not None and _size_of_metadata(own) > largest
    metadata = None if is_large else cluster.metadata(cluster.cluster_of(own[0].path))
    if not any(map(_has_metadata, own)) and choice.is_everything and any(map(_is_whole, own)):
        sentence = f"none of the given log directories of node {own[0].identity.broker} has it"
        findings.add("metadata-missing", own[0].path / _OWN_METADATA, sentence)
    existing = _check_topics(metadata, own, findings, choice)
    if metadata is None:
        return
    for log_dir in own:
        _check_registration(metadata, log_dir, len(own), findings)
    chosen = [each for each in metadata.partitions if choice.takes(each.topic, each.partition)]
    homes = [(each, home) for each in chosen if (home := _home(metadata, own, each)) is not None]
    missing = [(each, home) for each, home in homes if (each.topic, each.partition) not in existing]
    if missing and (2 * len(missing) > len(homes) > 1 or not any(map(_is_whole, own))):
        due = plural(len(homes), "partition")
        sentence = f"by {_as_of(metadata)} this directory should have {due}; missing: {len(missing)}"
        findings.add("partial-disk", own[0].path, sentence)
        return
    for expected, home in missing:
        sentence = f"{_as_of(metadata)} assign it to this log directory of node {home.identity.broker}"
        elsewhere = ", ".join(_directories_of(cluster, expected)) or "no other directory has its name"
        findings.add(
            "copy-missing",
            home.path / f"{expected.topic}-{expected.partition}",
            f"{sentence}, and no other replica is in sync; {elsewhere}{_way_back(home, expected)}",
        )


def _way_back(home: LogDir, expected: "ClusterPartition") -> str:
    """Return the command that makes a directory that was put aside the partition's again; empty without one."""
    name = f"{expected.topic}-{expected.partition}"
    aside = [path for path in home.directories if path.name.startswith(f"{name}.")]
    aside = [path for path in aside if path.name.endswith(("-delete", "-stray"))]
    if len(aside) != 1:
        return ""
    words = " ".join(shlex.quote(str(path)) for path in (aside[0], home.path / name))
    return f"; to restore it, run `mv {words}` before the broker starts"


def _as_of(metadata: "ClusterMetadata") -> str:
    return "the metadata" if metadata.offset < 0 else f"the metadata, up to offset {metadata.offset},"


def _directories_of(cluster: Cluster, expected: "ClusterPartition") -> Iterator[str]:
    """Yield the places of the directories of a partition, in use or set aside, and their owners."""
    for log_dir in cluster.log_dirs:
        for path in log_dir.directories:
            found = parse_partition_directory(path)
            if found is not None and (found.topic, found.partition) == (expected.topic, expected.partition):
                node = log_dir.identity.broker
                yield f"{path} is here" if node is None else f"{path} of node {node} is here"


def _check_topics(
    metadata: "ClusterMetadata | None", own: Sequence[LogDir], findings: Findings, choice: PartitionChoice
) -> set[tuple[str, int]]:
    """Check directories' topics according to the metadata; return the partitions that a start uses."""
    ids = {} if metadata is None else {topic.name: topic.topic_id for topic in metadata.topics}
    others = _others_here(metadata, own[0].identity.broker)
    existing: set[tuple[str, int]] = set()
    for path in (path for log_dir in own for path in log_dir.directories if choice.takes_directory(path)):
        found = parse_partition_directory(path)
        if found is None or found.topic == METADATA_TOPIC or found.state not in (None, DirectoryState.FUTURE):
            continue
        if metadata is not None and found.topic not in ids:
            if found.state is None and not metadata.unreadable:
                findings.add("not-in-metadata", path, f"{_as_of(metadata)} have no such topic")
        elif _is_of_topic(path, ids.get(found.topic), others, findings):
            existing.add((found.topic, found.partition))
    return existing


def _check_registration(metadata: "ClusterMetadata", log_dir: LogDir, count: int, findings: Findings) -> None:
    """Compare a log directory id with the ids in its broker's registration.

    count: the number of given log directories.
    """
    node, own_id = log_dir.identity.broker, log_dir.identity.directory_id
    if own_id is None or node is None:
        return
    from kseg.cluster.model import NO_DIRECTORY  # like the metadata themselves

    path = log_dir.path / META_PROPERTIES
    registered = {broker.broker_id: broker.log_dirs for broker in metadata.brokers}
    owner = next((broker for broker, directories in registered.items() if own_id in directories), None)
    voter = next((each for each in metadata.voters if each.voter_id == node), None)
    if owner not in (None, node):
        sentence = f"its node.id is {node}, but the metadata assign the directory to node {owner}"
        findings.add("identity-differs", path, sentence)
    elif voter is not None and voter.directory_id not in (None, NO_DIRECTORY, own_id) and _has_metadata(log_dir):
        sentence = f"its directory.id is {own_id}, but voter {node} has {voter.directory_id}"
        findings.add("identity-differs", path, sentence)
    elif owner is None and count <= len(registered.get(node, ())):
        sentence = f"its directory.id is {own_id}, but the metadata list {', '.join(registered[node])} for node {node}"
        findings.add("directory-unknown", path, sentence)


def _others_here(metadata: "ClusterMetadata | None", node: int | None) -> dict[tuple[str, int], str]:
    """Return the topics of the partitions of a node according to the metadata, by their topic id and their number."""
    partitions = () if metadata is None else metadata.partitions
    return {(each.topic_id, each.partition): each.topic for each in partitions if node in each.replicas}


def _is_of_topic(path: Path, topic_id: str | None, others: Mapping[tuple[str, int], str], findings: Findings) -> bool:
    """Return whether a start uses a directory for its partition, by the metadata's topic id; unknown ones count.

    A directory with another id becomes a stray, unless the node has a partition of this id and number, too. Source:
    LogManager.isStrayReplica.
    """
    file = path / PARTITION_METADATA
    if not file.exists():
        findings.add("topic-id-missing", file, "the file is missing, so the directory's topic id is unknown")
        return True
    own = topic_id_at(path)
    if own is None or topic_id is None or own == topic_id:
        return True
    found = parse_partition_directory(path)
    namesake = others.get((own, found.partition)) if found is not None and found.state is None else None
    if namesake is not None:
        sentence = f"its topic id is {own}, the id of {namesake}; the metadata list {topic_id} for this topic"
        findings.add("another-topics-id", file, sentence)
        return True
    findings.add("other-topic-id", file, f"its topic id is {own}, but the metadata list {topic_id} for this topic")
    return False


def _home(metadata: "ClusterMetadata", own: Sequence[LogDir], expected: "ClusterPartition") -> LogDir | None:
    """Return the only log directory of a node that can contain a partition, or None."""
    node = own[0].identity.broker
    if node not in expected.replicas or any(each != node for each in (*expected.isr, *expected.elr)):
        return None
    by_id = {each.identity.directory_id: each for each in own}
    directories = dict(zip(expected.replicas, expected.directories, strict=False))
    assigned = directories.get(node)
    if assigned in by_id:
        return by_id[assigned]
    registered = next((each.log_dirs for each in metadata.brokers if each.broker_id == node), ())
    return own[0] if len(own) == 1 and len(registered) == 1 else None
