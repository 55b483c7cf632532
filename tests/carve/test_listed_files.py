"""Batches of many pieces: lists of a file's blocks put them together where the CRCs are right, and nowhere else."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.carve.made_images import Log, freed_ext4, make_log
from tests.carve.test_hints import Extent, disk_of, ext4_list, interleaved
from tests.commands.test_carve import carve, carved_logs, evidence
from tests.run import run_bounded

BLOCK = 4096
BLOBS = [(1, 300), (1, 30_000), (1, 40_000), (2, 5_000), (1, 300), (1, 39_000), (1, 12_000)]
TWINS = [make_log(name, BLOBS, 1) for name in "ab"]
"""Logs of equal offsets and sizes. Their blobs have up to eleven blocks."""

WHOLE = BLOCK - make_log("", [(1, 4000)], 1).batches[0][2] + 4000
"""The size of a value whose batch fills a block."""


def carve_lists(
    directory: Path, blocks: dict[int, bytes], lists: Sequence[Sequence[Extent]], *options: str
) -> list[bytes]:
    """Carve blocks with some lists of extents; return the logs."""
    directory.mkdir(exist_ok=True)
    moved = {number + len(lists): block for number, block in blocks.items()}
    structures = {
        (2 + number) * BLOCK: ext4_list([(at, place + len(lists), size) for at, place, size in extents], 340)
        for number, extents in enumerate(lists)
    }
    ran = carve(directory, disk_of(moved, structures), *options)
    assert ran.status in (0, 1, 2), ran.stderr
    return sorted(carved_logs(directory).values()) if ran.status < 2 else []


def batches_in(found: Sequence[bytes], log: Log) -> set[int]:
    """Return the base offsets of a log's batches that were carved; each is there once."""
    offsets = []
    for content in found:
        if content in log.content:
            start = log.content.index(content)
            end = start + len(content)
            offsets += [offset for offset, at, size in log.batches if start <= at and at + size <= end]
    assert len(offsets) == len(set(offsets))
    return set(offsets)


def assert_no_mixture(found: Sequence[bytes], logs: Sequence[Log] = TWINS) -> None:
    assert all(any(content in log.content for log in logs) for content in found)


def test_batches_of_many_pieces_come_back_by_a_list(tmp_path: Path) -> None:
    blocks, lists = interleaved(TWINS)
    assert carve_lists(tmp_path, blocks, lists) == sorted(log.content for log in TWINS)
    pieces = [len(line["ranges"]) for line in evidence(tmp_path) if line.get("how") == "extents"]
    assert max(pieces) > 10
    without = carve_lists(tmp_path / "without", blocks, lists, "--hints", "none")
    assert_no_mixture(without)
    assert all(log.content not in without for log in TWINS)


def test_a_file_without_a_whole_batch_is_found(tmp_path: Path) -> None:
    log = make_log("large", [(1, 9_000), (1, 8_000), (1, 20_000)], 1)
    blocks, lists = interleaved([log])
    assert carve_lists(tmp_path, blocks, []) == []
    assert carve_lists(tmp_path / "listed", blocks, lists) == [log.content]


def test_batches_before_the_first_whole_one_and_after_the_last_come_back(tmp_path: Path) -> None:
    log = make_log("large", [(1, 9_000)] * 3 + [(1, 300)] * 5 + [(1, 20_000)] * 3, 1)
    blocks, lists = interleaved([log])
    assert carve_lists(tmp_path, blocks, lists) == [log.content]


def test_a_list_that_begins_inside_a_file_finds_its_torn_batches(tmp_path: Path) -> None:
    log = make_log("large", [(1, 9_000)] * 9, 1)
    blocks, lists = interleaved([log])
    found = carve_lists(tmp_path, blocks, [lists[0][4:]])
    assert batches_in(found, log) >= set(range(2, 9))
    assert_no_mixture(found, [log])


@pytest.mark.parametrize("lost", range(0, 33, 3))
def test_an_overwritten_extent_costs_only_its_own_batches(lost: int, tmp_path: Path) -> None:
    blocks, lists = interleaved(TWINS)
    place = lists[0][lost][1]
    blocks[place] = random.Random(lost).randbytes(BLOCK)
    found = carve_lists(tmp_path, blocks, lists)
    assert TWINS[1].content in found
    hole = range(lost * BLOCK, (lost + 1) * BLOCK)
    intact = {offset for offset, at, size in TWINS[0].batches if at + size <= hole.start or hole.stop <= at}
    assert batches_in(found, TWINS[0]) == intact
    assert_no_mixture(found)


