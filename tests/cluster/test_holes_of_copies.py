"""Holes of the answering copy, and the copies that fill them: the same for every command."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.cluster.made_metadata import write_id
from tests.cluster.questions import RECORDS_ASKED, Ask
from tests.log.edits import write_bytes
from tests.log.replicas import Part, batch, write_epochs
from tests.log_files import batch_bytes, write_segment

TOPIC_ID = "cJFU-m2vQ6uCEEqPGgnDXw"
EVERY_WAY = pytest.mark.parametrize("ask", RECORDS_ASKED, ids=lambda ask: ask.__name__)


def copy_of(root: Path, broker: int, segments: Sequence[Sequence[Part]]) -> Path:
    """Create a broker's disk with a copy of a partition in the given segments."""
    disk = root / f"b{broker}"
    directory = disk / "orders-0"
    epochs: dict[int, int] = {}
    for parts in segments:
        write_segment(directory, map(batch, parts), parts[0].first)
        for part in parts:
            epochs.setdefault(part.epoch, part.first)
    directory.mkdir(parents=True, exist_ok=True)
    write_epochs(directory, sorted(epochs.items()))
    write_id(directory, TOPIC_ID)
    (disk / "meta.properties").write_text(f"version=1\nnode.id={broker}\ncluster.id=c\n", encoding="utf-8")
    return directory


def of_ten(base: int) -> list[Part]:
    """Return a segment of three batches of ten records."""
    return [Part(0, first, 10) for first in range(base, base + 30, 10)]


def log_of(directory: Path, base: int) -> Path:
    return directory / f"{base:020}.log"


def damage(directory: Path, base: int, parts: Sequence[Part], number: int) -> None:
    """Change the last byte of a segment's batch."""
    end = sum(len(batch_bytes(batch(part))) for part in parts[: number + 1])
    write_bytes(log_of(directory, base), end - 1, b"\xff")


def clean(root: Path, content: str) -> None:
    for disk in root.iterdir():
        (disk / "cleaner-offset-checkpoint").write_text(content, encoding="utf-8")


