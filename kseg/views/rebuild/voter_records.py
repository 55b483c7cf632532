"""The record that makes one controller the only voter of a dynamic quorum (KIP-853)."""

from collections.abc import Sequence

from kseg.formats.codes import CONTROL_MASK, ControlType
from kseg.formats.header_fields import CONTROL_RECORD_KEY_FIELDS
from kseg.formats.messages import Fields, build_message
from kseg.formats.schemas import message_schema
from kseg.reading.header import NEW_HEADER
from kseg.views.quorum import Voter
from kseg.writer.batch_builder import build_batch
from kseg.writer.record_encoding import encode_record


def voters_batch(voters: Sequence[Voter], offset: int, leader_epoch: int, timestamp: int) -> bytes:
    """A control batch with a set of voters, as a leader writes it.

    A record, and no checkpoint with the new voters: the surviving brokers go on with their own logs, and so learn them.
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
