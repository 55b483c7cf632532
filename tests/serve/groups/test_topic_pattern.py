"""Patterns of clients match as everybody's do, and none of them keeps the server busy."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kseg.serve.error_code import ErrorCode
from kseg.serve.groups.group_error import GroupError
from kseg.serve.groups.topic_pattern import TopicPattern

NAMES = ("", "a", "b", "ab", "aab", "abab", "orders", "orders-1", "Orders", "a.b", "a_b", "payments-12", "bb", "a-b")
PATTERNS = (
    *("orders.*", "^orders$", "(^pay.*)", "a|b", "(a|b)+c?", "[a-c]{2,3}", "[^a]+", "(?i)ORD.*", r"a\.b", "(?:ab)*"),
    *("a{2}b", "a{1,}b", "(a*)*b", r"[\w.-]+", "^(orders|payments)-[0-9]+$", "", "x|", "(?P<n>a)b", "[]a]+", "a+?b"),
    *(r"\d+", r".*\d", "[a-]b", r"[\]a]", r"\Aab\z", "a.b"),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_whole_names_match(pattern: str) -> None:
    expected = frozenset(name for name in NAMES if re.fullmatch(pattern.replace(r"\z", r"\Z"), name))
    assert TopicPattern(pattern).matching(NAMES) == expected


@given(pattern=st.text("ab.|*+?()[]^$-{}1,\\", max_size=12), name=st.text("ab1", max_size=5))
def test_what_is_taken_means_what_it_means_elsewhere(pattern: str, name: str) -> None:
    try:
        found = TopicPattern(pattern).matching([name])
    except GroupError:
        return
    try:
        known = re.fullmatch(pattern, name)
    except re.error:  # "a**" is well in RE2's language
        return
    if not re.search(r"[*+?}]\+", pattern):  # which is a possessive one in Python's alone
        assert bool(found) == bool(known)


def test_named_classes_are_known() -> None:
    assert TopicPattern("[[:alpha:]]+-[[:digit:]]").matching(["orders-1", "orders-x"]) == {"orders-1"}


@pytest.mark.parametrize("pattern", ["(", "a)", "[a", "*", "a{", "a{3,1}", "\\", "(?=a)", "[b-a]", "a" * 513, "(" * 60])
def test_what_is_not_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(GroupError) as raised:
        TopicPattern(pattern)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("pattern", ["(a{1000}){1000}", "((a{100}){100}){100}"])
def test_patterns_do_not_grow_without_end(pattern: str) -> None:
    with pytest.raises(GroupError):
        TopicPattern(pattern)


def test_a_pattern_that_would_keep_others_busy_for_ever_is_soon_done_with() -> None:
    assert TopicPattern("(a+)+(a+)+(a|a?)*x").matching(["a" * 249]) == frozenset()
