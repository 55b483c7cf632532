"""The consumer protocol of groups, heartbeat by heartbeat: nobody gets a partition before its owner returns it."""

from collections.abc import Iterable
from typing import Any

import pytest

from kseg.protocol.error_codes import ErrorCode
from kseg.serve.groups.classic import ClientName
from kseg.serve.groups.commits import Partition
from kseg.serve.groups.consumer import Beat, ConsumerGroup, HeartbeatRequest
from kseg.serve.values import CONSUMER_SESSION_SECONDS, GroupError

COUNTS = {"orders": 4, "payments": 2}
REBALANCE = 30.0
NOTHING_NEW: dict[str, Any] = {
    "instance_id": None,
    "rack_id": None,
    "client": ClientName("client", "127.0.0.1"),
    "rebalance_seconds": -1.0,
    "topics": None,
    "pattern": None,
    "assignor": None,
    "owned": None,
}


class Group:
    """A group, and a clock that the test moves."""

    def __init__(self) -> None:
        self.group, self.now = ConsumerGroup("billing", COUNTS), 0.0

    def join(self, member_id: str, topics: Iterable[str] = ("orders",), **changed: Any) -> Beat:
        first = {"rebalance_seconds": REBALANCE, "topics": frozenset(topics), "owned": frozenset()}
        return self.beat(member_id, 0, **{**first, **changed})

    def beat(self, member_id: str, epoch: int, **changed: Any) -> Beat:
        return self.group.heartbeat(HeartbeatRequest(member_id, epoch, **{**NOTHING_NEW, **changed}), self.now)

    def expect_error(self, member_id: str, epoch: int, **changed: Any) -> ErrorCode:
        with pytest.raises(GroupError) as raised:
            self.beat(member_id, epoch, **changed)
        return raised.value.code


@pytest.fixture
def group() -> Group:
    return Group()


def orders(*numbers: int) -> frozenset[Partition]:
    return frozenset(("orders", number) for number in numbers)


def test_a_single_member_has_all_partitions_at_once(group: Group) -> None:
    assert group.join("a") == ("a", 2, orders(0, 1, 2, 3))
    assert group.beat("a", 2).assigned is None
    assert group.group.state == "Stable"


def test_partitions_go_to_another_member_once_they_are_given_back(group: Group) -> None:
    group.join("a")
    joined = group.join("b")
    assert (joined.epoch, joined.assigned) == (3, frozenset())
    told = group.beat("a", 2)
    assert told.epoch == 2
    assert told.assigned is not None
    assert len(told.assigned) == 2
    assert group.beat("b", 3).assigned is None
    assert group.group.state == "Reconciling"
    assert group.beat("a", 2, owned=told.assigned).epoch == 3
    taken = group.beat("b", 3).assigned
    assert taken == orders(0, 1, 2, 3) - told.assigned
    assert group.group.state == "Stable"


def test_who_gives_nothing_back_in_time_is_taken_out(group: Group) -> None:
    group.join("a")
    group.join("b")
    group.beat("a", 2)
    group.now += REBALANCE
    group.beat("b", 3)
    group.group.pass_time(group.now)
    assert group.expect_error("a", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.beat("b", 3).assigned == orders(0, 1, 2, 3)


def test_a_silent_member_is_taken_out(group: Group) -> None:
    group.join("a")
    group.now += CONSUMER_SESSION_SECONDS
    group.group.pass_time(group.now)
    assert group.group.is_empty


def test_a_member_that_leaves_frees_its_partitions(group: Group) -> None:
    group.join("a")
    group.join("b")
    assert group.beat("a", -1).epoch == -1
    assert group.beat("b", 3).assigned == orders(0, 1, 2, 3)


def test_a_wrong_epoch_is_fenced(group: Group) -> None:
    group.join("a")
    assert group.expect_error("a", 5) is ErrorCode.FENCED_MEMBER_EPOCH
    assert group.expect_error("nobody", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_missed_an_answer_may_say_its_former_epoch(group: Group) -> None:
    group.join("a")
    group.beat("a", 2, topics=frozenset({"orders", "payments"}))
    assert group.beat("a", 2, owned=orders(0)).epoch == 3
    assert group.expect_error("a", 2) is ErrorCode.FENCED_MEMBER_EPOCH


def test_who_says_all_about_itself_hears_all(group: Group) -> None:
    everything = group.join("a").assigned
    subscribed = {"rebalance_seconds": REBALANCE, "topics": frozenset({"orders"})}
    assert group.beat("a", 2, owned=everything, **subscribed).assigned == everything


def test_another_subscription_changes_the_assignment(group: Group) -> None:
    group.join("a")
    assert group.beat("a", 2, topics=frozenset({"payments"}), owned=frozenset()).assigned == {
        ("payments", 0),
        ("payments", 1),
    }


def test_a_pattern_subscribes_to_what_matches(group: Group) -> None:
    assert group.join("a", (), pattern="pay.*").assigned == {("payments", 0), ("payments", 1)}
    assert group.expect_error("a", 2, pattern="(") is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert group.beat("a", 2, pattern="").epoch == 2


def test_topics_that_are_not_here_are_not_assigned(group: Group) -> None:
    assert group.join("a", ["orders", "elsewhere"]).assigned == orders(0, 1, 2, 3)


def test_a_static_member_comes_back_to_its_partitions(group: Group) -> None:
    group.join("a", instance_id="i0")
    assert (
        group.expect_error("b", 0, instance_id="i0", topics=frozenset({"orders"})) is ErrorCode.UNRELEASED_INSTANCE_ID
    )
    assert group.beat("a", -2, instance_id="i0").epoch == -2
    again = group.join("b", instance_id="i0")
    assert (again.epoch, again.assigned) == (2, orders(0, 1, 2, 3))
    assert group.expect_error("a", 2, instance_id="i0") is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_joins_again_without_its_instance_keeps_it(group: Group) -> None:
    group.join("a", instance_id="i0")
    group.join("a")
    assert (
        group.expect_error("b", 0, instance_id="i0", topics=frozenset({"orders"})) is ErrorCode.UNRELEASED_INSTANCE_ID
    )
    group.beat("a", -1)
    assert group.join("b", instance_id="i0").assigned == orders(0, 1, 2, 3)


def test_a_static_member_that_joins_again_as_another_instance_gives_up_the_first(group: Group) -> None:
    group.join("a", instance_id="i0")
    group.join("a", instance_id="i1")
    assert group.expect_error("a", 2, instance_id="i0") is ErrorCode.UNKNOWN_MEMBER_ID
    group.beat("a", -1, instance_id="i1")
    assert group.join("b", instance_id="i0").assigned == orders(0, 1, 2, 3)


def test_most_members_choose_the_assignor(group: Group) -> None:
    group.join("a", ["orders"], assignor="range")
    assert group.group.assignor == "range"
    group.join("b", ["orders"], assignor="uniform")
    group.join("c", ["orders"], assignor="uniform")
    assert group.group.assignor == "uniform"


def test_commits_are_those_of_members_of_this_epoch(group: Group) -> None:
    group.group.check_epoch("", -1)
    group.join("a")
    group.group.check_epoch("a", 2)
    for member_id, epoch, code in (
        ("a", 0, ErrorCode.STALE_MEMBER_EPOCH),
        ("b", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(GroupError) as raised:
            group.group.check_epoch(member_id, epoch)
        assert raised.value.code is code
