"""The classic protocol of groups, step by step: waits, refusals, and expired members."""

from concurrent.futures import Future
from typing import Any

import pytest

from kseg.protocol.error_codes import ErrorCode
from kseg.serve.groups.classic import ClassicGroup, ClientName, JoinOutcome, JoinRequest, MemberName, Protocol, Synced
from kseg.serve.values import FIRST_JOIN_SECONDS, MOST_MEMBERS, GroupError

SESSION, REBALANCE = 10.0, 60.0
NO_PROTOCOL = (None, None)


class Group:
    """A group, and a clock that the test moves."""

    def __init__(self) -> None:
        self.group, self.now = ClassicGroup("billing"), 0.0

    def join(self, member_id: str = "", instance: str | None = None, **changed: Any) -> Future[JoinOutcome]:
        wanted = JoinRequest(
            member_id,
            instance,
            ClientName("client", "127.0.0.1"),
            SESSION,
            REBALANCE,
            "consumer",
            (Protocol("range", b"topics of the member"),),
        )
        return self.group.join(wanted._replace(**changed), self.now)

    def sync(
        self, joined: JoinOutcome, assignments: dict[str, bytes] | None = None, instance: str | None = None
    ) -> Any:
        who = MemberName(joined.member_id, instance, joined.generation)
        return self.group.sync(who, NO_PROTOCOL, assignments or {}, self.now)

    def beat(self, joined: JoinOutcome, instance: str | None = None) -> None:
        self.group.heartbeat(MemberName(joined.member_id, instance, joined.generation), self.now)

    def after(self, seconds: float) -> None:
        self.now += seconds
        self.group.pass_time(self.now)

    def stable(self, count: int = 2, instances: bool = False) -> list[JoinOutcome]:
        """Return a group of `count` members that have joined and synced; the first one leads."""
        waiting = [self.join(instance=f"i{number}" if instances else None) for number in range(count)]
        self.after(FIRST_JOIN_SECONDS)
        joined = [each.result(0) for each in waiting]
        for number, each in enumerate(joined):
            assignments = {member.member_id: b"own" for member in each.members}
            self.sync(each, assignments, f"i{number}" if instances else None)
        return joined


@pytest.fixture
def group() -> Group:
    return Group()


def code_of(waiting: Future[Any]) -> ErrorCode:
    error = waiting.exception(0)
    assert isinstance(error, GroupError)
    return error.code


def test_members_that_start_together_are_one_generation_with_one_leader(group: Group) -> None:
    first, second = group.join(), group.join()
    assert not first.done()
    group.after(FIRST_JOIN_SECONDS)
    joined = [first.result(0), second.result(0)]
    assert [each.generation for each in joined] == [1, 1]
    assert joined[0].leader == joined[1].leader == joined[0].member_id
    assert [member.member_id for member in joined[0].members] == [each.member_id for each in joined]
    assert joined[1].members == ()


def test_followers_wait_for_what_the_leader_assigns(group: Group) -> None:
    first, second = group.join(), group.join()
    group.after(FIRST_JOIN_SECONDS)
    leader, follower = first.result(0), second.result(0)
    waiting: Future[Synced] = group.sync(follower)
    assert not waiting.done()
    leading = group.sync(leader, {leader.member_id: b"first half", follower.member_id: b"second half"})
    assert leading.result(0).assignment == b"first half"
    assert waiting.result(0).assignment == b"second half"
    assert group.group.state == "Stable"


def test_a_client_is_first_given_an_id_if_it_knows_that_way(group: Group) -> None:
    with pytest.raises(GroupError) as raised:
        group.join(needs_known_id=True)
    assert raised.value.code is ErrorCode.MEMBER_ID_REQUIRED
    waiting = group.join(raised.value.member_id, needs_known_id=True)
    group.after(FIRST_JOIN_SECONDS)
    assert waiting.result(0).member_id == raised.value.member_id


def test_a_client_that_never_comes_with_its_id_is_forgotten(group: Group) -> None:
    with pytest.raises(GroupError):
        group.join(needs_known_id=True)
    assert not group.group.is_empty
    group.after(SESSION)
    assert group.group.is_empty


def test_a_new_member_makes_all_others_join_again(group: Group) -> None:
    first, second = group.stable()
    third = group.join()
    for each in (first, second):
        with pytest.raises(GroupError) as raised:
            group.beat(each)
        assert raised.value.code is ErrorCode.REBALANCE_IN_PROGRESS
    again = [group.join(first.member_id), group.join(second.member_id)]
    assert [each.result(0).generation for each in (*again, third)] == [2, 2, 2]


def test_a_member_that_leaves_makes_the_others_join_again(group: Group) -> None:
    first, second = group.stable()
    group.group.leave(first.member_id, None, group.now)
    again = group.join(second.member_id).result(0)
    assert (again.generation, again.leader) == (2, second.member_id)
    group.group.leave(second.member_id, None, group.now)
    assert group.group.is_empty
    assert group.group.state == "Empty"


def test_a_silent_member_is_taken_out(group: Group) -> None:
    first, second = group.stable()
    group.now += SESSION - 1
    group.beat(second)
    group.after(1)
    assert list(group.group.members) == [second.member_id]
    with pytest.raises(GroupError) as raised:
        group.beat(first)
    assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_for_others_is_not_silent(group: Group) -> None:
    first, second = group.stable()
    group.join()
    waiting = group.join(first.member_id)
    for _ in range(3):
        group.now += SESSION - 1
        with pytest.raises(GroupError):
            group.beat(second)
    assert not waiting.done()
    group.after(REBALANCE)
    assert waiting.result(0).generation == 2
    assert second.member_id not in group.group.members


