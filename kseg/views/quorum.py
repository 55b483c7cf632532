"""A cluster's quorum of controllers: its voters, by the metadata log or by a `quorum-state` file."""

from typing import NamedTuple

from kseg.errors import KsegError
from kseg.formats.checkpoint import QuorumState, parse_quorum_state
from kseg.formats.codes import ControlType
from kseg.formats.header_fields import CONTROL_KEY_TYPE
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.schemas import message_schema
from kseg.kernel.record import Record
from kseg.log.partition.partition_log import PartitionLog, read_small_file

QUORUM_STATE = "quorum-state"
NO_DIRECTORY = "A" * 22
"""The id of a voter's directory where nobody told it."""


class VoterEndpoint(NamedTuple):
    """Where the other voters reach one."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A controller with a vote. Only dynamic quorums (KIP-853) have directories and endpoints in the metadata."""

    voter_id: int
    directory_id: str | None
    endpoints: tuple[VoterEndpoint, ...]
    kraft_versions: tuple[int, int] = (0, 1)
    """The lowest and the highest `kraft.version` that it supports."""


class Voters:
    """The voters that control records tell, the last ones of them. Source: KRaftControlRecordStateMachine."""

    def __init__(self) -> None:
        self.kraft_version = 0
        self.voters: tuple[Voter, ...] = ()

    def add(self, record: Record) -> str | None:
        """Takes a control record; says why, if it can't be read."""
        kind = control_type(record)
        try:
            if kind == ControlType.KRAFT_VERSION:
                fields = parse_message(message_schema("KRaftVersionRecord"), 0, record.value or b"").value
                self.kraft_version = fields["kRaftVersion"]
            elif kind == ControlType.KRAFT_VOTERS:
                fields = parse_message(message_schema("VotersRecord"), 0, record.value or b"").value
                self.voters = tuple(sorted(map(_voter, fields["voters"])))
        except MessageError as error:
            return error.message
        return None

    @property
    def is_dynamic(self) -> bool:
        """Whether the quorum is a dynamic one: voters come and go by records (KIP-853)."""
        return self.kraft_version > 0


def control_type(record: Record) -> int | None:
    """The type of a control record; None if its key is too short for one."""
    key = record.key or b""
    return CONTROL_KEY_TYPE.read(key) if len(key) >= CONTROL_KEY_TYPE.end else None


def _voter(fields: Fields) -> Voter:
    endpoints = tuple(VoterEndpoint(each["name"], each["host"], each["port"]) for each in fields["endpoints"])
    feature = fields["kRaftVersionFeature"]
    supported = feature["minSupportedVersion"], feature["maxSupportedVersion"]
    return Voter(fields["voterId"], fields["voterDirectoryId"], endpoints, supported)


def read_quorum_state(partition: PartitionLog) -> QuorumState | None:
    """What the node that has a copy of the metadata knew about leader and votes; None without a file.

    Raises KsegError if the file can't be read.
    """
    content = read_small_file(partition.path / QUORUM_STATE)
    return None if content is None else parse_quorum_state(content)


def static_voters(partition: PartitionLog) -> tuple[Voter, ...]:
    """The voters of a static quorum, by the file beside the log; none if it doesn't tell."""
    try:
        state = read_quorum_state(partition)
    except KsegError:
        return ()
    found = () if state is None else state.current_voters or ()
    return tuple(Voter(number, None, ()) for number in sorted(found))
