from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.checkpoints import TEXT_FILES
from kseg.formats.file_names import (
    KIND_OF_EXTENSION,
    LOG_KINDS,
    SUFFIXES,
    DirectoryState,
    FileKind,
    FileName,
    PartitionDirectory,
    parse_file_name,
    parse_partition_directory,
)
from kseg.formats.header_fields import ENTRY_FIELDS
from tests.golden import files
from tests.loops import for_each

UNIQUE_ID = "0123456789abcdef0123456789abcdef"
REMOTE_ID = "9sCuaTRcSwmBVp6n1AjR0g"


@for_each(
    "name, expected",
    [
        ("00000000000000203000.log", FileName(FileKind.LOG, 203000)),
        ("00000000000000203000.index", FileName(FileKind.OFFSET_INDEX, 203000)),
        ("00000000000000203000.timeindex", FileName(FileKind.TIME_INDEX, 203000)),
        ("00000000000000203000.txnindex", FileName(FileKind.TRANSACTION_INDEX, 203000)),
        ("00000000000000203000.snapshot", FileName(FileKind.PRODUCER_SNAPSHOT, 203000)),
        ("09223372036854775807.log", FileName(FileKind.LOG, 2**63 - 1)),
        ("09223372036854775808.log", FileName(FileKind.LOG)),  # no offset: beyond int64
        ("7.log", FileName(FileKind.LOG, 7)),
        ("copy.log", FileName(FileKind.LOG)),
        ("-1.log", FileName(FileKind.LOG)),
        (".log", FileName(FileKind.LOG)),
        ("00000000000000000042.log.deleted", FileName(FileKind.LOG, 42, suffix=".deleted")),
        ("00000000000000000042.timeindex.swap", FileName(FileKind.TIME_INDEX, 42, suffix=".swap")),
        ("00000000000000000042.txnindex.cleaned", FileName(FileKind.TRANSACTION_INDEX, 42, suffix=".cleaned")),
        ("00000000000000000042.snapshot.deleted", FileName(FileKind.PRODUCER_SNAPSHOT, 42, suffix=".deleted")),
        (f"00000000000000000164-{REMOTE_ID}.log", FileName(FileKind.LOG, 164, remote_id=REMOTE_ID)),
        (
            f"00000000000000000164-{REMOTE_ID}.leader_epoch_checkpoint",
            FileName(FileKind.LEADER_EPOCH_CHECKPOINT, 164, remote_id=REMOTE_ID),
        ),
        ("00000000000000000379-0000000001.checkpoint", FileName(FileKind.METADATA_SNAPSHOT, 379, 1)),
        (
            "00000000000000000379-0000000001.checkpoint.deleted",
            FileName(FileKind.METADATA_SNAPSHOT, 379, 1, ".deleted"),
        ),
        (
            "00000000000000000379-0000000001-8213345.checkpoint.part",
            FileName(FileKind.METADATA_SNAPSHOT, 379, 1, ".part"),
        ),
        ("bootstrap.checkpoint", FileName(FileKind.METADATA_SNAPSHOT)),
        ("recovery-point-offset-checkpoint", FileName(FileKind.OFFSET_CHECKPOINT)),
        ("replication-offset-checkpoint", FileName(FileKind.OFFSET_CHECKPOINT)),
        ("log-start-offset-checkpoint", FileName(FileKind.OFFSET_CHECKPOINT)),
        ("cleaner-offset-checkpoint.tmp", FileName(FileKind.OFFSET_CHECKPOINT, suffix=".tmp")),
        ("leader-epoch-checkpoint", FileName(FileKind.LEADER_EPOCH_CHECKPOINT)),
        ("partition.metadata", FileName(FileKind.PARTITION_METADATA)),
        ("meta.properties", FileName(FileKind.META_PROPERTIES)),
        ("quorum-state", FileName(FileKind.QUORUM_STATE)),
        (".kafka_cleanshutdown", FileName(FileKind.CLEAN_SHUTDOWN)),
        (".lock", FileName(FileKind.LOCK)),
        ("server.properties", FileName(FileKind.UNKNOWN)),
        ("00000000000000000042", FileName(FileKind.UNKNOWN)),
        ("notes.txt.deleted", FileName(FileKind.UNKNOWN, suffix=".deleted")),
        ("", FileName(FileKind.UNKNOWN)),
    ],
)
def test_file_name_says(name: str, expected: FileName) -> None:
    assert parse_file_name(name) == expected


def test_only_the_last_part_of_a_path_counts() -> None:
    assert parse_file_name(Path("a.log/5-0/00000000000000000007.index")) == FileName(FileKind.OFFSET_INDEX, 7)


@for_each(
    "name, expected",
    [
        ("orders-0", PartitionDirectory("orders", 0)),
        ("meta.9-0", PartitionDirectory("meta.9", 0)),
        ("a-b.c-12", PartitionDirectory("a-b.c", 12)),
        ("__cluster_metadata-0", PartitionDirectory("__cluster_metadata", 0)),
        ("a-1-2", PartitionDirectory("a-1", 2)),
        (f"orders-3.{UNIQUE_ID}-delete", PartitionDirectory("orders", 3, DirectoryState.DELETE, UNIQUE_ID)),
        (f"or-ders-3.{UNIQUE_ID}-future", PartitionDirectory("or-ders", 3, DirectoryState.FUTURE, UNIQUE_ID)),
        (f"o.rders-3.{UNIQUE_ID}-stray", PartitionDirectory("o.rders", 3, DirectoryState.STRAY, UNIQUE_ID)),
        (f"orders-3.{UNIQUE_ID}-gone", None),
        (f"orders-3.{UNIQUE_ID[:-1]}-delete", None),
        ("orders-2147483647", PartitionDirectory("orders", 2**31 - 1)),
        ("orders-2147483648", None),
        ("orders", None),
        ("orders-", None),
        ("-0", None),
        ("orders-x", None),
        ("kafka logs-1", None),
        ("", None),
    ],
)
def test_partition_directory_name_says(name: str, expected: PartitionDirectory | None) -> None:
    assert parse_partition_directory(Path("/data") / name if name else name) == expected


@given(st.sampled_from(sorted(KIND_OF_EXTENSION)), st.integers(0, 2**63 - 1), st.sampled_from(["", *SUFFIXES]))
def test_segment_names_come_back(extension: str, offset: int, suffix: str) -> None:
    name = parse_file_name(f"{offset:020d}{extension}{suffix}")
    assert name.kind == KIND_OF_EXTENSION[extension]
    assert name.suffix == (suffix or None)
    assert name.base_offset == (None if name.kind == FileKind.METADATA_SNAPSHOT else offset)


@given(st.text(max_size=30))
def test_any_name_has_an_answer(name: str) -> None:
    assert parse_file_name(name).kind in FileKind
    parse_partition_directory(name)


def test_no_golden_file_is_unknown() -> None:
    unknown = {path.name for path in files("") if parse_file_name(path).kind == FileKind.UNKNOWN}
    assert unknown == set()


def test_each_kind_of_file_has_a_format() -> None:
    with_their_own = {*LOG_KINDS, FileKind.PRODUCER_SNAPSHOT, FileKind.LOCK, FileKind.UNKNOWN}
    assert set(FileKind) == with_their_own | ENTRY_FIELDS.keys() | TEXT_FILES.keys()
