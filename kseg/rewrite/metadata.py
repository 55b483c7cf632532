"""The directory of a new controller, rebuilt from a broker's copy of the cluster metadata (KIP-853)."""

import re
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import META_PROPERTIES, NOBODY, DirectoryIdentity, Refuse, identity_of, limit_to_contents
from kseg.cluster.joined_log import whole_log
from kseg.cluster.metadata import Until, cluster_metadata_of
from kseg.cluster.metadata_copy import METADATA_TOPIC_ID, TopicIds
from kseg.cluster.model import (
    NO_DIRECTORY,
    QUORUM_STATE,
    ClusterMetadata,
    ClusterPartition,
    Voter,
    VoterEndpoint,
    read_quorum_state,
    static_voters,
)
from kseg.decode.internal_records import parse_framed
from kseg.errors import DamagedError, FileError, OpenError, UsageError
from kseg.formats.checkpoints import MetaProperties, QuorumState, build_meta_properties, build_quorum_state
from kseg.formats.codes import CONTROL_MASK, TAIL_KINDS, ControlType, DamageKind
from kseg.formats.file_names import DirectoryState, parse_file_name
from kseg.formats.header_fields import CONTROL_RECORD_KEY_FIELDS
from kseg.formats.messages import Fields, MessageError, build_message
from kseg.formats.schemas import METADATA_RECORDS, message_schema
from kseg.kernel.contract import MOST
from kseg.log.lineage import noted_epochs
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.replay import Unreadable, partition_batches
from kseg.log.segments import RollReason, SegmentFiles
from kseg.log.selection import PartitionChoice
from kseg.log.writer import NEVER, PartitionSettings, PartitionWriter
from kseg.reading.batch import NEW_HEADER, Batch, scan_log
from kseg.reading.log_file import LogFile
from kseg.system.new_directory import copy_file
from kseg.writer.batches import build_batch
from kseg.writer.messages import encode_record


@dataclass(frozen=True, slots=True)
class MetadataCopy:
    """The intact part of a copy of the metadata, from a checkpoint or the start of the log on.

    end_offset: after the last record of that part. leader_epoch: of its last batch. known_epoch: the last epoch that
    the node knew, by `quorum-state`. timestamp: of its last record, milliseconds since 1970. problem: why data after
    the end can't be used; has_damage: it is more than a torn end, which is normal after a power cut. found: the
    metadata. owner: by the `meta.properties` of its log directory.
    """

    partition: PartitionLog
    end_offset: int
    leader_epoch: int
    known_epoch: int
    timestamp: int
    problem: str | None
    has_damage: bool
    found: ClusterMetadata
    owner: DirectoryIdentity

    @property
    def segments(self) -> Sequence[SegmentFiles]:
        """The segments with records that the checkpoint doesn't have."""
        start = _checkpoint_end(self.found)[0]
        return _segments_from(self.partition, start) if start < self.end_offset else ()

    def batches(self) -> Iterator[tuple[SegmentFiles, Batch]]:
        """Yield the batches of these segments up to the end, each complete, and each at the end offset of the last."""
        for segment in self.segments:
            with self.partition.open_log(segment) as log_file:
                for item in scan_log(log_file):
                    if not isinstance(item, Batch) or item.last_offset >= self.end_offset:
                        return
                    yield segment, item
                    if item.last_offset + 1 == self.end_offset:
                        return


def metadata_copies(paths: Sequence[Path], refuse: Refuse | None = None) -> list[MetadataCopy]:
    """Return the copies at the given paths, best copy first; the others fill its lost parts.

    Raises:
        OpenError: a path can't be opened, or there is no copy at any.
        UsageError: the copies belong to several clusters.
        DamagedError: none is complete: each lacks records from before its log, and a checkpoint that has them.
    """
    choice = PartitionChoice((METADATA_TOPIC,), allow_missing=True)
    below = None if refuse is None else limit_to_contents(refuse)
    found = [each for each in Cluster(paths, below).partitions(choice) if each.copies]
    if not found:
        raise OpenError(
            f"has no {METADATA_TOPIC}-0; specify the broker's metadata.log.dir, or the log directory that has it",
            paths[0],
        )
    copies = list(map(_measure, (whole_log(found[0]), *found[0].places[1:])))
    whole = [copy for copy in copies if copy.found.missing_before is None and copy.end_offset]
    if not whole:
        offset = copies[0].found.missing_before
        reason = "has no complete record" if offset is None else f"lacks the records before offset {offset}"
        raise DamagedError(
            f"{reason}, and no checkpoint has them; specify another broker's copy", copies[0].partition.path
        )
    return whole


