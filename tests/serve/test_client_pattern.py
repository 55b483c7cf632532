"""Clients' regular expressions match complete names in RE2's language, and can't keep the server busy."""

import sys

import pytest

from kseg.serve.values import LONGEST_PATTERN, PatternError, compile_pattern

NAMES = ("orders", "orders-1", "Orders", "a.b", "a_b", "payments-12")


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("orders.*", {"orders", "orders-1"}),
        ("^orders$", {"orders"}),
        ("(?i)ORDERS", {"orders", "Orders"}),
        (r"a\.b", {"a.b"}),
        ("a.b", {"a.b", "a_b"}),
        ("(orders|payments)-[[:digit:]]+", {"orders-1", "payments-12"}),
        (r"\p{Lu}\w+", {"Orders"}),
        ("order", set()),
    ],
)
def test_whole_names_match(pattern: str, matching: set[str]) -> None:
    assert {name for name in NAMES if compile_pattern(pattern).fullmatch(name)} == matching


@pytest.mark.parametrize(
    "pattern", ["(", "a)", "[a", "*", "(?=a)", "[b-a]", "a" * (LONGEST_PATTERN + 1), "((a{100}){100}){100}", "\udcff"]
)
def test_what_is_not_an_expression_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


def test_an_expression_that_would_keep_others_busy_for_ever_is_soon_done_with() -> None:
    assert not compile_pattern("(a+)+(a+)+(a|a?)*x").fullmatch("a" * 100_000)


def test_without_the_library_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(PatternError, match=r"pip install 'kseg\[patterns\]'"):
        compile_pattern("orders")
