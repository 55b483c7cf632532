"""Extent lists as Linux wrote them: parts of real file systems, made by mkfs.ext4 and mkfs.xfs."""

from kseg.formats.extent_lists import Extent, FileSystem, Structure, parse_extents, parse_file_system

EXT4_LEAF = bytes.fromhex(
    "0af3 0600 5400 0000 00000000"  # magic, entries, room, depth, generation
    "00000000 0c00 0000 3d220200"  # block of the file, size, high and low bits of the block
    "0c000000 1400 0000 9b1f0000"
    "20000000 2000 0000 e1230000"
    "40000000 4000 0000 01260000"
    "80000000 8000 0000 812a0000"
    "00010000 8700 0000 01330000"
    "80010000 0700 0000 81330000"
)
EXT4_SUPERBLOCK = bytes.fromhex(
    "0090010000400600005000006"
    "0b20500f58f01000100000000000000000000000020000000200000000800000"
    "8ba0c6b08ba0c6b0200ffff53ef01000100000006ba0c6b000000000000000001000000000000000b000000000100003c000000"
)
XFS_SUPERBLOCK = bytes.fromhex(
    "5846534200001000000000000001900000000000000000000000000000000000516599bf83f64aefb8d1aafeb89592ef"
    "00000000000100060000000000000080000000000000008100000000000000820000000100006400000000040000000000004000"
    "b4b50200020000080000000000000000000000000c0909030f000019"
)
XFS_GROUP = bytes.fromhex("58414746 00000001 00000002")  # XAGF, version, number of the group
XFS_FREED_INODE = bytes.fromhex("494e81a403020000").ljust(176, b"\0") + bytes.fromhex(
    "00000000000000000000003001a00003"  # a flag, then 54, 52 and 21 bits: block of the file, block, size
    "00000000000006000000003003c00003"
    "0000000000000c000000003004e00003"
    "00000000000000000000000000000000"
    "00000000000012000000003006000003"
)


def test_a_block_of_ext4_has_a_file_s_extents() -> None:
    assert parse_extents(Structure.EXT4_LEAF, EXT4_LEAF.ljust(1024, b"\0"))[:2] == [
        Extent(0, 139837, 12),
        Extent(12, 8091, 20),
    ]


def test_a_freed_xfs_inode_has_extents_up_to_the_first_empty_one() -> None:
    assert parse_extents(Structure.XFS_INODE, XFS_FREED_INODE) == [
        Extent(0, 98317, 3),
        Extent(3, 98334, 3),
        Extent(6, 98343, 3),
    ]


def test_a_short_list_is_none() -> None:
    for size in range(12 + 6 * 12):
        assert parse_extents(Structure.EXT4_LEAF, EXT4_LEAF[:size]) == []
    for size in range(176 + 16):
        assert parse_extents(Structure.XFS_INODE, XFS_FREED_INODE[:size]) == []


def test_a_superblock_tells_the_start_of_its_file_system() -> None:
    ext4 = FileSystem(is_xfs=False, start=4096, size=409600 * 1024, block=1024)
    assert parse_file_system(Structure.EXT4_SUPERBLOCK, EXT4_SUPERBLOCK, 4096 + 1024) == ext4
    xfs = FileSystem(is_xfs=True, start=8192, size=102400 * 4096, block=4096, group_blocks=25600, group_bits=15)
    copy = XFS_SUPERBLOCK.ljust(512, b"\0") + XFS_GROUP
    assert parse_file_system(Structure.XFS_SUPERBLOCK, copy, 8192 + 2 * 25600 * 4096) == xfs
    assert xfs.position(98317) == 8192 + (3 * 25600 + 13) * 4096