def _measure(partition: PartitionLog) -> MetadataCopy:
    found = cluster_metadata_of(partition, Until())
    end = _End(*_checkpoint_end(found))
    for segment in _segments_from(partition, end.offset):
        with partition.open_log(segment) as log_file:
            if not end.takes(log_file, is_last=segment is partition.active_segment):
                break
    if end.problem is not None:
        found = cluster_metadata_of(partition, Until(offset=end.offset - 1))
    timestamp = found.timestamp if end.timestamp is None else end.timestamp
    known_epoch, owner = _known_epoch(partition), identity_of(partition.log_dir)
    return MetadataCopy(
        partition, end.offset, end.leader_epoch, known_epoch, timestamp, end.problem, end.has_damage, found, owner
    )


def _checkpoint_end(found: ClusterMetadata) -> tuple[int, int]:
    """Return the end offset and the leader epoch of the checkpoint that a copy begins with; zeros without one."""
    name = None if found.checkpoint is None else parse_file_name(found.checkpoint)
    return (0, 0) if name is None else (name.base_offset or 0, name.epoch or 0)


def _segments_from(partition: PartitionLog, offset: int) -> Sequence[SegmentFiles]:
    """Return the segments that contain this offset or later offsets."""
    return partition.segments[partition.floor_slot(offset) or 0 :]


class _End:
    """The end of the intact part of a copy, which advances with each batch.

    The log has no gaps, since nothing compacts it. Its batches count from the checkpoint's end on, if the log reaches
    that. timestamp: of the last batch, None until one counts.
    """

    def __init__(self, offset: int, leader_epoch: int) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.timestamp: int | None = None
        self.problem: str | None = None
        self.has_damage = False
        self._next_offset: int | None = None

    def takes(self, log_file: LogFile, *, is_last: bool) -> bool:
        """Advance through a segment's log; return False if the intact part ends in it."""
        if self._next_offset is None:
            self._next_offset = log_file.base_offset
        for item in scan_log(log_file):
            if isinstance(item, Batch):
                self._take(item)
            elif item.kind is not DamageKind.ZERO_TAIL:
                self.problem = str(item.kind)
                self.has_damage = not (is_last and item.kind in TAIL_KINDS)
            if self.problem is not None:
                self.problem = f"{log_file.path.name} at position {item.position}: {self.problem}"
                return False
        return True

    def _take(self, batch: Batch) -> None:
        counts = batch.last_offset >= self.offset  # the checkpoint has the records of others
        if not batch.is_valid or (counts and batch.problem() is not None):
            self.problem = "a batch that can't be read"
        elif batch.base_offset != self._next_offset:
            self.problem = f"offset is {batch.base_offset}, expected {self._next_offset}"
        self.has_damage = self.problem is not None
        if self.has_damage:
            return
        self._next_offset = batch.last_offset + 1
        if counts:
            self.offset = batch.last_offset + 1
            self.leader_epoch = max(self.leader_epoch, batch.partition_leader_epoch)
            self.timestamp = batch.max_timestamp


def _known_epoch(partition: PartitionLog) -> int:
    """Return the last leader epoch that a node knew, or -1 if its file doesn't have it."""
    try:
        state = read_quorum_state(partition)
    except FileError:
        return -1
    return -1 if state is None else state.leader_epoch


class NewerPartition(NamedTuple):
    """A partition directory that is newer than the copy: `leader_epoch`, `start_offset` of its last leader.

    known_epoch: the leader epoch that the copy has; None if it doesn't have the partition, or not on this broker.
    """

    path: Path
    topic_id: str | None
    leader_epoch: int | None
    start_offset: int | None
    known_epoch: int | None

    @property
    def reason(self) -> str:
        """The missing knowledge of the copy, in words."""
        if self.known_epoch is None:
            return "isn't in the copy, so the broker will set it aside or delete it"
        return (
            f"has had leader epoch {self.leader_epoch} since offset {self.start_offset}, later than {self.known_epoch}"
        )