def test_who_does_not_join_in_time_is_left_behind(group: Group) -> None:
    first, _ = group.stable()
    group.join(session_seconds=1000.0)
    waiting = group.join(first.member_id, session_seconds=1000.0)
    group.after(SESSION)
    assert waiting.result(0).generation == 2
    assert len(group.group.members) == 2


def test_a_leader_that_never_assigns_is_taken_out(group: Group) -> None:
    leading, following = group.join(session_seconds=1000.0), group.join(session_seconds=1000.0)
    group.after(FIRST_JOIN_SECONDS)
    waiting = group.sync(following.result(0))
    group.after(REBALANCE)
    assert code_of(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert leading.result(0).member_id not in group.group.members


def test_another_generation_is_refused(group: Group) -> None:
    joined, _ = group.stable()
    with pytest.raises(GroupError) as raised:
        group.beat(joined._replace(generation=0))
    assert raised.value.code is ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(GroupError) as raised:
        group.sync(joined._replace(generation=7))
    assert raised.value.code is ErrorCode.ILLEGAL_GENERATION


def test_the_protocol_is_one_that_all_members_know(group: Group) -> None:
    sticky, range_one, own = Protocol("sticky", b""), Protocol("range", b""), Protocol("own", b"")
    first = group.join(protocols=(own, sticky, range_one))
    group.join(protocols=(sticky, range_one))
    with pytest.raises(GroupError) as raised:
        group.join(protocols=(own,))
    assert raised.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    with pytest.raises(GroupError):
        group.join(protocol_type="connect")
    group.after(FIRST_JOIN_SECONDS)
    assert first.result(0).protocol == "sticky"


def test_a_client_that_syncs_by_another_protocol_is_refused(group: Group) -> None:
    joined, _ = group.stable()
    with pytest.raises(GroupError) as raised:
        group.group.sync(MemberName(joined.member_id, None, 1), ("consumer", "sticky"), {}, group.now)
    assert raised.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_static_member_comes_back_without_a_rebalance(group: Group) -> None:
    first, second = group.stable(instances=True)
    again = group.join(instance="i1", may_skip_assignment=True).result(0)
    assert (again.generation, again.leader) == (1, first.member_id)
    assert again.member_id != second.member_id
    group.beat(first, "i0")
    assert group.sync(again, instance="i1").result(0).assignment == b"own"
    with pytest.raises(GroupError) as raised:
        group.beat(second, "i1")
    assert raised.value.code is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_leader_that_comes_back_need_not_assign_again(group: Group) -> None:
    first, _ = group.stable(instances=True)
    again = group.join(instance="i0", may_skip_assignment=True).result(0)
    assert (again.leader, again.skips_assignment, len(again.members)) == (again.member_id, True, 2)
    older = group.join(instance="i0").result(0)
    assert (older.leader, older.skips_assignment, older.members) == (again.member_id, False, ())
    assert first.generation == older.generation


def test_a_static_member_stays_until_its_session_ends(group: Group) -> None:
    first, _ = group.stable(instances=True)
    group.now += SESSION - 1
    group.beat(first, "i0")
    assert len(group.group.members) == 2
    group.after(1)
    assert len(group.group.members) == 1


def test_a_static_member_leaves_by_its_instance(group: Group) -> None:
    group.stable(instances=True)
    group.group.leave("", "i1", group.now)
    assert len(group.group.members) == 1


def test_a_static_member_that_joins_again_without_its_instance_keeps_it(group: Group) -> None:
    first, second = group.stable(instances=True)
    group.join(second.member_id, protocols=(Protocol("range", b"others"),))
    group.group.leave(second.member_id, None, group.now)
    again = group.join(instance="i1")
    group.join(first.member_id, "i0")
    assert again.result(0).member_id not in (first.member_id, second.member_id)


def test_commits_are_those_of_members_of_this_generation(group: Group) -> None:
    joined, _ = group.stable()
    group.group.check_commit(MemberName(joined.member_id, None, 1))
    refused = {
        MemberName(joined.member_id, None, 0): ErrorCode.ILLEGAL_GENERATION,
        MemberName("another", None, 1): ErrorCode.UNKNOWN_MEMBER_ID,
        MemberName("", None, -1): ErrorCode.UNKNOWN_MEMBER_ID,
    }
    for who, code in refused.items():
        with pytest.raises(GroupError) as raised:
            group.group.check_commit(who)
        assert raised.value.code is code


def test_nothing_is_committed_between_joining_and_syncing(group: Group) -> None:
    waiting = group.join()
    group.after(FIRST_JOIN_SECONDS)
    with pytest.raises(GroupError) as raised:
        group.group.check_commit(MemberName(waiting.result(0).member_id, None, 1))
    assert raised.value.code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_has_room_for_so_many_members(group: Group) -> None:
    for _ in range(MOST_MEMBERS):
        group.join()
    with pytest.raises(GroupError) as raised:
        group.join()
    assert raised.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_client_that_has_gone_keeps_nobody_waiting(group: Group) -> None:
    gone, waiting = group.join(), group.join()
    gone.cancel()
    group.after(FIRST_JOIN_SECONDS)
    assert len(group.group.members) == 2
    leader = waiting.result(0).leader
    group.after(SESSION)
    assert leader not in group.group.members
