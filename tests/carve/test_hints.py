"""Extent lists that file systems leave: they link pieces that contents can't, and never against the contents."""

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.carve.made_images import Log, freed_ext4, make_log
from tests.commands.test_carve import carve, carved_logs, evidence

BLOCK = 4096
Extent = tuple[int, int, int]
"""First block in the file, first block in the file system, number of blocks."""

TWINS = [make_log(name, [(1, 180)] * 200, 1) for name in "ab"]
"""Logs with equal offsets and sizes, whose pieces contents alone can't assign."""
GROUP_BITS = 6


def interleaved(logs: Sequence[Log]) -> tuple[dict[int, bytes], list[list[Extent]]]:
    """Return the logs' blocks by number, in turn and not in order, and the extents of each log."""
    blocks: dict[int, bytes] = {}
    lists: list[list[Extent]] = []
    for number, log in enumerate(logs):
        pieces = [log.content[at : at + BLOCK].ljust(BLOCK, b"\0") for at in range(0, len(log.content), BLOCK)]
        places = [8 + (each ^ 1) * len(logs) + number for each in range(len(pieces))]
        blocks |= dict(zip(places, pieces, strict=True))
        lists.append([(each, place, 1) for each, place in enumerate(places)])
    return blocks, lists


def disk_of(blocks: dict[int, bytes], structures: dict[int, bytes]) -> bytes:
    """Return an image of blocks, with structures at some positions."""
    content = bytearray((max(blocks) + 40) * BLOCK)
    for number, block in blocks.items():
        content[number * BLOCK : (number + 1) * BLOCK] = block
    for position, structure in structures.items():
        content[position : position + len(structure)] = structure
    return bytes(content)


def ext4_list(extents: Sequence[Extent], room: int, depth: int = 0) -> bytes:
    header = struct.pack("<HHHHI", 0xF30A, len(extents), room, depth, 0)
    return header + b"".join(struct.pack("<IHHI", at, size, 0, block) for at, block, size in extents)


def xfs_records(extents: Iterable[Extent], *, is_written: bool = True) -> bytes:
    return b"".join(
        (((not is_written) << 127) | (at << 73) | (block << 21) | size).to_bytes(16, "big")
        for at, block, size in extents
    )


def xfs_superblock(group: int, group_blocks: int, groups: int) -> bytes:
    """Return a superblock and the header of its group."""
    content = bytearray(1024)
    struct.pack_into(">4sIQ", content, 0, b"XFSB", BLOCK, group_blocks * groups)
    struct.pack_into(">II", content, 84, group_blocks, groups)
    struct.pack_into(">HHH", content, 100, 0xB4A5, 512, 512)
    content[124] = GROUP_BITS
    struct.pack_into(">4sII", content, 512, b"XAGF", 1, group)
    return bytes(content)


def xfs_inode(records: bytes) -> bytes:
    return b"IN\x80\0\3\2".ljust(176, b"\0") + records


def xfs_leaf(extents: Sequence[Extent]) -> bytes:
    return struct.pack(">4sHH", b"BMA3", 0, len(extents)).ljust(72, b"\0") + xfs_records(extents)