class DeletedPartition(NamedTuple):
    """A partition directory that the new controller doesn't need: its topic was deleted, or a broker deletes it.

    deleted_at: the metadata offset of the topic's deletion; None if only the directory's name shows it.
    """

    path: Path
    topic_id: str | None
    deleted_at: int | None

    @property
    def reason(self) -> str:
        """The reason for omitting it, in words."""
        if self.deleted_at is None:
            return "the broker was deleting it, and will finish that"
        return f"its topic was deleted at offset {self.deleted_at}, so the broker will set it aside or delete it"


class ComparedPartitions(NamedTuple):
    """Partitions' directories at the given paths that differ from a copy.

    newer: directories whose topic, replica or leader epoch it doesn't have. deleted: omitted directories.
    """

    newer: list[NewerPartition]
    deleted: list[DeletedPartition]


def compare_partitions(paths: Iterable[Path], copies: Sequence[MetadataCopy], refuse: Refuse) -> ComparedPartitions:
    """Compare the partitions' directories at the given paths with the first of the given copies.

    Raises OpenError if the log of a copy can't be opened.
    """
    known = {(each.topic_id, each.partition): each for each in copies[0].found.partitions}
    brokers: dict[Path, int | None] = {}
    compared = ComparedPartitions([], [])
    deletions: Mapping[str, int] | None = None
    cluster = Cluster(paths, refuse)
    topic_ids = TopicIds(cluster)
    for partition in cluster.directories():
        if partition.state is DirectoryState.DELETE:
            compared.deleted.append(DeletedPartition(partition.path, topic_ids.of(partition), None))
        is_other = partition.topic == METADATA_TOPIC or partition.state is not None
        topic_id = None if is_other else topic_ids.of(partition)
        if topic_id is None:
            continue  # without an epoch, nothing is known about it
        if partition.log_dir not in brokers:
            brokers[partition.log_dir] = identity_of(partition.log_dir).broker
        own = known.get((topic_id, partition.partition or 0))
        newer = _compare(partition, topic_id, own, brokers[partition.log_dir])
        if newer is None:
            continue
        if own is None and deletions is None:
            deletions = _deletions(copies)
        deleted_at = None if own is not None or deletions is None else deletions.get(topic_id)
        if deleted_at is None:
            compared.newer.append(newer)
        else:
            compared.deleted.append(DeletedPartition(partition.path, topic_id, deleted_at))
    return compared


_REMOVALS = {each: schema for each, schema in METADATA_RECORDS.items() if schema.name == "RemoveTopicRecord"}


def _deletions(copies: Sequence[MetadataCopy]) -> dict[str, int]:
    """Return deleted topics, by their ids, and the offsets of the records that delete them.

    From each copy, only the part that the first copy covers counts. It no longer has these topics, or still has the
    records.
    """
    there = {topic.topic_id for topic in copies[0].found.topics}
    found: dict[str, int] = {}
    for copy in copies:
        for item in partition_batches(copy.partition):
            if isinstance(item, Unreadable) or item.is_control or item.last_offset >= copies[0].end_offset:
                continue
            for record in item.records(on_damage="skip"):
                topic_id = _topic_deleted_by(record.value)
                if topic_id is not None and topic_id not in there:
                    found.setdefault(topic_id, record.offset)
    return found


def _topic_deleted_by(value: bytes | None) -> str | None:
    """Return the id of the topic that a record of the metadata deletes, or None for another record."""
    try:
        topic_id: str = parse_framed(_REMOVALS, value).fields["topicId"]
    except MessageError:
        return None
    return topic_id


def _compare(
    partition: PartitionLog, topic_id: str, known: ClusterPartition | None, broker_id: int | None
) -> NewerPartition | None:
    epochs = noted_epochs(partition, MOST).starts
    epoch, start_offset = epochs[-1] if epochs else (None, None)
    if known is None or (broker_id is not None and broker_id not in known.replicas):
        return NewerPartition(partition.path, topic_id, epoch, start_offset, None)
    if epoch is not None and epoch > known.leader_epoch:
        return NewerPartition(partition.path, topic_id, epoch, start_offset, known.leader_epoch)
    return None


