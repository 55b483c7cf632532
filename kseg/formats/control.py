"""Control records: their keys, and the values of each type."""

from typing import Any

from construct import (
    Bytes,
    Default,
    ExprAdapter,
    GreedyBytes,
    IfThenElse,
    Int16sb,
    Int16ub,
    Int32sb,
    Int64sb,
    PascalString,
    Prefixed,
    PrefixedArray,
    Struct,
    obj_,
    this,
)

from kseg.formats.codes import ControlType
from kseg.formats.grammar import UVARINT, grammars
from kseg.formats.header_fields import CONTROL_RECORD_KEY_FIELDS, END_TXN_MARKER_FIELDS

_LENGTH_PLUS_ONE = ExprAdapter(UVARINT, obj_ - 1, obj_ + 1)
_COMPACT_STRING = PascalString(_LENGTH_PLUS_ONE, "utf8")


def _compact_array(element: Any) -> Any:
    return PrefixedArray(_LENGTH_PLUS_ONE, element)


TAGGED_FIELDS = PrefixedArray(
    UVARINT,
    Struct(
        "tag" / UVARINT * "number of the field; in increasing order",
        "value" / Prefixed(UVARINT, GreedyBytes) * "the field's bytes, unchanged",
    ),
)
"""The optional fields at the end of a flexible structure (KIP-482)."""

_TAGS = "tagged_fields" / TAGGED_FIELDS * "optional fields by their tag"
_TRAILING = "trailing" / Default(GreedyBytes, b"") * "bytes that a newer version appends; ignored"

CONTROL_RECORD_KEY = Struct(*grammars(CONTROL_RECORD_KEY_FIELDS), _TRAILING)

END_TXN_MARKER = Struct(*grammars(END_TXN_MARKER_FIELDS), _TRAILING)
"""Value of ABORT and COMMIT. Source: EndTransactionMarker."""

_LEADER_CHANGE_VOTER_V0 = Struct(
    "voter_id" / Int32sb * "node id of the voter",
    _TAGS,
)
_LEADER_CHANGE_VOTER_V1 = Struct(
    "voter_id" / Int32sb * "node id of the voter",
    "voter_directory_id" / Bytes(16) * "uuid of the voter's log directory",
    _TAGS,
)
_LEADER_CHANGE_VOTERS = IfThenElse(
    this.version < 1, _compact_array(_LEADER_CHANGE_VOTER_V0), _compact_array(_LEADER_CHANGE_VOTER_V1)
)

LEADER_CHANGE = Struct(
    "version" / Int16sb * "version of the message: 0, 1",
    "leader_id" / Int32sb * "node id of the new leader",
    "voters" / _LEADER_CHANGE_VOTERS * "the quorum's voters at the election",
    "granting_voters" / _LEADER_CHANGE_VOTERS * "voters that voted for the leader",
    _TAGS,
    _TRAILING,
)

SNAPSHOT_HEADER = Struct(
    "version" / Int16sb * "version of the message: 0",
    "last_contained_log_timestamp" / Int64sb * "append time of the last record in the snapshot, in milliseconds",
    _TAGS,
    _TRAILING,
)

SNAPSHOT_FOOTER = Struct(
    "version" / Int16sb * "version of the message: 0",
    _TAGS,
    _TRAILING,
)

KRAFT_VERSION = Struct(
    "version" / Int16sb * "version of the message: 0",
    "kraft_version" / Int16sb * "level of the feature kraft.version",
    _TAGS,
    _TRAILING,
)

_ENDPOINT = Struct(
    "name" / _COMPACT_STRING * "name of the listener",
    "host" / _COMPACT_STRING * "host name or address",
    "port" / Int16ub * "port",
    _TAGS,
)
_KRAFT_VERSION_FEATURE = Struct(
    "min_supported_version" / Int16sb * "lowest level of kraft.version that the voter supports",
    "max_supported_version" / Int16sb * "highest level of kraft.version that the voter supports",
    _TAGS,
)
_VOTER = Struct(
    "voter_id" / Int32sb * "node id of the voter",
    "voter_directory_id" / Bytes(16) * "uuid of the voter's log directory",
    "endpoints" / _compact_array(_ENDPOINT) * "endpoints of the voter",
    "kraft_version_feature" / _KRAFT_VERSION_FEATURE * "range of kraft.version that the voter supports",
    _TAGS,
)

VOTERS = Struct(
    "version" / Int16sb * "version of the message: 0",
    "voters" / _compact_array(_VOTER) * "the quorum's voters",
    _TAGS,
    _TRAILING,
)
"""Value of KRAFT_VOTERS (KIP-853)."""


CONTROL_VALUES = {
    ControlType.ABORT: END_TXN_MARKER,
    ControlType.COMMIT: END_TXN_MARKER,
    ControlType.LEADER_CHANGE: LEADER_CHANGE,
    ControlType.SNAPSHOT_HEADER: SNAPSHOT_HEADER,
    ControlType.SNAPSHOT_FOOTER: SNAPSHOT_FOOTER,
    ControlType.KRAFT_VERSION: KRAFT_VERSION,
    ControlType.KRAFT_VOTERS: VOTERS,
}
"""Type of a control record to its value's grammar. 2.7 and 2.8 wrote LEADER_CHANGE with the number 3."""
