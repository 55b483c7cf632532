"""Assignors: all partitions are assigned, each to one member, evenly, and mostly to their former owners."""

from hypothesis import given
from hypothesis import strategies as st

from kseg.serve.groups.commits import ASSIGNORS, Subscriber, assign_range, assign_uniform

TOPICS = ("a", "b", "c")
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9))
SUBSCRIPTIONS = st.lists(st.frozensets(st.sampled_from((*TOPICS, "elsewhere"))), min_size=1, max_size=6)


def subscribers(subscriptions: list[frozenset[str]]) -> list[Subscriber]:
    return [Subscriber(f"m{number}", f"m{number}", topics, frozenset()) for number, topics in enumerate(subscriptions)]


@given(counts=COUNTS, subscriptions=SUBSCRIPTIONS, name=st.sampled_from(sorted(ASSIGNORS)))
def test_each_partition_goes_to_one_member_that_wants_it(
    counts: dict[str, int], subscriptions: list[frozenset[str]], name: str
) -> None:
    wanting = subscribers(subscriptions)
    target = ASSIGNORS[name](wanting, counts)
    given_out = [partition for partitions in target.values() for partition in partitions]
    wanted = frozenset[str]().union(*subscriptions)
    assert sorted(given_out) == sorted(
        (topic, n) for topic, count in counts.items() if topic in wanted for n in range(count)
    )
    assert all(topic in each.topics for each in wanting for topic, _ in target[each.member_id])


@given(counts=COUNTS, size=st.integers(1, 6), left=st.integers(0, 5))
def test_uniform_is_even_and_moves_little(counts: dict[str, int], size: int, left: int) -> None:
    wanting = subscribers([frozenset(TOPICS)] * size)
    target = assign_uniform(wanting, counts)
    sizes = [len(partitions) for partitions in target.values()]
    assert max(sizes) - min(sizes) <= 1
    again = [each._replace(owned=target[each.member_id]) for each in wanting]
    assert assign_uniform(again, counts) == target
    if size > 1:
        others = [each for number, each in enumerate(again) if number != left % size]
        after = assign_uniform(others, counts)
        assert all(target[each.member_id] <= after[each.member_id] for each in others)


def test_range_gives_runs_of_the_same_numbers_of_each_topic() -> None:
    target = assign_range(subscribers([frozenset({"a", "b"})] * 2), {"a": 3, "b": 3})
    assert target["m0"] == {("a", 0), ("a", 1), ("b", 0), ("b", 1)}
    assert target["m1"] == {("a", 2), ("b", 2)}
