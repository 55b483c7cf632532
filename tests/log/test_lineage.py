"""The offset at which a follower truncates under a leader, as brokers find it by leader epochs."""

import pytest

from kseg.log.lineage import EpochStarts, Lineage, Rule, truncation


def lineage(*starts: tuple[int, int], end: int, log_start: int = 0, high_watermark: int | None = None) -> Lineage:
    return Lineage(EpochStarts(starts), log_start, end, high_watermark)


@pytest.mark.parametrize(
    ("follower", "leader", "offset"),
    [
        (lineage((0, 0), end=10), lineage((0, 0), end=10), 10),
        (lineage((0, 0), end=8), lineage((0, 0), end=10), 8),
        (lineage((0, 0), end=10), lineage((0, 0), end=8), 8),
        # An unclean election: epoch 2 began at the new leader's end.
        (lineage((0, 0), end=15), lineage((0, 0), (2, 10), end=13), 10),
        # The follower led in an epoch that the leader never saw.
        (lineage((0, 0), (1, 10), end=15), lineage((0, 0), (2, 12), end=20), 10),
        # The leader answers with an epoch unknown to the follower, which asks again with its preceding one.
        (lineage((0, 0), (4, 10), end=15), lineage((0, 0), (3, 5), (6, 12), end=20), 5),
        # The same twice: the fast leader changes of KIP-279.
        (lineage((0, 0), (2, 8), (4, 10), end=15), lineage((0, 0), (1, 4), (3, 9), (5, 12), end=20), 4),
        # The leader has lost all records.
        (lineage((0, 0), end=15), lineage(end=0), 0),
        # All epochs of the leader are later than the follower's.
        (lineage((1, 0), end=15), lineage((3, 6), (4, 9), end=12), 6),
        # Loading the log drops an epoch that began at its end, but not the end of a later one.
        (lineage((0, 0), (1, 10), end=12), lineage((0, 0), (1, 10), end=11), 11),
    ],
)
def test_follower_truncates_where_lineages_part(follower: Lineage, leader: Lineage, offset: int) -> None:
    assert truncation(follower, leader) == (offset, Rule.LEADER_EPOCHS)


def test_follower_without_epochs_truncates_to_its_high_watermark() -> None:
    assert truncation(lineage(end=15, high_watermark=12), lineage(end=20)) == (12, Rule.HIGH_WATERMARK)
    assert truncation(lineage(end=15), lineage(end=20)) == (None, Rule.UNKNOWN)
    assert truncation(lineage(end=0), lineage(end=20)) == (0, Rule.LEADER_EPOCHS)


def test_follower_that_ends_below_the_leaders_log_start_drops_all() -> None:
    assert truncation(lineage((0, 0), end=15), lineage((2, 20), end=30, log_start=20)) == (20, Rule.LOG_START)
