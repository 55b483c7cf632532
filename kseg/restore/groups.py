"""Groups of the target: their offsets are committed when all records are there, unless somebody uses them."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from kseg.client.brokers import BrokerError, Brokers, Place, error_codes
from kseg.client.connection import ALTER_SHARE_GROUP_OFFSETS, LIST_GROUPS, OFFSET_COMMIT, OFFSET_FETCH
from kseg.errors import ClusterError
from kseg.formats.messages import Fields
from kseg.protocol.error_codes import ErrorCode
from kseg.restore.plan import SHARE, GroupOffset, PlannedGroup

UNUSED = ("", "Empty", "Dead")
"""States of groups without members; older brokers tell no state."""
UNKNOWN_EPOCH = -1
"""The leader epoch of commits: with the source's, Java's consumers would find no records."""


class GroupState(Enum):
    """The outcome of a group."""

    COMMITTED = "committed"
    ACTIVE = "active"
    HAS_OFFSETS = "has offsets"
    REFUSED = "refused"


class GroupOutcome(NamedTuple):
    """A group, and its outcome. detail: the reason if the target refused it."""

    group: PlannedGroup
    state: GroupState
    detail: str | None = None


def group_states(brokers: Brokers) -> dict[str, str]:
    """Return the states of all groups of the target. Raises ClusterError."""
    states: dict[str, str] = {}
    for node in brokers.ids:
        answer = brokers.ask(LIST_GROUPS, {"statesFilter": [], "typesFilter": []}, node)
        if answer["errorCode"]:
            raise BrokerError("the list of groups", answer["errorCode"])
        states |= {each["groupId"]: each.get("groupState", "") for each in answer["groups"]}
    return states


def commit_group(brokers: Brokers, group: PlannedGroup, state: str) -> GroupOutcome:
    """Commit a group's offsets, unless it has members or other offsets. Raises ClusterError.

    state: of the group in the target, empty if it isn't there.
    """
    if state not in UNUSED:
        return GroupOutcome(group, GroupState.ACTIVE)
    try:
        if group.type == SHARE:
            _set_start_offsets(brokers, group)
        else:
            wanted = {(each.topic, each.partition): each.target_offset for each in group.offsets}
            present = _offsets_in_target(brokers, group.name)
            if any(present.get(place, offset) != offset for place, offset in wanted.items()):
                return GroupOutcome(group, GroupState.HAS_OFFSETS)
            _commit(brokers, group)
    except BrokerError as error:
        is_active = error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NON_EMPTY_GROUP)
        state_now = GroupState.ACTIVE if is_active else GroupState.REFUSED
        return GroupOutcome(group, state_now, None if is_active else error.message)
    except ClusterError as error:
        return GroupOutcome(group, GroupState.REFUSED, error.message)
    return GroupOutcome(group, GroupState.COMMITTED)


def _offsets_in_target(brokers: Brokers, group: str) -> Mapping[Place, int]:
    answer = brokers.ask_coordinator(group, OFFSET_FETCH, {"groupId": group, "topics": None})
    if answer.get("errorCode") not in (None, ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        raise BrokerError(f"group {group}", answer["errorCode"])
    return {
        (topic["name"], each["partitionIndex"]): each["committedOffset"]
        for topic in answer["topics"]
        for each in topic["partitions"]
        if each["committedOffset"] >= 0
    }


def _commit(brokers: Brokers, group: PlannedGroup) -> None:
    body = {
        "groupId": group.name,
        "generationIdOrMemberEpoch": -1,
        "memberId": "",
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {
                        "partitionIndex": each.partition,
                        "committedOffset": each.target_offset,
                        "committedLeaderEpoch": UNKNOWN_EPOCH,
                        "committedMetadata": each.metadata,
                    }
                    for each in own
                ],
            }
            for topic, own in _by_topic(group).items()
        ],
    }
    _check(group, brokers.ask_coordinator(group.name, OFFSET_COMMIT, body))


def _set_start_offsets(brokers: Brokers, group: PlannedGroup) -> None:
    topics = [
        {
            "topicName": topic,
            "partitions": [{"partitionIndex": each.partition, "startOffset": each.target_offset} for each in own],
        }
        for topic, own in _by_topic(group).items()
    ]
    _check(
        group, brokers.ask_coordinator(group.name, ALTER_SHARE_GROUP_OFFSETS, {"groupId": group.name, "topics": topics})
    )


def _by_topic(group: PlannedGroup) -> dict[str, list[GroupOffset]]:
    found: dict[str, list[GroupOffset]] = {}
    for each in group.offsets:
        found.setdefault(each.topic, []).append(each)
    return found


def _check(group: PlannedGroup, answer: Fields) -> None:
    for code in error_codes(answer):
        if code:
            raise BrokerError(f"group {group.name}", code)
