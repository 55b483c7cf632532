"""Writes the directory of a controller that brings a lost quorum back, as its only voter."""

import re
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.formats.checkpoint import MetaProperties, QuorumState, build_meta_properties, build_quorum_state
from kseg.log.partition.log_dir import META_PROPERTIES
from kseg.log.partition.partition_log import METADATA_TOPIC
from kseg.log.partition.partition_writer import NEVER, PartitionSettings, PartitionWriter
from kseg.log.partition.roll import Rolled
from kseg.system.new_directory import copy_file
from kseg.views.quorum import NO_DIRECTORY, QUORUM_STATE, Voter, VoterEndpoint, static_voters
from kseg.views.rebuild.metadata_copies import MetadataCopy
from kseg.views.rebuild.voter_records import voters_batch
from kseg.views.topic_ids import METADATA_TOPIC_ID

EPOCHS_AHEAD = 1000
"""So far beyond all known leader epochs the new quorum begins: nodes refuse a leader of an epoch before one that they
know, and a quorum that is dying may have held elections that no copy tells of."""
_LARGEST_EPOCH = 2**31 - 1
_ENDPOINT = re.compile(r"([A-Za-z0-9_.-]+)://(.+):([0-9]{1,5})")


class NewVoter(NamedTuple):
    """The controller that is to lead: its node id, and where it is reached, which only dynamic quorums have to know."""

    node_id: int
    endpoint: VoterEndpoint | None


@dataclass(frozen=True, slots=True)
class RebuiltMetadata:
    """What was written, or would be: of which copy, for which controller.

    directory_id: of the new log directory; None for releases before 3.7, which have none. end_offset: of the new log.
    leader_epoch: the one that the quorum begins after. old_voters: those that are given up.
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
    """`CONTROLLER://host:9093`: the listener's name, host and port. Raises UsageError for anything else."""
    match = _ENDPOINT.fullmatch(text)
    if match is None or int(match[3]) >= 1 << 16 or not text.isascii():
        raise UsageError(f"{text!r} isn't LISTENER://HOST:PORT, such as CONTROLLER://10.0.0.1:9093")
    return VoterEndpoint(match[1], match[2].removeprefix("[").removesuffix("]"), int(match[3]))


def plan_rebuilt(copies: Sequence[MetadataCopy], new: NewVoter) -> RebuiltMetadata:
    """What is to be written for the first of some copies.

    Raises UsageError if the cluster isn't known, or the endpoint is needed and missing, or given and not needed.
    """
    copy = copies[0]
    cluster_id = next((each.properties["cluster.id"] for each in copies if "cluster.id" in each.properties), None)
    if cluster_id is None:
        raise UsageError(f"there is no {META_PROPERTIES} beside it that names the cluster", copy.partition.path)
    is_dynamic = copy.found.kraft_version > 0
    if is_dynamic != (new.endpoint is not None):
        raise UsageError(_about_endpoint(is_dynamic=is_dynamic))
    leader_epoch = max(max(each.leader_epoch, each.known_epoch) for each in copies) + EPOCHS_AHEAD
    if leader_epoch >= _LARGEST_EPOCH:
        raise UsageError(
            f"leader epoch {leader_epoch - EPOCHS_AHEAD} leaves no room for later ones", copy.partition.path
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
    """The id of the new log directory: the same, where a node's own copy will be replaced; None before 3.7."""
    own = [copy.properties for copy in copies if copy.node_id == str(new.node_id)]
    if own and "directory.id" in own[0]:
        return own[0]["directory.id"]
    return _new_directory_id() if is_dynamic or "directory.id" in copies[0].properties else None


def _about_endpoint(*, is_dynamic: bool) -> str:
    if is_dynamic:
        return "the quorum is dynamic: --endpoint CONTROLLER://HOST:PORT must say where the new controller listens"
    return "the quorum is static, its controllers' addresses stand in controller.quorum.voters: leave --endpoint out"


def _new_directory_id() -> str:
    """A random id, as `kafka-storage.sh format` makes one. Source: Uuid.randomUuid."""
    while True:
        text = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def write_rebuilt(planned: RebuiltMetadata, new: NewVoter, directory: Path) -> None:
    """Fills a new, empty directory. Raises OSError if the system can't write."""
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
    """The log of the copy, segment by segment; at its end the new set of voters, if the quorum is dynamic."""
    copy = planned.copy
    base_offset = copy.segments[0].base_offset if copy.segments else copy.end_offset
    with PartitionWriter(directory, base_offset, PartitionSettings(NEVER, topic_id=METADATA_TOPIC_ID)) as writer:
        current = None
        for segment, batch in copy.batches():
            if current not in (None, segment):
                writer.roll(Rolled.UNKNOWN, segment.base_offset)
            current = segment
            writer.append(bytes(batch.raw))
        if new.endpoint is not None:
            voter = Voter(new.node_id, planned.directory_id, (new.endpoint,), _kraft_versions(planned))
            writer.append(voters_batch((voter,), copy.end_offset, planned.leader_epoch, copy.timestamp))


def _kraft_versions(planned: RebuiltMetadata) -> tuple[int, int]:
    """What the old voters support: the new one is of the same release."""
    return planned.old_voters[0].kraft_versions if planned.old_voters else (0, planned.copy.found.kraft_version)


def _quorum_state(planned: RebuiltMetadata) -> QuorumState:
    """Nobody leads, nobody was voted for. Old releases compare the voters with those of `controller.quorum.voters`."""
    if planned.is_dynamic:
        return QuorumState(1, -1, planned.leader_epoch, -1, voted_directory_id=NO_DIRECTORY)
    own = (planned.node_id,)
    return QuorumState(0, -1, planned.leader_epoch, -1, cluster_id="", applied_offset=0, current_voters=own)