@pytest.mark.parametrize("reused", range(0, 33, 3))
def test_an_old_list_whose_block_another_file_has_now_mixes_nothing(reused: int, tmp_path: Path) -> None:
    """The other file's block is at the same place in its file, so that offsets and positions agree everywhere."""
    for size in (30_000, 2_000, 700, 150):
        logs = [make_log(name, [(1, size)] * (140_000 // size), 1) for name in "ab"]
        blocks, lists = interleaved(logs)
        number = min(reused, len(lists[0]) - 1)
        blocks[lists[0][number][1]] = blocks[lists[1][number][1]]
        assert_no_mixture(carve_lists(tmp_path / str(size), blocks, [lists[0]]), logs)


def test_an_old_shorter_list_of_the_same_file_takes_nothing_away(tmp_path: Path) -> None:
    blocks, lists = interleaved(TWINS)
    older = [lists[0][:9], [*lists[0][:20], (20, lists[0][20][1], 1)], lists[1][:3]]
    assert carve_lists(tmp_path, blocks, [*older, *lists]) == sorted(log.content for log in TWINS)


def test_two_lists_of_one_file_find_its_batches_once(tmp_path: Path) -> None:
    blocks, (one, other) = interleaved(TWINS)
    found = carve_lists(tmp_path, blocks, [one[:20], one[5:], other[10:], other[:25], one[3:18]])
    assert found == sorted(log.content for log in TWINS)


@pytest.mark.parametrize("cut", range(2, 32, 3))
def test_a_batch_between_two_lists_of_one_file_comes_back(cut: int, tmp_path: Path) -> None:
    """A block has room for some hundred extents, so that large files have several lists."""
    blocks, lists = interleaved(TWINS)
    halves = [half for each in lists for half in (each[:cut], each[cut:])]
    found = carve_lists(tmp_path, blocks, halves)
    for log in TWINS:
        assert batches_in(found, log) == {offset for offset, _, _ in log.batches}
    assert_no_mixture(found)


def test_lists_that_mix_two_files_find_no_batch_of_both(tmp_path: Path) -> None:
    blocks, (one, other) = interleaved(TWINS)
    mixed = [[*one[:cut], *other[cut:]] for cut in range(1, len(one) - 1)]
    assert_no_mixture(carve_lists(tmp_path, blocks, mixed))
    assert_no_mixture(carve_lists(tmp_path / "right", blocks, [*mixed, one, other]))


def test_offsets_that_jump_at_the_start_of_a_block_link_nothing(tmp_path: Path) -> None:
    logs = [make_log(name, [(1, WHOLE)] * 6, 1, first_offset) for name, first_offset in (("a", 0), ("b", 100))]
    blocks, (one, other) = interleaved(logs)
    assert_no_mixture(carve_lists(tmp_path, blocks, [[*one[:3], *other[3:]]]), logs)
    directories = {name.split("/")[0] for name in carved_logs(tmp_path)}
    assert len(directories) == len(carved_logs(tmp_path))


def test_a_few_first_bytes_of_another_file_change_no_batch(tmp_path: Path) -> None:
    """Leader epochs differ, so that the first bytes of equal offsets do."""
    logs = [
        make_log(name, [(1, WHOLE - 16), (1, 1000), (1, 1000)], 1, epoch=epoch) for name, epoch in (("a", 0), ("b", 3))
    ]
    blocks, (one, other) = interleaved(logs)
    assert_no_mixture(carve_lists(tmp_path, blocks, [[one[0], other[1]], one]), logs)


def test_overlapping_lists_of_all_kinds_cost_bounded_time(tmp_path: Path) -> None:
    blocks, (one, other) = interleaved(TWINS)
    chance, places = random.Random(1), [place for _, place, _ in (*one, *other)]
    crowd = [
        ext4_list([(at, chance.choice(places), chance.choice((1, 2, 9))) for at in range(0, 3400, 10)], 340)
        + ext4_list([(at, chance.choice(places), 1) for at in range(300)], 340)
        for _ in range(1500)
    ]
    content = disk_of(blocks, {2 * BLOCK: ext4_list(one, 340), 3 * BLOCK: ext4_list(other, 340)})
    (tmp_path / "disk.img").write_bytes(content + b"".join(each.ljust(2 * BLOCK, b"\0") for each in crowd))
    ran = run_bounded(["carve", "disk.img", "--to", "carved"], tmp_path, seconds=60)
    assert ran.status in (0, 1), ran.stderr
    assert_no_mixture(list(carved_logs(tmp_path).values()))


def test_large_batches_of_a_real_ext4_come_back_from_its_freed_inodes(tmp_path: Path) -> None:
    carve(tmp_path, freed_ext4(tmp_path, TWINS, 160))
    assert sorted(carved_logs(tmp_path).values()) == sorted(log.content for log in TWINS)
    assert max(len(line["ranges"]) for line in evidence(tmp_path) if line["type"] == "batch") > 5