def voters_batch(voters: Sequence[Voter], offset: int, leader_epoch: int, timestamp: int) -> bytes:
    """Return a control batch with a set of voters, as a leader writes it.

    It is a record, not a checkpoint with the new voters: the surviving brokers continue with their own logs, and so
    read it.
    """
    value = build_message(message_schema("VotersRecord"), 0, {"version": 0, "voters": [*map(_fields, voters)]})
    key = CONTROL_RECORD_KEY_FIELDS.struct.pack(0, ControlType.KRAFT_VOTERS)
    header = NEW_HEADER._replace(
        base_offset=offset,
        partition_leader_epoch=leader_epoch,
        attributes=CONTROL_MASK,
        last_offset=offset,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        records_count=1,
    )
    return build_batch(header, encode_record(0, 0, key, value))


def _fields(voter: Voter) -> Fields:
    lowest, highest = voter.kraft_versions
    return {
        "voterId": voter.voter_id,
        "voterDirectoryId": voter.directory_id,
        "endpoints": [endpoint._asdict() for endpoint in voter.endpoints],
        "kRaftVersionFeature": {"minSupportedVersion": lowest, "maxSupportedVersion": highest},
    }


EPOCHS_AHEAD = 1000
"""Distance of the new quorum's first leader epoch from all known epochs.

Nodes refuse a leader of an epoch before a known one, and a dying quorum may have held elections that no copy shows.
"""
_LARGEST_EPOCH = 2**31 - 1
_ENDPOINT = re.compile(r"([A-Za-z0-9_.-]+)://(.+):([0-9]{1,5})")


class NewVoter(NamedTuple):
    """The new controller: its node id, and its address, which only dynamic quorums need."""

    node_id: int
    endpoint: VoterEndpoint | None


@dataclass(frozen=True, slots=True)
class RebuiltMetadata:
    """The rebuilt metadata: its source copy and its controller.

    directory_id: of the new log directory; None for releases before 3.7, which have none. end_offset: of the new log.
    leader_epoch: the epoch before the quorum's first. old_voters: the voters that are dropped.
    """

    copy: MetadataCopy
    node_id: int
    cluster_id: str
    directory_id: str | None
    end_offset: int
    leader_epoch: int
    is_dynamic: bool
    old_voters: tuple[Voter, ...]


def parse_endpoint(text: str) -> VoterEndpoint:
    """Parse `CONTROLLER://host:9093`: the listener's name, host and port. Raises UsageError for anything else."""
    match = _ENDPOINT.fullmatch(text)
    if match is None or int(match[3]) >= 1 << 16 or not text.isascii():
        raise UsageError(
            f"{text!r} isn't an endpoint; specify LISTENER://HOST:PORT, such as CONTROLLER://10.0.0.1:9093"
        )
    return VoterEndpoint(match[1], match[2].removeprefix("[").removesuffix("]"), int(match[3]))


def plan_rebuilt(copies: Sequence[MetadataCopy], new: NewVoter) -> RebuiltMetadata:
    """Return the metadata to write for the first of the given copies.

    Raises UsageError if the cluster is unknown, or the endpoint is needed and missing, or given and not needed.
    """
    copy = copies[0]
    cluster_id = next((each.owner.cluster_id for each in copies if each.owner.cluster_id is not None), None)
    if cluster_id is None:
        raise UsageError(f"no {META_PROPERTIES} next to it has the cluster's id", copy.partition.path)
    is_dynamic = copy.found.kraft_version > 0
    if is_dynamic != (new.endpoint is not None):
        raise UsageError(_about_endpoint(is_dynamic=is_dynamic))
    leader_epoch = max(max(each.leader_epoch, each.known_epoch) for each in copies) + EPOCHS_AHEAD
    if leader_epoch >= _LARGEST_EPOCH:
        raise UsageError(
            f"leader epoch {leader_epoch - EPOCHS_AHEAD} leaves no room for later epochs", copy.partition.path
        )
    end_offset = copy.end_offset + int(is_dynamic)
    return RebuiltMetadata(
        copy,
        new.node_id,
        cluster_id,
        _directory_id(copies, new, is_dynamic=is_dynamic),
        end_offset,
        leader_epoch,
        is_dynamic,
        copy.found.voters or static_voters(copy.partition),
    )