def records(*spans: Iterable[int]) -> Mapping[tuple[str, int], list[tuple[int, str]]]:
    return {("orders", 0): [(offset, f"value {offset}") for span in spans for offset in span]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "bundle" / "disks"


CLEANED = "0\n1\norders 0 20\n"


@EVERY_WAY
@pytest.mark.parametrize("checkpoint", [None, CLEANED], ids=["unknown", "cleaned"])
def test_damage_at_the_end_of_a_closed_segment_is_filled(checkpoint: str | None, ask: Ask, root: Path) -> None:
    """It is damage, which compaction never leaves."""
    best = copy_of(root, 1, [of_ten(0), of_ten(30), of_ten(60)])
    damage(best, 0, of_ten(0), 2)
    copy_of(root, 2, [of_ten(0), of_ten(30)])
    if checkpoint is not None:
        clean(root, checkpoint)
    assert ask(root, ("b1", "b2"), ()) == records(range(90))


@EVERY_WAY
def test_closed_segment_that_was_cut_is_filled(ask: Ask, root: Path) -> None:
    best = copy_of(root, 1, [of_ten(0), of_ten(30), of_ten(60)])
    log = log_of(best, 30)
    log.write_bytes(log.read_bytes()[: len(batch_bytes(batch(of_ten(30)[0]))) + 60])
    copy_of(root, 2, [of_ten(0), of_ten(30)])
    assert ask(root, ("b1", "b2"), ()) == records(range(90))


def abandoned(first: int) -> Part:
    return Part(4, first, 20, "lost")


@EVERY_WAY
def test_hole_is_filled_from_a_copy_behind_one_that_parted_before_it(ask: Ask, root: Path) -> None:
    parts = [Part(3, first, 20) for first in range(0, 80, 20)]
    best = copy_of(root, 1, [[*parts, Part(5, 80, 25)]])
    damage(best, 0, parts, 3)
    copy_of(root, 2, [[*parts[:3], abandoned(60), abandoned(80)]])
    copy_of(root, 3, [parts])
    assert ask(root, ("b1", "b2", "b3"), ()) == records(range(105))


@EVERY_WAY
@pytest.mark.parametrize("later", [[of_ten(60)], []], ids=["later", "empty"])
def test_hole_is_filled_from_a_copy_behind_one_that_begins_after_it(
    later: Sequence[Sequence[Part]], ask: Ask, root: Path
) -> None:
    best = copy_of(root, 1, [of_ten(0), of_ten(30), of_ten(60)])
    damage(best, 30, of_ten(30), 1)
    copy_of(root, 2, later)
    copy_of(root, 3, [of_ten(0), of_ten(30)])
    assert ask(root, ("b1", "b2", "b3"), ()) == records(range(90))


@EVERY_WAY
def test_only_offsets_that_damage_took_are_filled(ask: Ask, root: Path) -> None:
    """The cleaner removed the batches around them, of which another copy has older records."""
    best = copy_of(root, 1, [of_ten(0), of_ten(30)[1:], of_ten(60)])
    log_of(best, 40).rename(log_of(best, 30))
    damage(best, 0, of_ten(0), 2)
    copy_of(root, 2, [of_ten(0), of_ten(30)])
    assert ask(root, ("b1", "b2"), ()) == records(range(30), range(40, 90))


@EVERY_WAY
@pytest.mark.parametrize(
    ("checkpoint", "first"), [(None, 30), (CLEANED, 30), ("0\n0\n", 0)], ids=["unknown", "cleaned", "whole"]
)
@pytest.mark.parametrize("is_damaged", [False, True], ids=["intact", "damaged"])
def test_what_retention_took_from_the_best_copy_stays_gone_unless_nothing_was_compacted(
    is_damaged: bool, checkpoint: str | None, first: int, ask: Ask, root: Path
) -> None:
    """A lagging follower still has it; damage at the beginning of the best copy is filled anyway."""
    best = copy_of(root, 1, [of_ten(30), of_ten(60)])
    if is_damaged:
        damage(best, 30, of_ten(30), 0)
    copy_of(root, 2, [of_ten(0), of_ten(30)])
    if checkpoint is not None:
        clean(root, checkpoint)
    assert ask(root, ("b1", "b2"), ()) == records(range(first, 90))


@EVERY_WAY
def test_segment_that_may_be_compacted_is_not_filled_where_damage_follows_it(ask: Ask, root: Path) -> None:
    best = copy_of(root, 1, [of_ten(0), of_ten(60)])
    damage(best, 60, of_ten(60), 0)
    copy_of(root, 2, [of_ten(0), of_ten(30), of_ten(60)[:1]])
    assert ask(root, ("b1", "b2"), ()) == records(range(30), range(60, 90))


@EVERY_WAY
def test_batch_whose_offset_is_wrong_is_not_taken_from_a_further_copy(ask: Ask, root: Path) -> None:
    """No CRC covers the base offset: it is beyond the end of both copies."""
    copy_of(root, 1, [of_ten(0), of_ten(30)])
    other = copy_of(root, 2, [of_ten(0), of_ten(30)])
    raised = len(batch_bytes(batch(of_ten(30)[0])))
    write_bytes(log_of(other, 30), raised + 5, b"\x04")
    assert ask(root, ("b1", "b2"), ()) == records(range(60))


@EVERY_WAY
@pytest.mark.parametrize("is_empty", [False, True], ids=["damaged", "empty"])
def test_copy_that_has_no_intact_batch_is_filled_from_its_first_segment_on(
    is_empty: bool, ask: Ask, root: Path
) -> None:
    parts = of_ten(30)[:1]
    best = copy_of(root, 1, [parts])
    write_epochs(best, [(1, 30)])  # a later leader epoch: it comes first
    if is_empty:
        log_of(best, 30).write_bytes(b"")
    else:
        damage(best, 30, parts, 0)
    other = copy_of(root, 2, [of_ten(0), of_ten(30)])
    write_epochs(other, [(0, 0)])
    assert ask(root, ("b1", "b2"), ()) == records(range(30, 60))


@EVERY_WAY
def test_copy_without_logs_comes_after_one_that_is_being_moved_and_has_some(ask: Ask, root: Path) -> None:
    copy_of(root, 1, [])
    moved = copy_of(root, 2, [of_ten(0), of_ten(30)])
    moved.rename(moved.with_name(f"orders-0.{'2' * 32}-future"))
    assert ask(root, (".",), ()) == records(range(60))


@EVERY_WAY
def test_hole_is_filled_from_a_copy_that_is_being_moved_though_another_has_no_logs(ask: Ask, root: Path) -> None:
    best = copy_of(root, 1, [of_ten(0), of_ten(30), of_ten(60)])
    damage(best, 30, of_ten(30), 1)
    copy_of(root, 2, [])
    moved = copy_of(root, 3, [of_ten(0), of_ten(30)])
    moved.rename(moved.with_name(f"orders-0.{'3' * 32}-future"))
    assert ask(root, (".",), ()) == records(range(90))