def group_of(block: int, group_blocks: int) -> int:
    """Return the number of a block as xfs spells it: of its group, then in it."""
    return (block // group_blocks << GROUP_BITS) | block % group_blocks


def kinds(directory: Path) -> list[str]:
    return [line["kind"] for line in evidence(directory) if line["type"] == "link"]


def complete(directory: Path) -> set[str]:
    """Return the logs that were carved as a whole; each carved log must be a piece of one."""
    found = carved_logs(directory).values()
    assert all(any(content in log.content for log in TWINS) for content in found)
    return {log.name for log in TWINS if log.content in found}


def test_lists_in_ext4_inodes_and_blocks_link_what_contents_cannot(tmp_path: Path) -> None:
    blocks, lists = interleaved(TWINS)
    inode = {BLOCK + 0x28: ext4_list(lists[0][:4], 4), BLOCK + 256 + 0x28: ext4_list(lists[0][3:7], 4)}
    leaf = {2 * BLOCK: ext4_list(lists[0][6:], 340), 3 * BLOCK: ext4_list(lists[1], 340)}
    content = disk_of(blocks, inode | leaf)
    carve(tmp_path, content)
    assert complete(tmp_path) == {"a", "b"}
    assert "extent" in kinds(tmp_path)
    (tmp_path / "without").mkdir()
    carve(tmp_path / "without", content, "--hints", "none")
    assert complete(tmp_path / "without") == set()


@pytest.mark.parametrize("size", [156, 170, 212])
def test_a_batch_with_few_bytes_in_the_next_block_is_carved_once(size: int, tmp_path: Path) -> None:
    """Twins' last bytes prove no link, so the batch is already complete when the list links the pieces."""
    logs = [make_log(name, [(1, size)] * 200, 1) for name in "ab"]
    blocks, lists = interleaved(logs)
    structures = {number * BLOCK: ext4_list(extents, 340) for number, extents in enumerate(lists, 2)}
    carve(tmp_path, disk_of(blocks, structures))
    assert sorted(carved_logs(tmp_path).values()) == sorted(log.content for log in logs)


def test_lists_in_xfs_inodes_and_blocks_link_what_contents_cannot(tmp_path: Path) -> None:
    blocks, lists = interleaved(TWINS)
    group_blocks = 30
    groups = (max(blocks) + 40) // group_blocks
    by_group = [[(at, group_of(block, group_blocks), size) for at, block, size in each] for each in lists]
    structures = {
        0: xfs_superblock(0, group_blocks, groups),
        BLOCK: xfs_inode(xfs_records(by_group[0][:8]) + b"\xff" * 16),
        BLOCK + 512: xfs_inode(xfs_records(by_group[0][7:])),
        2 * BLOCK: xfs_leaf(by_group[1]),
    }
    carve(tmp_path, disk_of(blocks, structures))
    assert complete(tmp_path) == {"a", "b"}
    assert "extent" in kinds(tmp_path)


def test_a_copy_of_the_superblock_in_another_group_is_enough(tmp_path: Path) -> None:
    blocks, lists = interleaved(TWINS)
    group_blocks = 60
    assert group_blocks not in blocks
    by_group = [[(at, group_of(block, group_blocks), size) for at, block, size in each] for each in lists]
    structures = {
        group_blocks * BLOCK: xfs_superblock(1, group_blocks, 2),
        2 * BLOCK: xfs_leaf(by_group[0]),
        3 * BLOCK: xfs_leaf(by_group[1]),
    }
    carve(tmp_path, disk_of(blocks, structures))
    assert complete(tmp_path) == {"a", "b"}


@pytest.mark.parametrize("name", ["mixed", "unwritten", "tree", "backwards", "outside"])
def test_wrong_lists_add_no_wrong_link(name: str, tmp_path: Path) -> None:
    blocks, (one, other) = interleaved(TWINS)
    mixed = [*one[:3], *other[3:6]]
    lists = {
        "mixed": [ext4_list(mixed, 340)],
        "unwritten": [ext4_list([(at, block, size + 32768) for at, block, size in one], 340)],
        "tree": [ext4_list(one, 340, depth=1)],
        "backwards": [ext4_list(one[::-1], 340)],
        "outside": [ext4_list([(at, block + 10**6, size) for at, block, size in one], 340)],
    }
    carve(tmp_path, disk_of(blocks, {number * BLOCK: each for number, each in enumerate(lists[name])}))
    assert complete(tmp_path) == set()


def test_a_disk_full_of_lists_is_carved(tmp_path: Path) -> None:
    blocks, _ = interleaved(TWINS)
    crowd = b"".join(
        ext4_list([(at, at * 7 % 60 + number % 50, 1) for at in range(340)], 340).ljust(BLOCK) for number in range(3000)
    )
    assert carve(tmp_path, disk_of(blocks, {}) + crowd).status in (0, 1)
    assert complete(tmp_path) == set()


def test_lists_that_contradict_each_other_add_no_link(tmp_path: Path) -> None:
    whole = BLOCK - make_log("", [(1, 4000)], 1).batches[0][2] + 4000
    logs = [make_log(name, [(1, whole)] * 6, 1) for name in "ab"]
    blocks, (one, other) = interleaved(logs)
    lists = [ext4_list(one, 340), ext4_list([*one[:3], *other[3:]], 340), ext4_list(other[:3], 340)]
    carve(tmp_path, disk_of(blocks, {number * BLOCK: each for number, each in enumerate(lists)}))
    found = list(carved_logs(tmp_path).values())
    assert all(any(content in log.content for log in logs) for content in found)
    assert kinds(tmp_path).count("extent") == 2 + 2 + 2 + 2


def test_a_torn_batch_comes_back_from_as_many_pieces_as_the_list_says(tmp_path: Path) -> None:
    log = make_log("large", [(1, 300)] * 5 + [(1, 3 * BLOCK)] + [(1, 300)] * 5, 1)
    blocks, lists = interleaved([log])
    carve(tmp_path, disk_of(blocks, {2 * BLOCK: ext4_list(lists[0], 340)}))
    assert list(carved_logs(tmp_path).values()) == [log.content]
    (torn,) = [line for line in evidence(tmp_path) if line["type"] == "batch" and len(line["ranges"]) > 2]
    assert torn["how"] == "extents"


def test_deleted_files_of_a_real_ext4_are_linked_by_their_inodes(tmp_path: Path) -> None:
    carve(tmp_path, freed_ext4(tmp_path, TWINS, 120))
    assert complete(tmp_path) == {"a", "b"}
    assert "extent" in kinds(tmp_path)
