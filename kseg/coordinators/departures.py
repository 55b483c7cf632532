"""Members that left their groups, by the older records of a partition of `__consumer_offsets`."""

from collections import deque
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import NamedTuple

from kseg.formats.codes import NO_TIMESTAMP, VERSION
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.schemas import OFFSETS_KEYS, OFFSETS_VALUES, version_range
from kseg.kernel.record import Record

_KEPT = 8
"""The number of kept records of a classic group: an empty group is often written again and again."""


class Departure(NamedTuple):
    """The end of a group's last membership: its time by the coordinator's clock, and the member.

    left_ms: None if unknown. client_id, client_host: None if no record has the member any more.
    """

    left_ms: int | None
    client_id: str | None = None
    client_host: str | None = None


class Departures:
    """The departures in the records of a partition, taken in order: for each group without members, the last one."""

    def __init__(self) -> None:
        """Start without records."""
        self._classic: dict[bytes, deque[Record]] = {}
        self._members: dict[bytes, Record] = {}
        self._left: dict[str, Departure] = {}

    def take(self, record: Record) -> None:
        """Take the next record."""
        key = record.key
        if key is None or len(key) < VERSION.size:
            return
        number = VERSION.read(key)
        if number == _classic_type():
            self._classic.setdefault(key, deque(maxlen=_KEPT)).append(record)
        elif number in _member_types():
            if record.value is not None:
                self._members[key] = record
            elif (group := _text_of(record, "groupId")) is not None:
                self._left[group] = _departure(_value_of(self._members.pop(key, None)), _time_of(record))

    @cached_property
    def last(self) -> Mapping[str, Departure]:
        """The last departure by group, after all records; meaningless for groups with members."""
        classic = ((_text_of(records[-1], "group"), _of_classic(records)) for records in self._classic.values())
        return {**{group: departure for group, departure in classic if group is not None}, **self._left}


def _of_classic(records: Iterable[Record]) -> Departure:
    """Return the departure after the last record with members; without any, the time of the first remaining record."""
    members: list[Fields] = []
    left_ms = None
    for record in records:
        value = _value_of(record)
        if value is None:
            members, left_ms = [], None
        elif value["members"]:
            members, left_ms = value["members"], None
        elif left_ms is None:
            changed = value.get("currentStateTimestamp", NO_TIMESTAMP)
            left_ms = changed if changed >= 0 else _time_of(record)
    return _departure(members[0] if members else None, left_ms)


def _departure(member: Fields | None, left_ms: int | None) -> Departure:
    return Departure(left_ms) if member is None else Departure(left_ms, member["clientId"], member["clientHost"])


def _time_of(record: Record) -> int | None:
    """Return a record timestamp, which is its coordinator's."""
    return None if record.timestamp == NO_TIMESTAMP else record.timestamp


def _text_of(record: Record, name: str) -> str | None:
    """Return a text of the record key, or None if it can't be read."""
    key = record.key or b""
    try:
        text: str = parse_message(OFFSETS_KEYS[VERSION.read(key)], 0, key, VERSION.size).value[name]
    except MessageError:
        return None
    return text


def _value_of(record: Record | None) -> Fields | None:
    """Return the record value, or None for a tombstone, and if it can't be read."""
    if record is None or record.key is None or record.value is None or len(record.value) < VERSION.size:
        return None
    message = OFFSETS_VALUES[VERSION.read(record.key)]
    version = VERSION.read(record.value)
    if version not in version_range(message.versions):
        return None
    try:
        return parse_message(message, version, record.value, VERSION.size).value
    except MessageError:
        return None


@cache
def _classic_type() -> int:
    return next(number for number, message in OFFSETS_KEYS.items() if message.name == "GroupMetadataKey")


@cache
def _member_types() -> frozenset[int]:
    names = {f"{kind}GroupMemberMetadataKey" for kind in ("Consumer", "Share", "Streams")}
    return frozenset(number for number, message in OFFSETS_KEYS.items() if message.name in names)