def _directory_id(copies: Sequence[MetadataCopy], new: NewVoter, *, is_dynamic: bool) -> str | None:
    """Return the id of the new log directory.

    If a node's own copy will be replaced, the id stays the same. None before 3.7.
    """
    own = next((copy.owner for copy in copies if copy.owner.broker == new.node_id), NOBODY)
    if own.directory_id is not None:
        return own.directory_id
    return new_directory_id() if is_dynamic or copies[0].owner.directory_id is not None else None


def _about_endpoint(*, is_dynamic: bool) -> str:
    if is_dynamic:
        return "the quorum is dynamic; specify the new controller's address by --endpoint CONTROLLER://HOST:PORT"
    return "the quorum is static, and controller.quorum.voters has its controllers' addresses; leave --endpoint out"


def new_directory_id() -> str:
    """Return a random id like `kafka-storage.sh format`. Source: Uuid.randomUuid."""
    while True:
        text = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def write_rebuilt(planned: RebuiltMetadata, new: NewVoter, directory: Path) -> None:
    """Fill a new, empty directory. Raises OSError if the system can't write."""
    properties = [("version", "1"), ("cluster.id", planned.cluster_id), ("node.id", str(planned.node_id))]
    if planned.directory_id is not None:
        properties.append(("directory.id", planned.directory_id))
    (directory / META_PROPERTIES).write_bytes(build_meta_properties(MetaProperties((), tuple(properties))))
    partition = directory / f"{METADATA_TOPIC}-0"
    partition.mkdir()
    if planned.copy.found.checkpoint is not None:
        copy_file(
            planned.copy.partition.path / planned.copy.found.checkpoint, partition / planned.copy.found.checkpoint
        )
    _write_log(planned, new, partition)
    (partition / QUORUM_STATE).write_bytes(build_quorum_state(_quorum_state(planned)))


def _write_log(planned: RebuiltMetadata, new: NewVoter, directory: Path) -> None:
    """Write the log of the copy, segment by segment; at its end the new set of voters, if the quorum is dynamic."""
    copy = planned.copy
    base_offset = copy.segments[0].base_offset if copy.segments else copy.end_offset
    with PartitionWriter(directory, base_offset, PartitionSettings(NEVER, topic_id=METADATA_TOPIC_ID)) as writer:
        current = None
        for segment, batch in copy.batches():
            if current not in (None, segment):
                writer.roll(RollReason.UNKNOWN, segment.base_offset)
            current = segment
            writer.append(bytes(batch.raw))
        if new.endpoint is not None:
            voter = Voter(new.node_id, planned.directory_id, (new.endpoint,), _kraft_versions(planned))
            writer.append(voters_batch((voter,), copy.end_offset, planned.leader_epoch, copy.timestamp))


def _kraft_versions(planned: RebuiltMetadata) -> tuple[int, int]:
    """Return the versions that the old voters support: the new voter is of the same release."""
    return planned.old_voters[0].kraft_versions if planned.old_voters else (0, planned.copy.found.kraft_version)


def _quorum_state(planned: RebuiltMetadata) -> QuorumState:
    """Return a state without leader and vote.

    Old releases compare the voters with those of `controller.quorum.voters`.
    """
    if planned.is_dynamic:
        return QuorumState(1, -1, planned.leader_epoch, -1, voted_directory_id=NO_DIRECTORY)
    own = (planned.node_id,)
    return QuorumState(0, -1, planned.leader_epoch, -1, cluster_id="", applied_offset=0, current_voters=own)


class Rebuilding(NamedTuple):
    """Findings for a new controller.

    planned: the metadata to write. copies: all copies. newer: the partitions that are newer than the used copy.
    deleted: the directories of deleted partitions, which don't discredit the copy.
    """

    planned: RebuiltMetadata
    copies: list[MetadataCopy]
    newer: list[NewerPartition]
    deleted: list[DeletedPartition]

    @property
    def is_behind(self) -> bool:
        """True if the disks show that something is lost."""
        return bool(self.newer) or self.planned.copy.has_damage


def find_rebuilding(paths: Sequence[Path], new: NewVoter, refuse: Refuse) -> Rebuilding:
    """Examine the copies at the given paths, and the partitions there. Raises as its parts do."""
    copies = metadata_copies(paths, refuse)
    planned = plan_rebuilt(copies, new)
    return Rebuilding(planned, copies, *compare_partitions(paths, copies, refuse))
