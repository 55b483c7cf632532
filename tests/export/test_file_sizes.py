"""Sizes of an export's files and row groups, and their compression."""

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kseg.export import plan
from tests import run
from tests.export import exports
from tests.log_files import NewBatch, NewRecord, write_segment

WORDS = [f"word{number}" for number in range(50)]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a partition of 4 MB in two segments, which Parquet compresses to a fraction."""
    directory = tmp_path_factory.mktemp("logs") / "orders-0"
    choose = random.Random(1)
    for first in (0, 20_000):
        batches = [
            NewBatch([NewRecord(b"key", " ".join(choose.choices(WORDS, k=12)).encode()) for _ in range(200)], offset)
            for offset in range(first, first + 20_000, 200)
        ]
        exports.write_indexes(write_segment(directory, batches, first))
    return directory


def export(log: Path, out: Path, **options: Any) -> list[Path]:
    """Export the partition, and return its files in the order of offsets."""
    exports.export([log], out, order_size=None, **options)
    return sorted(out.rglob("*.parquet"))


@pytest.mark.parametrize("target", [150_000, 300_000])
@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_files_have_the_target_size(target: int, table_format: str, log: Path, tmp_path: Path) -> None:
    files = export(log, tmp_path / "out", target_size=target, row_group_size=100_000, table_format=table_format)
    sizes = [path.stat().st_size for path in files]
    assert len(sizes) > 2
    assert [size for size in sizes if not 0.8 * target <= size <= 1.2 * target] == []
    assert sum(pq.read_metadata(path).num_rows for path in files) == 40_000


def test_few_large_batches_are_measured_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SMALLEST_SPLIT", 100_000)
    choose = random.Random(1)
    batches = [
        NewBatch([NewRecord(b"key", " ".join(choose.choices(WORDS, k=12)).encode()) for _ in range(1000)], offset)
        for offset in range(0, 40_000, 1000)
    ]
    exports.write_indexes(write_segment(tmp_path / "orders-0", batches, 0))
    (single,) = export(tmp_path / "orders-0", tmp_path / "single", target_size=64 << 20)
    target = single.stat().st_size // 4
    files = export(tmp_path / "orders-0", tmp_path / "out", parallelism=4, keeps_file_size=True, target_size=target)
    assert [path.stat().st_size for path in files if not 0.8 * target <= path.stat().st_size <= 1.2 * target] == []


@pytest.mark.parametrize("target", [55_000, 150_000, 300_000, 450_000])
def test_files_have_the_target_size_if_several_processes_share_a_partition(
    target: int, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SMALLEST_SPLIT", 100_000)
    options: dict[str, Any] = {"target_size": target, "row_group_size": 100_000}
    single = export(log, tmp_path / "single", **options)
    files = export(log, tmp_path / "shared", parallelism=3, keeps_file_size=True, **options)
    assert [path.stat().st_size for path in files if not 0.8 * target <= path.stat().st_size <= 1.2 * target] == []
    assert abs(len(files) - len(single)) <= 1
    assert sum(pq.read_metadata(path).num_rows for path in files) == 40_000


def test_one_process_writes_no_more_files_than_needed(log: Path, tmp_path: Path) -> None:
    assert len(export(log, tmp_path / "out", target_size=64 << 20)) == 1


def test_a_row_group_has_the_wanted_size(log: Path, tmp_path: Path) -> None:
    counts = []
    for number, size in enumerate((100_000, 1_000_000)):
        (path,) = export(log, tmp_path / f"out{number}", row_group_size=size)
        counts.append(pq.read_metadata(path).num_row_groups)
    assert counts[0] > 20
    assert 2 <= counts[1] <= 6


def test_a_level_compresses_more(log: Path, tmp_path: Path) -> None:
    sizes = []
    for codec in ("none", "zstd:1", "zstd:15"):
        out = tmp_path / codec
        ran = run.kseg(["export", str(log), str(out), "--compression", codec, "--row-group-size", "1MB"], tmp_path)
        assert ran.status == 0, ran.stderr
        (path,) = out.rglob("*.parquet")
        sizes.append(path.stat().st_size)
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize(
    ("codec", "problem"),
    [
        ("zstd:23", b"zstd has levels from 1 to 22"),
        ("snappy:1", b"snappy has no levels"),
        ("lzo", b"isn't one of zstd"),
    ],
)
def test_a_codec_or_level_that_there_is_not(codec: str, problem: bytes, log: Path, tmp_path: Path) -> None:
    ran = run.kseg(["export", str(log), str(tmp_path / "out"), "--compression", codec], tmp_path)
    assert (ran.status, (tmp_path / "out").exists()) == (2, False)
    assert problem in ran.stderr
